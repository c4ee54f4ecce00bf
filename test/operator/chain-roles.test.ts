import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Address, encodeFunctionData, getAddress, type Hex } from "viem"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { accountAt, openStage, type Stage, signers } from "../faults/stage.ts"

setDefaultTimeout(60_000)
const admin = accountAt(0)
const newcomer = accountAt(8).address

let stage: Stage
beforeAll(async () => {
  stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  environment = stage.environment
})
afterAll(() => stage.close())

// biome-ignore lint/suspicious/noExplicitAny: the document is whatever the command prints
type Run = { code: number; document: any; complaint: string }

let environment: Stage["environment"] = {}
async function operator(...words: string[]): Promise<Run> {
  const said = { printed: "", complaint: "" }
  const terminal = {
    print: (text: string) => {
      said.printed += text
    },
    complain: (text: string) => {
      said.complaint += text
    },
  }
  const code = await runOperator(() => environment, terminal, [...words, "--json"])
  return { code, document: code === 2 ? null : JSON.parse(said.printed), complaint: said.complaint }
}

/** What a command prints for people. */
async function shown(...words: string[]): Promise<string> {
  let printed = ""
  const print = (text: string) => {
    printed += text
  }
  expect(await runOperator(() => environment, { print, complain: () => {} }, words)).toBe(0)
  return printed.trimEnd()
}

/** Signs a printed call, as an admin whose key is held elsewhere would. */
async function sign({ document }: Run): Promise<void> {
  const { to, data } = document as { to: Address; data: Hex }
  const { client } = stage.anvil
  const hash = await client.sendTransaction({ account: admin, to, data, gas: 300_000n })
  await client.mine({ blocks: 1 })
  expect((await client.getTransactionReceipt({ hash })).status).toBe("success")
}

function factory(functionName: "paused" | "baseURI" | "baseURIFrozen" | "releaseAt" | "authorizer") {
  const address = stage.world.context.config.chains[0]?.factory_address as Address
  return stage.anvil.client.readContract({ address, abi: factoryAbi, functionName })
}

test("chain roles shows that each key has the roles that it needs, and prints a call for each missing role", async () => {
  const { document } = await operator("chain", "roles")
  expect(document).toMatchObject({ chain_id: 31_337, admin: admin.address, paused: false, calls: [] })
  const desk = stage.world.context.config.chains[0]?.desk_address
  expect(document.keys).toEqual([
    { account: signers[0], is: "signer", roles: 6, needed: 6 },
    { account: signers[1], is: "signer", roles: 9, needed: 9 },
    { account: desk, is: "desk", roles: 7, needed: 7 },
  ])
  await sign(await operator("chain", "call", "revoke", "--account", signers[1], "--roles", "deploy"))
  const lacking = await operator("chain", "roles")
  expect(lacking.document.keys[1]).toMatchObject({ account: signers[1], roles: 1, needed: 9 })
  await sign({ ...lacking, document: lacking.document.calls[0] })
  expect((await operator("chain", "roles")).document.calls).toEqual([])
})

test("chain roles says what stops keys that have their roles: a pause, and another authorizer", async () => {
  const end = async () => (await shown("chain", "roles")).split("\n\n").at(-1)
  expect(await end()).toBe("nothing is missing")
  await sign(await operator("chain", "call", "pause"))
  expect(await end()).toBe(
    "the factory is paused: no key can do anything until its admin sends this call: operator chain call resume --chain 31337",
  )
  await sign(await operator("chain", "call", "resume"))
  const before = String(await factory("authorizer"))
  await sign(await operator("chain", "call", "set-authorizer", "--account", newcomer, "--overlap-hours", "0"))
  expect(await end()).toStartWith(`AUTHORIZER_KEY is the key of ${before}, but the authorizer`)
  expect((await operator("chain", "roles")).document.key_faults).toHaveLength(1)
  await sign(await operator("chain", "call", "set-authorizer", "--account", before, "--overlap-hours", "0"))
  expect(await end()).toBe("nothing is missing")
})

