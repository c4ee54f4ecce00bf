import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { eq, type SQL } from "drizzle-orm"
import { type Address, parseAbi, parseEther } from "viem"
import { runbooks } from "../../src/api/docs/guides.ts"
import { startServer } from "../../src/api/server.ts"
import { apiKeys, publishableKeys } from "../../src/db/schema.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { type Environment, loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { startWorkers } from "../../workers/start.ts"
import { accountAt, openStage, type Stage } from "../faults/stage.ts"

// Each page is followed from top to bottom on one service, with the settings that the previous page left. Operator
// commands run in this process, which saves starting a hundred others; everything else runs in a shell as printed.

setDefaultTimeout(60_000)
const root = join(import.meta.dir, "../..")

/** The processes of a service, started with the shell's current settings. */
type Running = { world: World; stop(): Promise<void> }

let stage: Stage
let blocks: Timer
let settings: Environment
let api: Running | undefined
const workers: Running[] = []
let shell: ReturnType<typeof serveOperator>
let key: string
let olderKey: string

beforeAll(async () => {
  stage = await openStage({ confirmation_depth: 1, finality_depth: 4 }, 1)
  blocks = setInterval(() => void stage.anvil.client.mine({ blocks: 1 }).catch(() => {}), 200)
  const port = String(await freePort())
  settings = {
    ...stage.environment,
    ...{ LOG_LEVEL: "silent", PORT: port, HOST: "127.0.0.1", OPERATOR_PORT: "0" },
    ...{ API: `http://127.0.0.1:${port}`, API_BASE_URL: `http://localhost:${port}`, HOME: stage.folder },
  }
  shell = serveOperator()
  await startAll()
  const { context } = (api as Running).world
  const made = await inTurn(context, null, async (turn) => {
    const { id } = await createOrganization(turn, {
      ...{ name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] },
    })
    olderKey = (await issueApiKey(turn, { organization_id: id, name: "of somebody else" })).key
    return await issueApiKey(turn, { organization_id: id, name: "first" })
  })
  key = made.key
  settings = { ...settings, ORGANIZATION: String(made.row.organization_id), KEY: key }
  await ask("POST", "/v1/webhook-endpoints", { url: "http://localhost:9/hook" })
  await ask("GET", "/v1/publishable-keys")
})
afterAll(async () => {
  await stopAll()
  shell.stop(true)
  clearInterval(blocks)
  await stage.close()
})

const goneProvider = "http://127.0.0.1:9"

/** What a page achieves, besides that each of its commands succeeds. */
const outcomes: Record<string, (printed: string, before: Environment) => Promise<unknown>> = {
  runbooks: async (printed) => expect(printed).toContain("NEWEST BLOCK"),
  "rotate-service-secret": async (printed, before) => {
    expect(printed).toContain("SERVICE_SECRET is enough now")
    expect(settings.SERVICE_SECRET).not.toBe(before.SERVICE_SECRET)
    await expect(openWorld(configOf(before), tell)).rejects.toThrow("SERVICE_SECRET is not the one")
  },
  "rotate-api-keys": async (printed) => {
    expect(await statusWith(key)).toBe(401)
    expect(await statusWith(olderKey)).toBe(200)
    key = keyIn(printed)
    settings = { ...settings, KEY: key }
    expect(await statusWith(key)).toBe(200)
    expect(printed).toContain("the old one ends")
  },
  "rotate-signer": async (printed, before) => {
    const [, kept] = String(before.SIGNER_KEYS).split(",")
    expect(settings.SIGNER_KEYS).toBe(`${settings.NEW_KEY},${kept}`)
    expect(printed).toContain(", its key is not in SIGNER_KEYS")
    expect(printed).not.toContain("keys\nSIGNER_KEYS")
  },
  "rotate-authorizer": async (printed) => expect(printed).not.toContain("keys\nAUTHORIZER_KEY"),
  "rotate-webhook-secrets": async (printed) => expect(printed).toContain('"secret":"whsec_'),
  "rotate-receipt-key": async (printed) => expect(printed).toContain('"keys":[{'),
  "leaked-keys": async (printed) => {
    // A process caches a key's validity for five seconds; a new process has nothing cached.
    await stopAll()
    await startAll()
    expect(await statusWith(key)).toBe(401)
    key = keyIn(printed)
    settings = { ...settings, KEY: key }
    expect(await statusWith(key)).toBe(200)
    for (const act of ["suspend", "resume"]) expect(printed).toContain(act)
  },
  "restore-a-back-up": async () => expect(await statusWith(key)).toBe(200),
  "chain-halted": async (printed) => expect(printed).toContain("REACHABLE"),
  "provider-gone": async () => {
    const providers = configOf(settings).chains[0]?.rpc_urls ?? []
    expect(providers).not.toContain(goneProvider)
    expect(providers.length).toBeGreaterThan(0)
  },
  upgrade: async () => expect(await statusWith(key)).toBe(200),
  "scale-out": async () => expect(workers).toHaveLength(2),
  "tls-and-proxies": async (printed) => {
    const [one, other] = [...printed.matchAll(/x-ratelimit-remaining: (\d+)/gi)].map(([, room]) => room)
    expect([one, other]).toEqual([expect.any(String), one])
  },
  "brand-leaves": async (printed) => {
    expect(printed).not.toContain("localhost:9/hook")
    await stopAll()
    await startAll()
    expect(await statusWith(key)).toBe(403)
  },
}

