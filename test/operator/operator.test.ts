import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq, inArray, sql } from "drizzle-orm"
import { exportPKCS8, exportSPKI, generateKeyPair } from "jose"
import { foundOwners, foundSerials } from "../../src/db/chain-schema.ts"
import { apiKeys, chips, effects, lanes, organizations, transactions, units } from "../../src/db/schema.ts"
import { readDevEnvironment, withDevEnvironment, writeDevEnvironment } from "../../src/dev/environment.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import { releaseLease, takeLease } from "../../src/engine/lanes/leases.ts"
import { allocateTransaction, findTransaction, storeAttempt } from "../../src/engine/lanes/transactions.ts"
import { unwrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { commands } from "../../src/operator/commands/commands.ts"
import { runOperator, type Terminal } from "../../src/operator/commands/run-operator.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { type Environment, loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { isWellFormed } from "../../src/platform/credentials.ts"
import { newId } from "../../src/platform/ids.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { requireOrganization } from "../../src/resources/organizations/service.ts"
import { holdToQuota } from "../../src/resources/quotas/service.ts"
import { startChain } from "../harness/contracts.ts"
import { type Call, startLesserNode, withoutPending } from "../harness/lesser-node.ts"
import { alice, bob, contextWithChain, sessionOf, transfer } from "../harness/ownership.ts"
import { neverRotated } from "../harness/secret.ts"
import {
  activeCollection,
  createCaller,
  newUnit,
  pair,
  settle,
  type TestService,
} from "../harness/services.ts"

// The commands as the CLI runs them, next to a folder like the one that a dev service leaves.

const secret = "a secret of tests that is long enough"
const signerKey = `0x${"11".repeat(32)}`
const chainId = 31_337

let folder: string
let world: World
let organizationId: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "operator-"))
  // Nothing listens on port 9, which is reserved for the discard protocol.
  writeChains("http://127.0.0.1:9")
  writeDevEnvironment(folder, {
    SERVICE_SECRET: secret,
    SIGNER_KEYS: signerKey,
    CHAINS: join(folder, "chains.json"),
  })
  world = await openWorld(loadConfig({ DATA_DIR: folder, ...readDevEnvironment(folder) }), tell)
  const created = await operator(
    "organizations",
    "create",
    "--name",
    "Maker",
    "--default-chain",
    `${chainId}`,
  )
  organizationId = created.document.id
})
afterAll(async () => {
  await world.close()
  rmSync(folder, { recursive: true })
})

const factory_address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"

function writeChains(...rpc_urls: string[]): void {
  const chains = { [chainId]: { name: "local", rpc_urls, factory_address } }
  writeFileSync(join(folder, "chains.json"), JSON.stringify(chains))
}

// biome-ignore lint/suspicious/noExplicitAny: the document is whatever the command prints
type Run = { code: number; stdout: string; stderr: string; document: any }

/** Runs a command with `--json`. */
async function operator(...words: string[]): Promise<Run> {
  const run = await runPlain({}, ...words, "--json")
  return { ...run, document: JSON.parse(run.stdout) }
}

async function runPlain(environment: Environment, ...words: string[]): Promise<Omit<Run, "document">> {
  const said = { stdout: "", stderr: "" }
  const terminal: Terminal = {
    print(text) {
      said.stdout += text
    },
    complain(text) {
      said.stderr += text
    },
  }
  const readEnvironment = () => withDevEnvironment({ DATA_DIR: folder, ...environment })
  return { code: await runOperator(readEnvironment, terminal, words), ...said }
}

/** Runs the command in a process of its own, as a person would. */
async function runAsProcess(environment: Environment, ...words: string[]): Promise<Omit<Run, "document">> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/operator.ts"), ...words], {
    env: { PATH: process.env.PATH, DATA_DIR: folder, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}

const of = () => ["--organization", organizationId]

function writeFile(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

let drawn = 0
/** A chip that no other call has returned. */
function chipForFile() {
  drawn += 1
  const number = drawn.toString(16).padStart(10, "0")
  return { chip_id: number, uid: `04${number}00`, meta_key: "0a".repeat(16), file_key: "0b".repeat(16) }
}

async function storedChips(): Promise<string[]> {
  const rows = await world.context.db.read.select({ chip_id: chips.chip_id }).from(chips)
  return rows.map(({ chip_id }) => chip_id)
}

describe("the command line", () => {
  test("prints a command's result and exits with its code", async () => {
    expect(await runAsProcess({}, "quotas", "set", ...of(), "--json")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("operator: quotas set needs --units"),
    })
    const { code, stdout, stderr } = await runAsProcess({}, "organizations", "list", "--json")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(JSON.parse(stdout).organizations[0]).toMatchObject({ id: organizationId })
    expect(await runAsProcess({}, "keys", "list", "--organization", newId())).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^operator: There is no organization [^\n]+\n$/),
    })
  }, 30_000)

  test("prints nothing but the result while Redis is down", async () => {
    // Nothing listens on port 9, which is reserved for the discard protocol.
    const { code, stderr } = await runAsProcess({ REDIS_URL: "redis://127.0.0.1:9" }, "organizations", "list")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  }, 30_000)

  test("exits without a stack trace if its output cannot be written or is no longer read", async () => {
    const run = async (to: string, first = "") => {
      const program = join(import.meta.dir, "../../src/operator.ts")
      const line = `{ ${first} "${process.execPath}" "${program}" organizations list; } ${to}`
      const child = Bun.spawn(["bash", "-o", "pipefail", "-c", line], {
        env: { PATH: process.env.PATH, DATA_DIR: folder },
        stdio: ["ignore", "ignore", "pipe"],
      })
      return [await child.exited, await child.stderr.text()]
    }
    expect(await run("> /dev/full")).toEqual([1, expect.stringMatching(/^operator: .*ENOSPC.*\n$/)])
    // Writes until nothing reads any more.
    const filling = "trap '' PIPE; while echo; do :; done 2>/dev/null;"
    expect(await run("| true", filling)).toEqual([1, ""])
  })

  test("as a package script prints nothing of bun's own, even if it fails", async () => {
    const project = join(folder, "project")
    mkdirSync(project)
    copyFileSync(join(import.meta.dir, "../../bunfig.toml"), join(project, "bunfig.toml"))
    writeFileSync(
      join(project, "package.json"),
      JSON.stringify({ scripts: { operator: "echo refused >&2; exit 1" } }),
    )
    const child = Bun.spawn([process.execPath, "run", "operator"], {
      ...{ cwd: project, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    })
    expect([await child.stdout.text(), await child.stderr.text()]).toEqual(["", "refused\n"])
    expect(await child.exited).toBe(1)
  })
})

test("a missing file is reported as a file error", async () => {
  const { code, stdout } = await runPlain({}, "chips", "import", ...of(), "--file", "nowhere.csv", "--json")
  expect(code).toBe(1)
  expect(JSON.parse(stdout).error.code).toBe("file")
})

