import { Database } from "bun:sqlite"
import { afterEach, describe, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { freePort } from "../../src/platform/free-port.ts"
import { tiedToParent } from "../harness/child-process.ts"

const root = join(import.meta.dir, "../..")
const heldNotice = ["--preload", join(root, "test/harness/held-notice.ts")]
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const entries = [
  ["the API", "src/main.ts"],
  ["a worker", "workers/main.ts"],
] as const

/** An address reserved for documentation, and names that do not exist. */
const notOurs = ["203.0.113.9", "no.such.host.invalid", "no..name"]

describe.each(entries)("%s", (_name, entry) => {
  test("exits with one line if its database does not respond", async () => {
    const { line, exitCode } = await failedStart(entry, {
      DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing",
    })
    expect(line).toMatch(/^Postgres cannot be reached: .+DATABASE_URL/)
    expect(exitCode).toBe(1)
  })

  test("exits with one line if the operator port is in use", async () => {
    const port = await takenPort()
    const { line } = await failedStart(entry, { OPERATOR_PORT: String(port) })
    expect(line).toMatch(`port ${port} for operators is in use`)
    expect(line).toMatch("OPERATOR_PORT")
  })

  test.each(notOurs)("exits with one line if OPERATOR_HOST is %s", async (host) => {
    const OPERATOR_TOKEN = "a-token-of-tests-that-is-long-enough"
    const { line, exitCode } = await failedStart(entry, { OPERATOR_HOST: host, OPERATOR_TOKEN })
    expect(line).toMatch(`OPERATOR_HOST takes an IP address or name of this machine, not "${host}"`)
    expect(exitCode).toBe(1)
  })

  test("rejects a provider that serves another chain, without printing its URL", async () => {
    const { line } = await failedStart(entry, {
      CHAINS: chainsFile(fakeChain({ chain_id: 5, code: "0x60" })),
    })
    expect(line).toBe(
      "CHAINS: provider number 1 in rpc_urls of chain 31337 serves chain 5; correct rpc_urls or the chain id",
    )
  })

  test("rejects a chain without the factory", async () => {
    const { line } = await failedStart(entry, {
      CHAINS: chainsFile(fakeChain({ chain_id: 31_337, code: "0x" })),
    })
    expect(line).toMatch(/^CHAINS: chain 31337 has no contract at factory_address 0x/)
  })

  test("starts with a warning if one of several providers lacks the factory, and says which", async () => {
    const has = fakeChain({ chain_id: 31_337, code: "0x60" })
    const lacks = fakeChain({ chain_id: 31_337, code: "0x" })
    const log = await logOfRun(entry, { CHAINS: chainsFile("http://127.0.0.1:1/with-a-key", lacks, has) })
    expect(log).toMatch("provider number 2 in rpc_urls of chain 31337 has no contract at factory_address 0x")
    expect(log).not.toMatch("number 3 in rpc_urls")
  })

  test("starts with a warning if a chain does not respond, reports that it is ready, and stops normally", async () => {
    const log = await logOfRun(entry, { CHAINS: chainsFile("http://127.0.0.1:1/with-a-key") })
    expect(log).toMatch("provider number 1 in rpc_urls of chain 31337 failed (econnrefused")
    expect(log).not.toMatch("with-a-key")
  })
})

test("the API exits with one line if its port is in use", async () => {
  const port = await takenPort()
  const { line } = await failedStart("src/main.ts", { PORT: String(port) })
  expect(line).toBe(`port ${port} is in use; free it, or set PORT to another one`)
})

test.each(notOurs)("the API exits with one line if HOST is %s", async (host) => {
  const { line, exitCode } = await failedStart("src/main.ts", { HOST: host })
  expect(line).toBe(
    `HOST takes an IP address or name of this machine, not "${host}"; 0.0.0.0 means all addresses`,
  )
  expect(exitCode).toBe(1)
})

test("an API that picks its own port has that port in every URL", async () => {
  const reader = start("src/main.ts", { PORT: "0", LOG_LEVEL: "info" }).stderr.getReader()
  let log = ""
  while (!log.includes("the API is listening")) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`it ended before it listened: ${log}`)
    log += new TextDecoder().decode(value)
  }
  const [, port = "none"] = /"port":(\d+)/.exec(log) ?? []
  const base_url = `http://127.0.0.1:${port}`
  expect(await (await fetch(`${base_url}/health`)).json()).toMatchObject({ api_base_url: base_url })
  const refused = await (await fetch(`${base_url}/v1/units`)).json()
  expect(refused).toMatchObject({ error: { doc_url: `${base_url}/docs/errors/auth.unauthorized` } })
})