describe("the runbooks", () => {
  test("are all covered", () => expect(runbooks().map(({ name }) => name)).toEqual(Object.keys(outcomes)))

  for (const { name, markdown } of runbooks())
    test(`${name} works as printed`, async () => {
      const before = settings
      const printed = await follow(markdown)
      await outcomes[name]?.(printed, before)
    })
})

/** Runs the commands of a page, and does in their place what its manual steps say. */
async function follow(markdown: string): Promise<string> {
  const blocks = [...markdown.matchAll(/^( *)```sh\n([\s\S]*?)^ *```$/gm)]
  const lines = blocks.flatMap(([, indent = "", text = ""]) =>
    text.split("\n").map((line) => line.slice(indent.length)),
  )
  let printed = ""
  let waiting: string[] = []
  for (const line of [...lines, "# done"]) {
    const byHand = /^# (.+)$/.exec(line)?.[1]
    if (byHand === undefined) {
      waiting.push(line)
      continue
    }
    printed += await inShell(waiting.join("\n"))
    waiting = []
    const hand = hands[byHand]
    if (!hand) throw new Error(`nobody knows how to: ${byHand}`)
    await hand()
  }
  return printed
}

const hands: Record<string, () => Promise<unknown>> = {
  done: async () => {},
  "set OLD_KEY_ID to the id of the key that ends": async () => {
    const { id } = await rowOf(apiKeys, eq(apiKeys.name, "first"))
    settings = { ...settings, OLD_KEY_ID: id }
  },
  "set PUBLISHABLE_KEY_ID to the id of the key that ends": async () => {
    const { id } = await rowOf(publishableKeys)
    settings = { ...settings, PUBLISHABLE_KEY_ID: id }
  },
  "set PLACE to the old key's place in SIGNER_KEYS, 1 for the first": async () => {
    settings = { ...settings, PLACE: "1" }
  },
  "set CHAIN_ID and NUMBER to the provider's chain and its number in rpc_urls, 1 for the first": async () => {
    const file = Bun.file(String(settings.CHAINS))
    const chains = await file.json()
    chains["31337"].rpc_urls.unshift(goneProvider)
    await file.write(JSON.stringify(chains))
    settings = { ...settings, CHAIN_ID: "31337", NUMBER: "1" }
  },
  "the brand changes over to the new key": async () => {},
  "restart every process": async () => {
    await stopAll()
    await startAll()
  },
  "stop every process": stopAll,
  "start every process": startAll,
  "start another worker": startWorker,
  "send NEW_ADDRESS money": () =>
    stage.anvil.client.setBalance({ address: newAddress(), value: parseEther("1") }),
  "the factory's admin gives NEW_ADDRESS the roles of a signer": () =>
    asAdmin("setRoles", [newAddress(), everyRole]),
  "the factory's admin names NEW_ADDRESS as authorizer": () =>
    asAdmin("setAuthorizer", [newAddress(), inAnHour()]),
}

/** Returns the key that is meant, or the only one. */
async function rowOf(table: typeof apiKeys | typeof publishableKeys, which?: SQL): Promise<{ id: string }> {
  const [row] = await (api as Running).world.context.db.read.select({ id: table.id }).from(table).where(which)
  if (!row) throw new Error("there is no such key")
  return row
}