describe("usage", () => {
  test("is not printed for --json without a command, which is an error", async () => {
    const { code, stdout } = await runPlain({}, "--json")
    expect(code).toBe(2)
    expect(JSON.parse(stdout).error).toEqual({ code: "usage", message: "a command is needed" })
  })

  test("is printed for no command and for --help, with a summary of every command", async () => {
    for (const words of [[], ["--help"]]) {
      const { code, stdout, stderr } = await runPlain({}, ...words)
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
      expect(stdout).toMatch(/^ {2}operator chips import +imports chips that were encoded elsewhere/m)
      expect(stdout.match(/^ {2}operator [a-z].* {2}[a-z]/gm)).toHaveLength(commands.length)
    }
  })

  test("is one JSON document for --json with --help, for all commands or one", async () => {
    for (const words of [["--help"], ["chips", "import", "-h"]]) {
      const { code, stderr, document } = await operator(...words)
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
      expect(document).toEqual({ usage: (await runPlain({}, ...words)).stdout })
    }
  })

  test("of a topic lists its commands with their options, also if no command follows", async () => {
    const asked = await runPlain({}, "chips", "--help")
    expect(asked).toMatchObject({ code: 0, stderr: "" })
    expect(asked.stdout).toContain(
      "operator chips import --organization ID --file F.json|F.csv\n      imports chips",
    )
    expect(asked.stdout).not.toContain("operator keys")
    const alone = await runPlain({}, "chips")
    expect(alone).toMatchObject({ code: 2, stdout: "" })
    expect(alone.stderr).toStartWith('operator: "chips" must be followed by one of these words\n')
    expect(alone.stderr).toEndWith(asked.stdout)
  })

  test("is not printed for a word that begins no command, only where to find all of them", async () => {
    const { code, stderr } = await runPlain({}, "stcuk")
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'operator: there is no command "stcuk"\noperator: --help lists the commands\n',
    })
  })

  test("of a command includes its details", async () => {
    const { stdout } = await runPlain({}, "chips", "import", "--help")
    expect(stdout).toContain("run the same command again: it continues where it stopped")
    expect((await runPlain({}, "--help")).stdout).not.toContain("run the same command again")
  })

  const wrong: Record<string, { words: string[]; says: string }> = {
    "an unknown command": { words: ["keys", "steal"], says: 'operator: there is no command "keys steal"' },
    "a missing option": { words: ["organizations", "create"], says: "organizations create needs --name" },
    "a missing argument": { words: ["retry"], says: "retry needs ID" },
    "an unknown option": { words: ["stuck", "--all"], says: "stuck: Unknown option '--all'" },
    "an option given twice": {
      words: ["keys", "list", "--organization", "a", "--organization", "b"],
      says: "keys list takes --organization once",
    },
    "one word too many": { words: ["stuck", "now"], says: 'stuck does not take "now"' },
    "a malformed number": {
      words: ["organizations", "create", "--name", "N", "--default-chain", "0x1"],
      says: '--default-chain takes a whole number of at least 1, not "0x1"',
    },
    "quotas without a quota": {
      words: ["quotas", "set", "--organization", "x"],
      says: "quotas set needs --units",
    },
    "an identity with two sources of keys": {
      words: "identity set --organization x --issuer i --audience a --jwks-url u --public-key-file f".split(
        " ",
      ),
      says: "identity set needs one of --jwks-url and --public-key-file",
    },
    "a file of another kind": {
      words: ["chips", "import", "--organization", "x", "--file", "chips.xlsx"],
      says: "--file that ends with .json or .csv",
    },
  }
  for (const [what, { words, says }] of Object.entries(wrong))
    test(`error: ${what} exits with 2 and says what is wrong`, async () => {
      const { code, stdout, stderr } = await runPlain({}, ...words)
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toContain(says)
      expect(stderr).toContain("usage:")
    })
})

describe("a dev service's environment file", () => {
  test("is readable by its owner only", () => {
    expect(statSync(join(folder, "environment.json")).mode & 0o777).toBe(0o600)
  })

  test("is reported as missing in one line", async () => {
    const empty = join(folder, "empty")
    expect(await runPlain({ DATA_DIR: empty }, "stuck")).toEqual({
      code: 1,
      stdout: "",
      stderr: `operator: there is no service in ${empty}: start one with bun run dev, set DATA_DIR to the folder of one, or set SERVICE_SECRET, DATABASE_URL and the others as its processes have them\n`,
    })
    expect(existsSync(empty)).toBe(false)
  })

  test("is overridden by variables of the real environment", async () => {
    const { code, stderr } = await runPlain({ SERVICE_SECRET: "short" }, "stuck")
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "operator: SERVICE_SECRET needs at least 32 characters; make one with: openssl rand -hex 32\n",
    })
  })

  test("is not mixed with the settings of another service, which its secret shows", () => {
    const left = readDevEnvironment(folder)
    const known = (environment: Environment) => withDevEnvironment({ DATA_DIR: folder, ...environment })
    const other = { DATA_DIR: folder, SERVICE_SECRET: "b".repeat(64), DATABASE_URL: "postgres://h/d" }
    expect(known(other)).toEqual(other)
    expect(known({ SERVICE_SECRET: left.SERVICE_SECRET }).SIGNER_KEYS).toBe(left.SIGNER_KEYS)
    const rotated = { ...other, SERVICE_SECRET_PREVIOUS: left.SERVICE_SECRET }
    expect(known(rotated)).toEqual({ ...left, ...rotated })
  })

  test("is replaced as a whole", () => {
    const other = join(folder, "other")
    writeDevEnvironment(other, { A: "1", B: "2" })
    writeDevEnvironment(other, { A: "3" })
    expect(readDevEnvironment(other)).toEqual({ A: "3" })
  })

  test("fails the command with one line if it is damaged", async () => {
    const other = join(folder, "damaged")
    mkdirSync(other)
    writeFileSync(join(other, "environment.json"), "{")
    const { code, stderr } = await runPlain({ DATA_DIR: other }, "stuck")
    expect(code).toBe(1)
    expect(stderr).toMatch(/^operator: .*environment\.json cannot be read as JSON.*\n$/)
  })

  test("may name a database that cannot be opened, which is reported in one line", async () => {
    const { code, stderr } = await runPlain({ DATABASE_URL: `sqlite:${folder}/chains.json/x.db` }, "stuck")
    expect(code).toBe(1)
    expect(stderr).toMatch(/^operator: cannot create the folder .*\n$/)
  })
})