test("keys of a chain that responds slowly are never said to lack nothing", async () => {
  const slow = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    async fetch(request) {
      await Bun.sleep(1_200)
      const headers = { "content-type": "application/json" }
      return await fetch(stage.anvil.url, { method: "POST", headers, body: await request.text() })
    },
  })
  const before = String(await factory("authorizer"))
  await sign(await operator("chain", "call", "set-authorizer", "--account", newcomer, "--overlap-hours", "0"))
  environment = withChain({ rpc_urls: [`http://127.0.0.1:${slow.port}`] })
  const roles = await shown("chain", "roles")
  const { document } = await operator("chain", "status")
  environment = stage.environment
  await sign(await operator("chain", "call", "set-authorizer", "--account", before, "--overlap-hours", "0"))
  await slow.stop(true)
  expect(roles.split("\n\n").at(-1)).toStartWith(`AUTHORIZER_KEY is the key of ${before}, but the authorizer`)
  expect(document.chains).toMatchObject([{ reachable: true }])
  expect(document.key_faults).toEqual([
    "whether keys lack their roles on chain 31337 is unknown: it did not answer in time",
  ])
})

test("keys of a chain without its factory are said to be unknown, and not because it were slow", async () => {
  environment = withChain({ factory_address: accountAt(7).address })
  const { document } = await operator("chain", "status")
  environment = stage.environment
  expect(document.chains[0].trouble).toContain("has no contract at factory_address")
  expect(document.key_faults).toEqual([
    expect.stringContaining(
      "whether keys lack their roles on chain 31337 is unknown: there is no factory at 0x",
    ),
  ])
})

test("grant adds to the existing roles, and revoke removes one or all of them", async () => {
  const rolesNow = async () => {
    const { document } = await operator("chain", "roles")
    const found = document.keys.find(({ account }: { account: string }) => account === newcomer)
    return found?.roles ?? 0
  }
  for (const [act, roles, then] of [
    ["grant", "issue,claim", 3],
    ["grant", "replace", 7],
    ["revoke", "issue", 6],
    ["revoke", null, 0],
  ] as const) {
    const words = ["chain", "call", act, "--account", newcomer, ...(roles ? ["--roles", roles] : [])]
    await sign(await operator(...words))
    expect(await rolesNow()).toBe(then)
  }
})

const ownBase = "https://tokens.test/metadata"

test("freeze-metadata-base names the base that becomes permanent, and METADATA_BASE_URL if that is another one", async () => {
  const freeze = () => operator("chain", "call", "freeze-metadata-base")
  const does = async () => (await freeze()).document.does as string
  environment = { ...stage.environment, METADATA_BASE_URL: ownBase }
  const { code, document } = await freeze()
  expect([code, document.error.code]).toEqual([1, "metadata_base.not_set"])
  await setBase("ipfs://bafy/metadata")
  expect(await does()).toContain(
    "which is ipfs://bafy/metadata now: metadata that is not there can never be read",
  )
  expect(await does()).toEndWith(`; METADATA_BASE_URL is another one, ${ownBase}`)
  await setBase(ownBase)
  expect(await does()).toEndWith("can never be read")
  environment = stage.environment
  expect(await does()).toEndWith("can never be read")
  await clearBase()
})

test("chain roles says what to do about a metadata base that is not METADATA_BASE_URL, unless that is on this machine", async () => {
  const end = async () => (await shown("chain", "roles")).split("\n\n").at(-1)
  expect(await end()).toBe("nothing is missing")
  environment = { ...stage.environment, METADATA_BASE_URL: ownBase }
  const call = `or have the admin send this call: operator chain call set-metadata-base --chain 31337 --url ${ownBase}`
  for (const [base, said] of [
    ["", "not set"],
    ["https://other.test/metadata", "https://other.test/metadata"],
  ] as const) {
    if (base !== "") await setBase(base)
    const { metadata_base_fault: fault } = (await operator("chain", "roles")).document
    expect(fault).toEndWith(
      `is ${said}, but METADATA_BASE_URL is ${ownBase}: correct METADATA_BASE_URL, ${call}`,
    )
    expect(await end()).toBe(fault)
  }
  for (const base of ["ipfs://bafy", "ar://tx", ownBase]) {
    await setBase(base)
    expect(await end()).toBe("nothing is missing")
  }
  expect((await operator("chain", "roles")).document.metadata_base_fault).toBeNull()
  environment = stage.environment
  expect(await end()).toBe("nothing is missing")
  await clearBase()
})