const adminAbi = parseAbi([
  "function setRoles(address account, uint256 granted)",
  "function setAuthorizer(address account, uint256 previousUntil)",
])
/** To issue, to claim, to replace chips and to deploy. */
const everyRole = 15n
const inAnHour = () => BigInt(Math.floor(Date.now() / 1_000) + 3_600)

async function asAdmin(functionName: "setRoles" | "setAuthorizer", args: readonly unknown[]) {
  const { client } = stage.anvil
  const address = configOf(settings).chains[0]?.factory_address as Address
  const call = { account: accountAt(0), chain: null, address, abi: adminAbi, functionName, args }
  const hash = await client.writeContract(call as Parameters<typeof client.writeContract>[0])
  const { status } = await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  expect(status).toBe("success")
}

function newAddress(): Address {
  return settings.NEW_ADDRESS as Address
}

function configOf(environment: Environment) {
  return loadConfig(environment)
}

async function startAll(): Promise<void> {
  const world = await openWorld(configOf(settings), tell)
  const server = await startServer(world.context)
  api = {
    world,
    async stop() {
      await server.stop()
      await world.close()
    },
  }
  await startWorker()
}

async function startWorker(): Promise<void> {
  const world = await openWorld(configOf(settings), tell)
  const running = startWorkers(world)
  workers.push({
    world,
    async stop() {
      await running.stop()
      await world.close()
    },
  })
}

async function stopAll(): Promise<void> {
  for (const worker of workers.splice(0)) await worker.stop()
  await api?.stop()
  api = undefined
}

/** Runs commands with the settings, and keeps what they export. */
async function inShell(script: string): Promise<string> {
  if (script.trim() === "") return ""
  const child = Bun.spawn(["bash", "-eu", "-o", "pipefail"], {
    cwd: root,
    stdin: new Blob([`${operatorInShell}\n${script}\nenv -0 > "$HOME/left"`]),
    stdout: "pipe",
    stderr: "pipe",
    env: { ...settings, PATH: `${join(process.execPath, "..")}:${process.env.PATH}`, ASKED: shell.url.href },
  })
  const printed = await new Response(child.stdout).text()
  const complaint = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`${script}\n${printed}\n${complaint}`)
  const left = (await Bun.file(join(stage.folder, "left")).text()).split("\0").filter(Boolean)
  const {
    PATH: _path,
    ASKED: _asked,
    ...kept
  } = Object.fromEntries(
    left.map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]),
  )
  settings = kept
  return printed
}

/** A shell function that passes `bun run operator` and its environment to this process. */
const operatorInShell = `
bun() {
  case "\${1-} \${2-}" in
    "run operator") shift 2; { env -0; printf '\\0%s' "$@" | sed 's/^/\\x00/' ; } | curl -sS --fail-with-body --data-binary @- "$ASKED" ;;
    "install --frozen-lockfile") echo "what is installed is as bun.lock says" ;;
    *) command bun "$@" ;;
  esac
}`

function serveOperator() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.text()
      const cut = text.indexOf("\0\0")
      const environment = Object.fromEntries(
        text
          .slice(0, cut)
          .split("\0")
          .filter((each) => each.includes("="))
          .map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]),
      )
      const words = text
        .slice(cut + 2)
        .split("\0")
        .filter(Boolean)
      let said = ""
      const note = (part: string) => {
        said += part
      }
      const terminal = {
        print: note,
        complain: note,
      }
      const exitCode = await runOperator(() => environment, terminal, words)
      return new Response(said, { status: exitCode === 0 ? 200 : 400 })
    },
  })
}

function keyIn(printed: string): string {
  const [issued] = printed.match(/end_sk_\w+(?![\w…])/g) ?? []
  if (!issued) throw new Error(`no key was printed: ${printed}`)
  return issued
}

async function statusWith(credential: string): Promise<number> {
  return (await fetch(`${settings.API}/v1/units`, { headers: { authorization: `Bearer ${credential}` } }))
    .status
}

async function ask(method: string, path: string, body?: object): Promise<void> {
  const answer = await fetch(`${settings.API}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(answer.status).toBeLessThan(300)
}