describe("organizations", () => {
  test("have their default chain among the allowed ones", async () => {
    const words = ["--name", "Second", "--default-chain", `${chainId}`, "--allowed-chains", `7,${chainId}`]
    const { code, document } = await operator("organizations", "create", ...words)
    expect(code).toBe(0)
    expect(document).toMatchObject({
      name: "Second",
      default_chain_id: chainId,
      allowed_chain_ids: [chainId, 7],
    })
  })

  test("are rejected with a default chain that CHAINS does not have", async () => {
    for (const words of [
      ["create", "--name", "N"],
      ["update", organizationId],
    ]) {
      const { code, stderr } = await operator("organizations", ...words, "--default-chain", "9")
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `operator: default_chain_id: network 9 is not configured; CHAINS has: ${chainId}\n`,
      })
    }
  })

  test("can be updated, suspended and resumed", async () => {
    const { document } = await operator("organizations", "create", "--name", "Fourth")
    const changed = await operator(
      "organizations",
      "update",
      document.id,
      "--name",
      "4th",
      "--allowed-chains",
      "7",
    )
    expect(changed.document).toMatchObject({ id: document.id, name: "4th", allowed_chain_ids: [7] })
    expect((await operator("organizations", "update", document.id)).code).toBe(2)
    const suspended = await operator("organizations", "suspend", document.id)
    expect(suspended.document.suspended_at).toBeString()
    expect((await operator("organizations", "suspend", document.id)).document).toEqual(suspended.document)
    expect((await operator("organizations", "resume", document.id)).document.suspended_at).toBeNull()
  })

  test("need no chain", async () => {
    const { document } = await operator("organizations", "create", "--name", "Third")
    expect(document).toMatchObject({ default_chain_id: null, allowed_chain_ids: [] })
  })

  test("are rejected with a name that contains control characters", async () => {
    const { code, document, stderr } = await operator("organizations", "create", "--name", "a\u0007b")
    expect(code).toBe(1)
    expect(document.error).toMatchObject({
      code: "validation.failed",
      details: { fieldErrors: { name: [expect.any(String)] } },
    })
    expect(stderr).toBe("operator: name: must have 1 to 256 characters, without control characters\n")
  })

  test("are listed, oldest first", async () => {
    const { document } = await operator("organizations", "list")
    expect(document.organizations[0]).toMatchObject({ id: organizationId, name: "Maker" })
  })

  test("that do not exist are rejected in one line, without a stack trace", async () => {
    const { code, stdout, stderr } = await runPlain({}, "keys", "list", "--organization", newId())
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
    expect(stderr).toMatch(/^operator: There is no organization [^\n]+\n$/)
  })
})

test("listing webhook endpoints of an unknown organization is an error, not an empty list", async () => {
  expect(await operator("webhooks", ...of())).toMatchObject({ code: 0, document: { webhook_endpoints: [] } })
  const { code, document } = await operator("webhooks", "--organization", newId())
  expect([code, document.error?.code]).toEqual([1, "not_found.resource"])
})

describe("publishable keys", () => {
  test("can be issued, listed, rotated with an overlap, and revoked", async () => {
    const { document: old } = await operator("publishable-keys", "issue", ...of(), "--name", "web")
    expect(isWellFormed(old.key)).toBe(true)
    const { document: issued } = await operator("publishable-keys", "rotate", old.id, "--overlap", "2h")
    expect(issued).toMatchObject({ name: "web", expires_at: null, rotated: { id: old.id } })
    const hours = (Date.parse(issued.rotated.expires_at) - Date.parse(issued.created_at)) / 3_600_000
    expect(hours).toBe(2)
    const { document: revoked } = await operator("publishable-keys", "revoke", issued.id)
    const { document: list } = await operator("publishable-keys", "list", ...of())
    expect(list.publishable_keys).toEqual([issued.rotated, revoked])
    expect((await operator("publishable-keys", "rotate", old.id, "--overlap", "2 hours")).code).toBe(2)
  })
})

test("creating or rotating a key set prints its id and version", async () => {
  const made = await runPlain({}, "key-sets", "create", ...of(), "--name", "plain", "--scheme", "an10922")
  const id = /^id {7}([0-9a-f-]{36})\nversion {2}1\n$/.exec(made.stdout)?.[1] ?? ""
  expect((await runPlain({}, "key-sets", "rotate", id)).stdout).toBe(`id       ${id}\nversion  2\n`)
})

test("rotations of tag keys, receipt keys and publishable keys are in the list of acts", async () => {
  const made = ["key-sets", "create", ...of(), "--name", "rotated", "--scheme", "an10922"]
  const [set, page] = [await operator(...made), await operator("publishable-keys", "issue", ...of())]
  await operator("key-sets", "rotate", set.document.id)
  await operator("receipt-keys", "rotate")
  await operator("publishable-keys", "rotate", page.document.id)
  const { document } = await operator("acts")
  expect(document.acts.slice(0, 3)).toMatchObject([
    { act: "rotate publishable key", subject: page.document.id },
    { act: "rotate receipt key", subject: "receipts" },
    { act: "rotate key set", subject: set.document.id },
  ])
})

test("an act by a user without a name, as in a container, is recorded with the user ID", async () => {
  await runAsProcess({}, "organizations", "resume", organizationId)
  const { document } = await operator("acts", "--subject", organizationId)
  expect(document.acts[0].actor).toStartWith(`user ${process.getuid?.()} on `)
})

test("names of publishable keys follow the usual rules: a limit in code points, and no control characters", async () => {
  const issue = (name: string) => operator("publishable-keys", "issue", ...of(), "--name", name)
  expect((await issue("👟".repeat(256))).document.name).toBe("👟".repeat(256))
  for (const name of ["", "a\u001b[31mb", "👟".repeat(257)])
    expect(await issue(name)).toMatchObject({ code: 1, document: { error: { code: "validation.failed" } } })
})

describe("API keys", () => {
  test("can have an expiry", async () => {
    const { document } = await operator("keys", "issue", ...of(), "--expires", "2999-01-31")
    expect(document.expires_at).toBe("2999-01-31T00:00:00.000Z")
    for (const end of ["2999-02-31", "2999-02-31T00:00:00.000Z", "2999-01-31T00:00:00.0000Z"])
      expect((await operator("keys", "issue", ...of(), "--expires", end)).code).toBe(2)
    expect((await operator("keys", "issue", ...of(), "--expires", "2020-01-31")).code).toBe(1)
  })

  test("take an end in the form in which answers show it", async () => {
    for (const end of ["2999-01-31T12:00:00.000Z", "2999-01-31T12:00:00.5Z", "2999-01-31T12:00:00Z"]) {
      const { document } = await operator("keys", "issue", ...of(), "--expires", end)
      expect(document.expires_at).toBe(new Date(end).toISOString())
    }
  })

  test("are shown once and stored as their hash", async () => {
    const { code, document } = await operator("keys", "issue", ...of(), "--name", "shop")
    expect(code).toBe(0)
    expect(isWellFormed(document.key)).toBe(true)
    const [row] = await world.context.db.read.select().from(apiKeys).where(eq(apiKeys.id, document.id))
    expect(row?.hash).toBe(createHash("sha256").update(document.key).digest("hex"))
    const { stdout, document: list } = await operator("keys", "list", ...of())
    expect(list.keys).toContainEqual(
      expect.objectContaining({ id: document.id, name: "shop", revoked_at: null }),
    )
    expect(stdout).not.toContain(document.key)
  })

  test("are printed in text output as well", async () => {
    const { stdout } = await runPlain({}, "keys", "issue", ...of())
    expect(stdout).toMatch(/^id {3}[0-9a-f-]{36}\nkey {2}end_sk_[0-9A-Za-z]{39}\n/)
  })

  test("are listed without empty columns", async () => {
    const { document } = await operator("organizations", "create", "--name", "Fifth")
    const own = ["--organization", document.id]
    await operator("keys", "issue", ...own)
    const columns = async () =>
      (await runPlain({}, "keys", "list", ...own)).stdout.split("\n")[0]?.split(/ +/)
    expect(await columns()).toEqual(["ID", "KEY", "CREATED"])
    await operator("keys", "issue", ...own, "--name", "shop", "--expires", "2999-01-31")
    expect(await columns()).toEqual(["ID", "NAME", "KEY", "CREATED", "EXPIRES"])
  })

  test("stay revoked", async () => {
    const { document: issued } = await operator("keys", "issue", ...of())
    const first = await operator("keys", "revoke", issued.id)
    const second = await operator("keys", "revoke", issued.id)
    expect(first.document.revoked_at).toEqual(expect.any(String))
    expect(second).toMatchObject({ code: 0, document: { revoked_at: first.document.revoked_at } })
  })

  test("that do not exist cannot be revoked", async () => {
    for (const id of [newId(), "nonsense"])
      expect((await operator("keys", "revoke", id)).document.error.code).toBe("not_found.resource")
  })
})