async function setBase(base: string): Promise<void> {
  await sign(await operator("chain", "call", "set-metadata-base", "--url", base))
}

/** Leaves the factory as it was deployed. */
async function clearBase(): Promise<void> {
  const run = await operator("chain", "call", "set-metadata-base", "--url", ownBase)
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "setBaseURI", args: [""] })
  await sign({ ...run, document: { ...run.document, data } })
}

test("set-metadata-base takes a base below which a token's path makes a URL: https, http, ipfs or ar", async () => {
  const codeFor = async (url: string) =>
    (await operator("chain", "call", "set-metadata-base", "--url", url)).code
  for (const url of [
    ...["https://tokens.test", "https://tokens.test:8443/metadata", "ipfs://bafy/metadata", "ar://tx"],
    ...["http://localhost:3000/metadata", "http://127.0.0.1/metadata", "http://tokens.lan/metadata"],
  ])
    expect([url, await codeFor(url)]).toEqual([url, 0])
  for (const url of [
    ...["tokens.test:443/metadata", "tokens.test/metadata", "ftp://tokens.test", "javascript:alert(1)"],
    ...["https://", "https://a:b@tokens.test"],
    ...[
      "https://tokens.test/metadata?x=1",
      "https://tokens.test/metadata#x",
      "https://tokens.test/my metadata",
    ],
    ...[" https://tokens.test", "https://tokens.test\n", "ipfs://bafy/"],
  ])
    expect([url, await codeFor(url)]).toEqual([url, 2])
})

test("the admin's other calls have the effect that they name", async () => {
  const call = async (...words: string[]) => await sign(await operator("chain", "call", ...words))
  await call("pause")
  expect(await factory("paused")).toBe(true)
  await call("resume")
  expect(await factory("paused")).toBe(false)
  await call("announce-release")
  expect(await factory("releaseAt")).toBeGreaterThan(0n)
  await call("cancel-release")
  expect(await factory("releaseAt")).toBe(0n)
  await call("set-metadata-base", "--url", "https://tokens.test/metadata")
  expect(await factory("baseURI")).toBe("https://tokens.test/metadata")
  await call("freeze-metadata-base")
  expect(await factory("baseURIFrozen")).toBe(true)
  environment = { ...stage.environment, METADATA_BASE_URL: "https://other.test/metadata" }
  expect((await operator("chain", "roles")).document.metadata_base_fault).toEndWith(
    "it is frozen, so METADATA_BASE_URL has to be the same",
  )
  environment = stage.environment
  const before = await factory("authorizer")
  await call("set-authorizer", "--account", newcomer, "--overlap-hours", "2")
  const { document } = await operator("chain", "roles")
  expect([document.authorizer, document.previous_authorizer.account]).toEqual([newcomer, before])
  await call("set-authorizer", "--account", getAddress(String(before)), "--overlap-hours", "0")
  expect((await operator("chain", "roles")).document.previous_authorizer).toBeNull()
})