test("an API that is asked to stop reports not ready before it rejects requests, and waits for no idle connection", async () => {
  const [port, operatorPort] = [await freePort(), await freePort()]
  const settings = { PORT: String(port), OPERATOR_PORT: String(operatorPort) }
  const child = start("src/main.ts", settings, heldNotice)
  const health = () => statusOf(port, "/health")
  while ((await health()) !== 200) await Bun.sleep(50)
  const idle = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } })
  closers.push(() => idle.end())
  child.kill("SIGTERM")
  while ((await statusOf(operatorPort, "/readyz")) !== 503) await Bun.sleep(10)
  expect(await health()).toBe(200)
  child.kill("SIGUSR2")
  // A stop that takes longer than ten seconds ends with 1.
  expect(await child.exited).toBe(0)
}, 60_000)

test("a worker whose providers have gone silent stops normally, and leaves its lanes to others", async () => {
  const silence = { has_fallen: false, isMet: Promise.withResolvers<void>() }
  // One after the other is asked, so that a round would go on for longer than a stop may take.
  const providers = [1, 2, 3].map(() => fakeChain({ chain_id: 31_337, code: "0x60", silence }))
  const database = join(mkdtempSync(join(tmpdir(), "silent-")), "service.db")
  closers.push(() => rmSync(dirname(database), { recursive: true, force: true }))
  const operatorPort = await freePort()
  const child = start("workers/main.ts", {
    CHAINS: chainsFile(...providers),
    DATABASE_URL: `sqlite:${database}`,
    SIGNER_KEYS: `0x${"11".repeat(32)}`,
    OPERATOR_PORT: String(operatorPort),
  })
  const isHeld = () => {
    const file = new Database(database, { readonly: true })
    const [lane] = file.query("select lease_owner from lanes").all() as { lease_owner: string | null }[]
    file.close()
    return typeof lane?.lease_owner === "string"
  }
  while ((await statusOf(operatorPort, "/readyz")) !== 200 || !isHeld()) await Bun.sleep(50)
  silence.has_fallen = true
  await silence.isMet.promise
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
  expect(isHeld()).toBe(false)
}, 60_000)

function start(entry: string, settings: Record<string, string>, options: string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), "process-"))
  const child = Bun.spawn(tiedToParent([process.execPath, ...options, join(root, entry)]), {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      DATA_DIR: folder,
      PORT: "0",
      HOST: "127.0.0.1",
      OPERATOR_PORT: "0",
      SERVICE_SECRET: "a secret of tests that is long enough",
      ...settings,
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  })
  closers.push(async () => {
    child.kill("SIGKILL")
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  })
  return child
}

/** The status of a process's response; 0 while there is none. */
function statusOf(port: number, path: string): Promise<number> {
  return fetch(`http://127.0.0.1:${port}${path}`).then(
    ({ status }) => status,
    () => 0,
  )
}

/** The log of a process that becomes ready and is then stopped normally. */
async function logOfRun(entry: string, settings: Record<string, string>): Promise<string> {
  const operatorPort = await freePort()
  const child = start(entry, { ...settings, OPERATOR_PORT: String(operatorPort) })
  while ((await statusOf(operatorPort, "/readyz")) !== 200) await Bun.sleep(50)
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
  return await child.stderr.text()
}

/** The one line that is not a log line. */
async function failedStart(entry: string, settings: Record<string, string>) {
  const child = start(entry, settings)
  const lines = (await child.stderr.text())
    .trim()
    .split("\n")
    .filter((line) => !line.startsWith("{"))
  if (lines.length !== 1) throw new Error(`${lines.length} lines: ${lines.join("\n")}`)
  return { line: lines[0] ?? "", exitCode: await child.exited }
}

test("a process's files are readable by its own user only", async () => {
  const folder = mkdtempSync(join(tmpdir(), "private-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const port = await freePort()
  start("src/main.ts", { PORT: String(port), DATA_DIR: folder })
  while ((await statusOf(port, "/health")) !== 200) await Bun.sleep(50)
  const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777)
  expect(modes.length).toBeGreaterThan(0)
  expect(modes.filter((mode) => mode !== 0o600)).toEqual([])
}, 60_000)

async function takenPort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  closers.push(() => listener.stop(true))
  return listener.port
}

type FakeChain = { chain_id: number; code: string; silence?: Silence }

/** From when on a provider answers nothing, and that it was asked something then. */
type Silence = { has_fallen: boolean; isMet: PromiseWithResolvers<void> }

function fakeChain({ chain_id, code, silence }: FakeChain): string {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (silence?.has_fallen) {
        silence.isMet.resolve()
        await new Promise(() => {})
      }
      const { id, method } = (await request.json()) as { id: number; method: string }
      const result = method === "eth_chainId" ? `0x${chain_id.toString(16)}` : code
      return Response.json({ jsonrpc: "2.0", id, result })
    },
  })
  closers.push(() => server.stop(true))
  return server.url.href
}

function chainsFile(...rpc_urls: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "chains-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, "chains.json")
  const factory_address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
  writeFileSync(path, JSON.stringify({ 31337: { name: "local", rpc_urls, factory_address } }))
  return path
}