describe("products", () => {
  test("are created with their redirect in canonical form, and listed", async () => {
    const words = [
      ...of(),
      "--name",
      "Jacket",
      "--external-id",
      "J1",
      "--redirect-url",
      "https://Example.com",
    ]
    const { document } = await operator("products", "create", ...words)
    expect(document).toMatchObject({
      name: "Jacket",
      external_id: "J1",
      redirect_url: "https://example.com/",
    })
    expect((await operator("products", "list", ...of())).document.products).toEqual([document])
    expect(await operator("products", "create", ...words)).toMatchObject({
      code: 1,
      stderr: "operator: external_id: another product of the organization has it already\n",
    })
  })

  test("are rejected with a redirect that is not https", async () => {
    const words = [...of(), "--name", "Jacket", "--redirect-url", "javascript:alert(1)"]
    expect(await operator("products", "create", ...words)).toMatchObject({ code: 1 })
  })
})

test("quotas that are not named stay unchanged, and unlimited removes one", async () => {
  await operator("quotas", "set", ...of(), "--units", "5", "--taps-per-month", "0")
  const { document } = await operator("quotas", "set", ...of(), "--units", "unlimited", "--chips", "9")
  expect(document).toEqual({
    id: organizationId,
    quotas: { units: null, collections: null, chips: 9, taps_per_month: 0 },
  })
  await operator("quotas", "set", ...of(), "--chips", "unlimited", "--taps-per-month", "unlimited")
})

test("organizations are listed with what they have used of each quota since it was set, or in this month", async () => {
  const { document: made } = await operator("organizations", "create", "--name", "Limited")
  const limits = ["--collections", "3", "--chips", "7", "--taps-per-month", "9"]
  await operator("quotas", "set", "--organization", made.id, ...limits)
  const limited = await requireOrganization(world.context.db.read, made.id)
  await inTurn(world.context, null, async (turn) => {
    await holdToQuota(turn, limited, "collections", 2)
    await holdToQuota(turn, limited, "taps_per_month", 5)
    const longAgo = new Date("2020-01-31")
    await holdToQuota({ ...turn, at: longAgo }, limited, "taps_per_month", 8)
  })
  const { document } = await operator("organizations", "list")
  const listed = document.organizations.find(({ id }: { id: string }) => id === made.id)
  expect(listed).toMatchObject({
    quotas: { units: null, collections: 3, chips: 7, taps_per_month: 9 },
    quotas_used: { units: null, collections: 2, chips: null, taps_per_month: 5 },
  })
  const { stdout } = await runPlain({}, "organizations", "list")
  const [titles = "", ...lines] = stdout.split("\n")
  expect(titles).toMatch(/COLLECTIONS +CHIPS +TAPS THIS MONTH/)
  expect(titles).not.toContain("UNITS")
  expect(lines.find((line) => line.startsWith(made.id))).toMatch(/2 of 3 +\? of 7 +5 of 9/)
})

describe("identity", () => {
  const set = (...words: string[]) =>
    operator("identity", "set", ...of(), "--issuer", "https://i.example", "--audience", "service", ...words)
  const stored = async () => {
    const rows = await world.context.db.read
      .select({ identity: organizations.identity })
      .from(organizations)
      .where(eq(organizations.id, organizationId))
    return rows[0]?.identity
  }

  test("can be set with a JWKS URL, and says how many keys are there", async () => {
    const { publicKey } = await generateKeyPair("ES256", { extractable: true })
    const keys = [await crypto.subtle.exportKey("jwk", publicKey)]
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ keys }) })
    const jwks_url = `http://127.0.0.1:${server.port}/jwks`
    const { code, document } = await set("--jwks-url", jwks_url)
    await server.stop(true)
    expect(code).toBe(0)
    expect(document).toMatchObject({ keys_found: 1, failure: null })
    expect(await stored()).toEqual({ issuer: "https://i.example", audience: "service", jwks_url })
  })

  test("is set, and says why, if there are no keys at the JWKS URL yet", async () => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(null, { status: 404 }),
    })
    const jwks_url = `http://127.0.0.1:${server.port}/jwks`
    const { code, document } = await set("--jwks-url", jwks_url)
    await server.stop(true)
    expect(code).toBe(0)
    expect(document.keys_found).toBe(0)
    expect(document.failure).toStartWith(`the keys at ${new URL(jwks_url).origin} cannot be fetched: `)
    expect((await stored())?.jwks_url).toBe(jwks_url)
  })

  test("can be set with a public key, and a private or secret one is rejected", async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true })
    const pem = await exportSPKI(publicKey)
    expect((await set("--public-key-file", writeFile("public.pem", pem))).code).toBe(0)
    const before = await stored()
    expect(before).toMatchObject({ public_key: pem.trim() })
    const refused = [
      writeFile("private.pem", await exportPKCS8(privateKey)),
      writeFile("private.json", JSON.stringify(await crypto.subtle.exportKey("jwk", privateKey))),
      writeFile("secret.json", JSON.stringify({ kty: "oct", k: "AAAA" })),
      writeFile("nonsense.pem", "nonsense"),
      join(folder, "no-such-file.pem"),
    ]
    for (const file of refused) expect((await set("--public-key-file", file)).code).toBe(1)
    expect(await stored()).toEqual(before)
  })
})