test("set-authorizer accepts the current authorizer only to end the previous one sooner, so that a leaked key is never trusted longer", async () => {
  const name = (account: unknown, ...hours: string[]) =>
    operator("chain", "call", "set-authorizer", "--account", String(account), ...hours)
  const overlap = (hours: number) => ["--overlap-hours", String(hours)]
  const refusal = async (run: Promise<Run>) => {
    const { code, document } = await run
    expect([code, document.error.code]).toEqual([1, "authorizer.is_named"])
    return document.error.message
  }
  const previous = async () => (await operator("chain", "roles")).document.previous_authorizer
  const leaked = await factory("authorizer")
  await sign(await name(newcomer, ...overlap(0)))
  const said = `${newcomer} is already the authorizer, and what ${leaked} signed has ended`
  expect(await refusal(name(newcomer))).toStartWith(said)
  expect(await refusal(name(newcomer, ...overlap(1)))).toStartWith(said)
  await sign(await name(newcomer, ...overlap(0)))
  expect(await previous()).toBeNull()

  await sign(await name(leaked, ...overlap(3)))
  const { until } = await previous()
  expect(await refusal(name(leaked))).toStartWith(
    `${leaked} is already the authorizer, and what ${newcomer} signed holds until ${until}`,
  )
  await sign(await name(leaked, ...overlap(1)))
  const sooner = await previous()
  expect(sooner.account).toBe(newcomer)
  expect(sooner.until < until).toBe(true)
  await sign(await name(leaked, ...overlap(0)))
  expect(await previous()).toBeNull()
})

/** The stage's environment, with other settings of its chain. */
function withChain(changes: object): Stage["environment"] {
  const chains = JSON.parse(readFileSync(stage.environment.CHAINS ?? "", "utf8"))
  const CHAINS = join(stage.folder, "changed-chains.json")
  writeFileSync(CHAINS, JSON.stringify({ 31337: { ...chains[31337], ...changes } }))
  return { ...stage.environment, CHAINS }
}

test("set-authorizer says whose authorizations a second rotation ends, because a factory knows one previous authorizer", async () => {
  const name = (account: string, hours: number) =>
    operator("chain", "call", "set-authorizer", "--account", account, "--overlap-hours", String(hours))
  const does = async (account: string) => (await name(account, 2)).document.does
  const before = String(await factory("authorizer"))
  const ends = `; what ${before} signed ends at once`
  const third = accountAt(9).address
  expect(await does(newcomer)).not.toContain("ends at once")
  await sign(await name(newcomer, 3))
  expect(await does(third)).toEndWith(ends)
  expect(await does(before)).not.toContain("ends at once")
  await sign(await name(newcomer, 0))
  expect(await does(third)).not.toContain("ends at once")
  await sign(await name(before, 0))
})

test("invalid arguments are rejected with the correct usage", async () => {
  for (const [words, complaint] of [
    [["grant"], "needs --account, an address"],
    [["grant", "--account", newcomer], "grant needs --roles"],
    [["grant", "--account", newcomer, "--roles", "mint"], '"mint" is not a role; the roles are issue, claim'],
    [["set-authorizer", "--account", newcomer, "--overlap-hours", "200"], "takes at most 168"],
    [["set-metadata-base", "--url", "https://tokens.test/"], "without a slash at its end"],
    [["burn"], 'has no "burn"'],
    [["freeze-metadata-base", "--url", "https://a.test/m"], "freeze-metadata-base does not take --url"],
    [["set-authorizer", "--account", newcomer, "--roles", "issue"], "does not take --roles"],
  ] as const) {
    const run = await operator("chain", "call", ...words)
    expect(run.code).toBe(2)
    expect(run.complaint).toContain(complaint)
  }
  const { code, document, complaint } = await operator("chain", "call", "pause", "--chain", "5")
  expect(code).toBe(1)
  expect(JSON.stringify(document) + complaint).toContain("chain 5 is not in CHAINS, which has 31337")
  environment = { ...stage.environment, CHAINS: "" }
  for (const words of [["roles"], ["call", "pause"]])
    expect((await operator("chain", ...words)).complaint).toContain("CHAINS names no chain: set it as the")
  environment = stage.environment
})

test("the newest block accepts the longest overlap, however far ahead this machine's clock is", async () => {
  const words = ["chain", "call", "set-authorizer", "--account", newcomer, "--overlap-hours", "168"]
  const { client } = stage.anvil
  await client.mine({ blocks: 1 })
  await Bun.sleep(2_000)
  const { to, data } = (await operator(...words)).document as { to: Address; data: Hex }
  const tried = client.call({ account: admin, to, data, blockTag: "latest" })
  await expect(tried).resolves.toEqual({ data: undefined })
})