describe("chips", () => {
  test("can be imported from JSON, with their keys encrypted", async () => {
    const chip = chipForFile()
    const file = writeFile("chips.json", JSON.stringify([{ ...chip, counter: 7 }]))
    expect(await operator("chips", "import", ...of(), "--file", file)).toMatchObject({
      code: 0,
      stderr: "",
      document: { organization_id: organizationId, imported: 1 },
    })
    const [row] = await world.context.db.read
      .select()
      .from(chips)
      .where(eq(chips.chip_id, chip.chip_id.toUpperCase()))
    expect(row).toMatchObject({ is_test: false, uid: chip.uid.toUpperCase(), counter: 7, unit_id: null })
    expect(row?.wrapped_keys).not.toContain(chip.meta_key)
    const opened = row && unwrapChipKeys(neverRotated(secret), row.chip_id, row.wrapped_keys)
    expect(Buffer.from(opened?.metaKey ?? []).toString("hex")).toBe(chip.meta_key)
    expect(Buffer.from(opened?.fileKey ?? []).toString("hex")).toBe(chip.file_key)
  })

  test("can be imported from CSV, even more than fit into one statement", async () => {
    const rows = Array.from({ length: 600 }, () => Object.values(chipForFile()).join(","))
    const file = writeFile("chips.CSV", ["chip_id,uid,meta_key,file_key", ...rows].join("\n"))
    expect((await operator("chips", "import", ...of(), "--file", file)).document.imported).toBe(600)
    const { document } = await operator("chips", "list", ...of())
    expect(document.chips.length).toBeGreaterThanOrEqual(600)
    expect(Object.keys(document.chips[0])).not.toContain("wrapped_keys")
  })

  test("of a file with invalid lines are not imported at all, and every such line is reported", async () => {
    const before = await storedChips()
    const entries = [
      chipForFile(),
      { ...chipForFile(), uid: "04" },
      chipForFile(),
      { ...chipForFile(), meta_key: "zz" },
    ]
    const file = writeFile("wrong.json", JSON.stringify(entries))
    const { code, document, stderr } = await operator("chips", "import", ...of(), "--file", file)
    expect(code).toBe(1)
    expect(document.error.details.formErrors).toEqual([
      "entry 2: uid must be 14 hexadecimal digits",
      "entry 4: meta_key must be 32 hexadecimal digits",
    ])
    expect(stderr).toContain("operator: entry 4: meta_key must be 32 hexadecimal digits\n")
    expect(await storedChips()).toEqual(before)
  })

  test("that are stored with other values or for another organization are rejected with the same error, and so is the whole file", async () => {
    const [own, foreign, alike] = [chipForFile(), chipForFile(), chipForFile()]
    const { document: other } = await operator("organizations", "create", "--name", "Other")
    const known = [
      { to: organizationId, file: writeFile("own.json", JSON.stringify([own])) },
      { to: other.id, file: writeFile("foreign.json", JSON.stringify([foreign, alike])) },
    ]
    for (const { to, file } of known) await operator("chips", "import", "--organization", to, "--file", file)
    const ofOwn = eq(chips.chip_id, own.chip_id.toUpperCase())
    await world.context.db.transaction((tx) => tx.update(chips).set({ counter: 7 }).where(ofOwn))
    const before = await storedChips()
    const again = [
      chipForFile(),
      { ...own, file_key: "0c".repeat(16) },
      { ...own, chip_id: chipForFile().chip_id, uid: alike.uid },
      foreign,
      chipForFile(),
    ]
    const file = writeFile("again.json", JSON.stringify(again))
    const { code, document, stdout } = await operator("chips", "import", ...of(), "--file", file)
    expect(code).toBe(1)
    expect(document.error.details.formErrors).toEqual(
      [1, 2, 3].map(
        (index) =>
          `entry ${index + 1}: chip ${again[index]?.chip_id.toUpperCase()} or its uid is stored already, with other values or for another organization`,
      ),
    )
    expect(stdout).not.toContain(other.id)
    expect(await storedChips()).toEqual(before)
  })

  test("that are stored with the same values stay unchanged, even if their counters have moved on", async () => {
    const [used, fresh] = [chipForFile(), chipForFile()]
    await operator("chips", "import", ...of(), "--file", writeFile("first.json", JSON.stringify([used])))
    const ofUsed = eq(chips.chip_id, used.chip_id.toUpperCase())
    await world.context.db.transaction((tx) => tx.update(chips).set({ counter: 7 }).where(ofUsed))
    const [before] = await world.context.db.read.select().from(chips).where(ofUsed)
    const importing = (...entries: object[]) =>
      operator("chips", "import", ...of(), "--file", writeFile("more.json", JSON.stringify(entries)))
    expect((await importing(used, fresh)).document).toMatchObject({ imported: 1, already_imported: 1 })
    expect((await importing({ ...used, counter: 7 })).document).toMatchObject({ already_imported: 1 })
    expect((await importing({ ...used, counter: 8 })).code).toBe(1)
    expect(await world.context.db.read.select().from(chips).where(ofUsed)).toEqual(before ? [before] : [])
  })

  test("of a long file are stored in part after an interruption, and importing the file again stores the rest", async () => {
    const entries = Array.from({ length: 5_300 }, chipForFile)
    const file = writeFile("long.json", JSON.stringify(entries))
    const last = entries.at(-1)?.chip_id.toUpperCase()
    const before = (await storedChips()).length
    const { db } = world.context
    await db.transaction((tx) =>
      tx.execute(
        sql.raw(
          `create trigger full_disk before insert on chips when new.chip_id = '${last}' begin select raise(abort, 'no room'); end`,
        ),
      ),
    )
    const cut = await operator("chips", "import", ...of(), "--file", file)
    await db.transaction((tx) => tx.execute(sql`drop trigger full_disk`))
    expect(cut).toMatchObject({ code: 1, stderr: "operator: no room\n" })
    expect((await storedChips()).length - before).toBe(5_250)
    const { document } = await operator("chips", "import", ...of(), "--file", file)
    expect(document).toEqual({
      organization_id: organizationId,
      imported: 50,
      replaced: 0,
      changed: 0,
      already_imported: 5_250,
    })
    expect((await storedChips()).length - before).toBe(5_300)
  }, 60_000)

  test("can be moved to another organization while they are unused, all of them or none", async () => {
    const chips = [chipForFile(), chipForFile(), chipForFile()]
    const ids = chips.map(({ chip_id }) => chip_id.toUpperCase())
    await operator("chips", "import", ...of(), "--file", writeFile("moving.json", JSON.stringify(chips)))
    const { document: other } = await operator("organizations", "create", "--name", "Mover")
    const move = async (lines: string[]) =>
      await operator(
        ...["chips", "move", "--from", organizationId, "--to", other.id],
        ...["--file", writeFile("moved.txt", lines.join("\n"))],
      )
    const ownersOf = async () => {
      const { document } = await operator("chips", "list", "--organization", other.id)
      return document.chips.map(({ chip_id }: { chip_id: string }) => chip_id)
    }
    await operator("chips", "retire", ids[2] ?? "", ...of())
    const refused = await move([...ids, "FFFFFFFFFF"])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain("Nothing was moved")
    expect(refused.stderr).toContain(`chip ${ids[2]}: is retired`)
    expect(refused.stderr).toContain("chip FFFFFFFFFF: the organization of --from has no such chip")
    expect(await ownersOf()).toEqual([])
    const free = ids.slice(0, 2)
    expect((await move(free)).document).toMatchObject({ moved: 2, already_moved: 0 })
    expect((await move(free)).document).toMatchObject({ moved: 0, already_moved: 2 })
    expect(await ownersOf()).toEqual(free.sort())
  })

  test("can be retired while they are unused, by their own organization only", async () => {
    const chip = chipForFile()
    const file = writeFile("retired.json", JSON.stringify([chip]))
    await operator("chips", "import", ...of(), "--file", file)
    const { document: other } = await operator("organizations", "create", "--name", "Stranger")
    expect(
      (await operator("chips", "retire", chip.chip_id, "--organization", other.id)).document.error.code,
    ).toBe("chip.not_found")
    const { code, document } = await operator("chips", "retire", chip.chip_id, ...of())
    expect(code).toBe(0)
    expect(document.retired_at).toEqual(expect.any(String))
  })
})

/** The service with a clock that is ten minutes behind. */
const earlier = (): TestService => {
  const clock = () => new Date(Date.now() - 10 * 60_000)
  const context = { ...world.context, clock }
  return {
    context,
    secret: neverRotated(secret),
    setTime() {},
    turn: (work) => inTurn(context, null, work),
    async close() {},
  }
}
const caller = (): Caller => ({
  organization_id: organizationId,
  kind: "api_key",
  credential_id: newId(),
  session: null,
})

describe("work", () => {
  const pairedUnit = async () => {
    const service = earlier()
    const unit = await newUnit(service, caller(), await activeCollection(service, caller()))
    await pair(service, caller(), { unit_id: unit.id, is_test: true })
    return unit.id
  }
  const openEffect = async (actorId: string) => {
    const rows = await world.context.db.read.select().from(effects).where(eq(effects.actor_id, actorId))
    return rows.find(({ status }) => status === "open")
  }
  /** The state between storing and sending a transaction. */
  const signedTransaction = async (actorId: string) => {
    const effect = await openEffect(actorId)
    const fees = { max_fee_per_gas: 2n, max_priority_fee_per_gas: 1n }
    return await earlier().turn(async (turn) => {
      const laneId = effect?.queue.slice("lane:".length) ?? ""
      const held = await takeLease(turn, laneId, { owner: "test", lease_milliseconds: 60_000 })
      if (!held) throw new Error("the lane was not free")
      await turn.tx.update(lanes).set({ next_nonce: 7 })
      const wanted = { chain_id: chainId, kind: "issueUnit", to: "0x01", data: "0x", gas: 1n, fees } as const
      const made = await allocateTransaction(turn, held.lease, { ...wanted, effect_ids: [effect?.id ?? ""] })
      await storeAttempt(turn, held.lease, await findTransaction(turn.tx, made), {
        ...{ hash: "0x02", raw: "0x03", kind: "first", fees },
      })
      await releaseLease(turn, held.lease)
      return made
    })
  }
  const fail = async (actorId: string) => {
    const effect = await openEffect(actorId)
    const error = { code: "issueUnit.reverted", message: "the call reverts with SerialGap" }
    await earlier().turn((turn) => settleEffect(turn, effect?.id ?? "", { error }))
  }
  const stuckEntry = async (id: string) => {
    const { document } = await operator("stuck")
    return document.stuck.find((each: { id: string }) => each.id === id)
  }

  test("open for more than five minutes is stuck, with a reason", async () => {
    const id = await pairedUnit()
    expect(await stuckEntry(id)).toMatchObject({
      machine: "unit-token",
      organization_id: organizationId,
      state: "pending.issuing",
      effect_id: (await openEffect(id))?.id,
      reason: expect.stringContaining("no worker holds lane"),
    })
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
    expect(await stuckEntry(id)).toBeUndefined()
  })

  test("queued in its lane is counted there long before it is stuck", async () => {
    const waiting = async () => (await operator("chain", "status")).document.lanes[0].waiting_effects
    const before = await waiting()
    const id = await pairedUnit()
    expect(await waiting()).toBe(before + 1)
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
    expect(await waiting()).toBe(before)
  })

  test("can continue on a restored back-up after operator restored, which marks every lane and reopens halted ones", async () => {
    const halted = { status: "halted", reason: "the chain has more", next_nonce: 3 } as const
    await earlier().turn(({ tx }) => tx.update(lanes).set(halted))
    const { code, document } = await operator("restored")
    const rows = await world.context.db.read.select().from(lanes)
    expect({ code, document }).toEqual({ code: 0, document: { lane_ids: rows.map(({ id }) => id) } })
    for (const row of rows)
      expect(row).toMatchObject({
        ...{ status: "open", reason: null, next_nonce: null, restored_at: expect.any(Date) },
      })
    await earlier().turn(({ tx }) => tx.update(lanes).set({ restored_at: null }))
  })

  test("of a halted lane is stuck with the lane's reason, and the lane can be reopened", async () => {
    const id = await pairedUnit()
    const reason = "somebody else uses the key"
    await earlier().turn(({ tx }) => tx.update(lanes).set({ status: "halted", reason, next_nonce: 3 }))
    const [lane] = await world.context.db.read.select().from(lanes)
    const laneId = lane?.id ?? ""
    expect((await stuckEntry(id)).reason).toBe(`lane ${laneId} is halted: ${reason}`)
    expect((await operator("retry", id)).document.done).toEndWith(
      `due now, but lane ${laneId} is halted: see chain status, and retry ${laneId}`,
    )
    expect((await operator("retry", laneId)).code).toBe(0)
    const [reopened] = await world.context.db.read.select().from(lanes)
    expect(reopened).toMatchObject({ status: "open", reason: null, next_nonce: null })
    expect(await operator("retry", laneId)).toMatchObject({
      code: 1,
      document: {
        error: { code: "lane.is_open", message: `Lane ${laneId} is open: there is nothing to retry.` },
      },
    })
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })

  test("of a lane without a key can be cancelled, which the command says takes effect once the key is back", async () => {
    const id = await pairedUnit()
    const transactionId = await signedTransaction(id)
    const [lane] = await world.context.db.read.select().from(lanes)
    if (!lane) throw new Error("there is no lane")
    const reason = "the key is not in SIGNER_KEYS"
    const keyless = { ...lane, id: `${chainId}:0x02`, address: "0x02", reason }
    await earlier().turn(async ({ tx }) => {
      await tx.insert(lanes).values(keyless)
      await tx.update(transactions).set({ lane_id: keyless.id }).where(eq(transactions.id, transactionId))
      await tx
        .update(effects)
        .set({ queue: laneQueue(keyless.id) })
        .where(eq(effects.actor_id, id))
    })
    const { code, document } = await operator("cancel", id)
    expect(code).toBe(0)
    expect(document.done).toStartWith(
      `lane ${keyless.id} gives up nonce 7 once its key is in SIGNER_KEYS again: `,
    )
    expect((await stuckEntry(id)).reason).toContain(`; lane ${keyless.id} says: ${reason}`)
    await earlier().turn(async ({ tx }) => {
      await tx.update(transactions).set({ lane_id: lane.id, status: "final", nonce: 6 })
      await tx
        .update(effects)
        .set({ queue: laneQueue(lane.id) })
        .where(eq(effects.actor_id, id))
      await tx.delete(lanes).where(eq(lanes.id, keyless.id))
    })
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })

  test("with an unmined transaction cannot be retried but can be cancelled, which its reason then says", async () => {
    const id = await pairedUnit()
    expect((await operator("cancel", id)).document.error.message).toContain("has a transaction in progress")
    const transactionId = await signedTransaction(id)
    for (const retried of [id, String((await openEffect(id))?.id)])
      expect((await operator("retry", retried)).document.error).toEqual({
        code: "transaction.on_its_way",
        message: `Transaction ${transactionId} is in progress for ${retried}, and its lane sends it again by itself: see explain ${retried}; cancel ${retried} gives up its nonce.`,
      })
    const { retryable, cancellable } = (await operator("explain", id)).document
    expect([retryable, cancellable]).toEqual([[], [transactionId]])
    expect((await stuckEntry(id)).reason).toContain("with nonce 7 is signed and not mined")
    const become = (status: "allocated" | "signed") =>
      earlier().turn(({ tx }) => tx.update(transactions).set({ status }))
    await become("allocated")
    expect((await operator("explain", id)).document.cancellable).toEqual([])
    expect((await operator("cancel", id)).document.error).toEqual({
      code: "transaction.on_its_way",
      message: `Transaction ${transactionId} is not signed yet, and can be given up only then: explain ${id} says what holds it up.`,
    })
    await become("signed")
    for (const given of [id, transactionId])
      expect(await operator("cancel", given)).toMatchObject({
        code: 0,
        document: { id: transactionId, nonce: 7 },
      })
    expect((await stuckEntry(id)).reason).toBe(
      "nonce 7 is given up, and the empty transaction for it is not mined yet",
    )
    expect((await operator("explain", id)).document.cancellable).toEqual([])
    const mined = { status: "mined", block_number: 1, block_hash: "0x01", hash: "0x02" } as const
    await earlier().turn(({ tx }) => tx.update(transactions).set(mined))
    const late = await operator("cancel", transactionId)
    expect([late.code, late.document.error.code, late.document.error.message]).toEqual([
      1,
      "transaction.is_settled",
      `Transaction ${transactionId} is mined or finished: there is nothing to give up.`,
    ])
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })

  test("that failed permanently is stuck until it is retried", async () => {
    const id = await pairedUnit()
    await fail(id)
    expect(await stuckEntry(id)).toMatchObject({
      state: "pending.stopped",
      effect_id: null,
      reason: "stopped: issueUnit.reverted: the call reverts with SerialGap",
    })
    expect(await operator("retry", id)).toMatchObject({ code: 0, document: { id } })
    expect(await openEffect(id)).toMatchObject({ src: "issueUnit" })
  })

  test("of a collection whose deployment failed is stuck until it is retried", async () => {
    const { id } = await earlier().turn((turn) =>
      createCollection(turn, world.context.chains, caller(), { name: "Winter" }),
    )
    await fail(id)
    expect(await stuckEntry(id)).toMatchObject({ machine: "collection-contract", state: "failed" })
    expect((await operator("retry", id)).code).toBe(0)
    await settle(earlier(), id, { transaction_hash: "0x01" })
    expect(await stuckEntry(id)).toBeUndefined()
  })

  test("waits behind the earlier work of its kind and organization, not behind that of others", async () => {
    const pairedUnitOf = async (brand: Caller) => {
      const { id } = await newUnit(earlier(), brand, await activeCollection(earlier(), brand))
      await pair(earlier(), brand, { unit_id: id, is_test: true })
      return id
    }
    const brand = await createCaller(earlier())
    const ids = [
      await pairedUnitOf(await createCaller(earlier())),
      await pairedUnitOf(brand),
      await pairedUnitOf(brand),
    ]
    const waits = await Promise.all(ids.map(async (id) => (await operator("explain", id)).document.waits_for))
    const behind = "; 1 effect of its kind and organization is ahead of it there"
    expect(waits.map((text) => text.endsWith(behind))).toEqual([false, false, true])
    expect(waits[1]).not.toContain("ahead of it")
    for (const id of ids) await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })

  test("that waits for a wallet to submit a transaction is not stuck", async () => {
    const id = await pairedUnit()
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
    const [chip] = await world.context.db.read.select().from(chips).where(eq(chips.unit_id, id))
    const session = sessionOf(caller(), chip?.chip_id ?? "", id)
    const context = contextWithChain(earlier(), { owner: alice, isReachable: true })
    const { id: transferId } = await transfer({ ...earlier(), context }, session, id, { recipient: bob })
    expect(await stuckEntry(transferId)).toBeUndefined()
    expect((await operator("explain", transferId)).document.waits_for).toContain(
      "somebody's wallet may submit it",
    )
  })

  test("that was postponed is due at once after a retry by its own ID or its unit's", async () => {
    const id = await pairedUnit()
    const effect = await openEffect(id)
    for (const retried of [id, effect?.id ?? ""]) {
      const due_at = new Date(Date.now() + 3_600_000)
      await earlier().turn(({ tx }) => tx.update(effects).set({ due_at }).where(eq(effects.actor_id, id)))
      expect((await operator("retry", retried)).code).toBe(0)
      expect((await openEffect(id))?.due_at.getTime()).toBeLessThanOrEqual(Date.now())
    }
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })

  test("that is done cannot be retried", async () => {
    const id = await pairedUnit()
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
    for (const unknown of [id, newId(), "nonsense"])
      expect((await operator("retry", unknown)).document.error.code).toBe("not_found.resource")
  })

  test("is explained with its journal, its effects and what it waits for", async () => {
    const id = await pairedUnit()
    await fail(id)
    const { code, document } = await operator("explain", id)
    expect(code).toBe(0)
    expect(document).toMatchObject({
      id,
      machine: "unit-token",
      state: "pending.stopped",
      waits_for: expect.stringContaining("the call reverts with SerialGap"),
      journal: [
        { number: 1, event: { type: "xstate.init" }, from_state: null, to_state: "pending.unpaired" },
        { number: 2, event: { type: "PAIRED" }, to_state: "pending.issuing" },
        { number: 3, event: { type: "xstate.error.actor.issueUnit" }, to_state: "pending.stopped" },
      ],
      effects: [{ src: "issueUnit", status: "failed", last_error: "the call reverts with SerialGap" }],
      transactions: [],
    })
  })

  test("can be explained by the ID of an effect or of the paired chip, too", async () => {
    const id = await pairedUnit()
    const effect = await openEffect(id)
    const [chip] = await world.context.db.read.select().from(chips).where(eq(chips.unit_id, id))
    for (const name of [effect?.id ?? "", chip?.chip_id.toLowerCase() ?? ""])
      expect((await operator("explain", name)).document.id).toBe(id)
    expect((await runPlain({}, "explain", id)).stdout).toContain("PAIRED")
    expect((await operator("explain", newId())).code).toBe(1)
    await settle(earlier(), id, { serial: 1, transaction_hash: "0x01" })
  })
})

describe("chain status", () => {
  test("shows the lanes of a chain that does not respond", async () => {
    const { code, document, stdout } = await operator("chain", "status")
    expect(code).toBe(0)
    expect(document.chains).toMatchObject([{ chain_id: chainId, name: "local", reachable: false }])
    expect(document.lanes).toMatchObject([
      { chain_id: chainId, status: "open", nonce_latest: null, balance_wei: null },
    ])
    expect(stdout).not.toContain(signerKey.slice(2))
  })

  test("is what other commands point to, in one line, if the chain does not respond", async () => {
    const { code, stderr } = await runPlain({}, "chain", "roles")
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^operator: the chain does not answer \(.+\): see chain status, .+ CHAINS\n$/,
      ),
    })
  })

  test("says why a lane has no key", async () => {
    const [lane] = await world.context.db.read.select().from(lanes)
    if (!lane) throw new Error("there is no lane")
    const others = [
      { ...lane, id: "5:0x01", chain_id: 5, address: "0x01" },
      { ...lane, id: `${chainId}:0x02`, address: "0x02" },
    ]
    await earlier().turn(({ tx }) => tx.insert(lanes).values(others))
    const { stdout } = await runPlain({}, "chain", "status")
    await earlier().turn(({ tx }) =>
      tx.delete(lanes).where(
        inArray(
          lanes.id,
          others.map(({ id }) => id),
        ),
      ),
    )
    expect(stdout).toMatch(/^5:0x01 .+ no, its chain is not in CHAINS /m)
    expect(stdout).toMatch(/^31337:0x02 .+ no, its key is not in SIGNER_KEYS /m)
  })

  test("counts serials that exist only on the chain until units take them", async () => {
    const unit = await newUnit(earlier(), caller(), await activeCollection(earlier(), caller()))
    const collection_id = unit.collection_id ?? ""
    const found_at = new Date()
    const found = [3, 4].map((serial) => ({
      ...{ collection_id, serial, chip_id: `04000000A${serial}`, transaction_hash: "0x01", found_at },
    }))
    await earlier().turn(({ tx }) => tx.insert(foundSerials).values(found))
    const unasked = async () => (await operator("chain", "status")).document.unasked_serials
    expect(await unasked()).toEqual([{ collection_id, serials: 2 }])
    const { stdout } = await runPlain({}, "chain", "status")
    expect(stdout).toContain("serials that the chain has and no unit")
    const issued = { token_status: "active", serial: 4 } as const
    await earlier().turn(({ tx }) => tx.update(units).set(issued).where(eq(units.id, unit.id)))
    expect(await unasked()).toEqual([{ collection_id, serials: 1 }])
  })

  test("lists each serial whose chip also has another serial, with its owner on the chain", async () => {
    const unit = await newUnit(earlier(), caller(), await activeCollection(earlier(), caller()))
    const collection_id = unit.collection_id ?? ""
    const body = { unit_id: unit.id, is_test: true } as const
    const { chip_id } = await pair(earlier(), caller(), body)
    const found_at = new Date()
    const issued = { token_status: "active", serial: 1 } as const
    const owner = `0x${"AB".repeat(20)}`
    await earlier().turn(async ({ tx }) => {
      await tx.update(units).set(issued).where(eq(units.id, unit.id))
      for (const serial of [2, 3])
        await tx
          .insert(foundSerials)
          .values({ collection_id, serial, chip_id, transaction_hash: "0x01", found_at })
      await tx.insert(foundOwners).values({ collection_id, serial: 3, owner, block_number: 7, found_at })
    })
    const { document } = await operator("chain", "status")
    expect(document.unasked_serials).not.toContainEqual(expect.objectContaining({ collection_id }))
    expect(document.doubled_serials).toMatchObject([
      { serial: 2, unit_serial: 1, owner: null },
      { serial: 3, unit_serial: 1, owner },
    ])
    const { stdout } = await runPlain({}, "chain", "status")
    expect(stdout).toContain(`chip ${chip_id} is bound to serials 1 and 2 of collection ${collection_id}`)
    expect(stdout).toContain("leave 2 in custody, where nobody can claim it")
    expect(stdout).toContain(`3 belongs to ${owner}: have unit ${unit.id} claimed for the same owner`)
    await settle(earlier(), unit.id, { serial: 1, transaction_hash: "0x01" })
  })

  test("shows the nonces and balances of a chain that responds", async () => {
    const chain = await startChain()
    try {
      writeChains(chain.client.transport.url as string)
      const { document } = await operator("chain", "status")
      expect(document.chains).toMatchObject([{ reachable: true, block_number: 0, error: null }])
      expect(document.lanes).toMatchObject([{ nonce_latest: 0, nonce_pending: 0, balance_wei: "0" }])
    } finally {
      await chain.stop()
    }
  })

  test("says in text output, too, what is wrong with a chain that responds", async () => {
    const chain = await startChain()
    const isOther = ({ method }: Call) => (method === "eth_chainId" ? { result: "0x2105" } : null)
    const other = startLesserNode(chain.client.transport.url as string, isOther)
    try {
      const url = chain.client.transport.url as string
      for (const urls of [[other.url], [url, other.url]]) {
        writeChains(...urls)
        expect((await runPlain({}, "chain", "status")).stdout).toMatch(
          /^31337 +local +yes, but it has a provider that serves chain 8453: correct rpc_urls/m,
        )
      }
      writeChains(url)
      expect((await runPlain({}, "chain", "status")).stdout).toMatch(
        /^31337 +local +yes, but it has no contract at factory_address 0x5Fb.{37}: deploy the factory/m,
      )
      const params = [factory_address, "0x60"]
      await chain.client.request({ method: "anvil_setCode", params } as never)
      expect((await runPlain({}, "chain", "status")).stdout).toMatch(/^31337 +local +yes +0$/m)
    } finally {
      await other.stop()
      await chain.stop()
    }
  })

  test("shows everything else if the node does not support the pending block", async () => {
    const chain = await startChain()
    const node = startLesserNode(chain.client.transport.url as string, withoutPending)
    try {
      writeChains(node.url)
      const { document } = await operator("chain", "status")
      expect(document.chains).toMatchObject([{ reachable: true, error: null }])
      expect(document.lanes).toMatchObject([{ nonce_latest: 0, nonce_pending: null, balance_wei: "0" }])
    } finally {
      await node.stop()
      await chain.stop()
    }
  })
})
