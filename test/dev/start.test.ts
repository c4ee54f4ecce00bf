import { afterAll, afterEach, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { type Address, createTestClient, http, publicActions, walletActions } from "viem"
import { withDevEnvironment } from "../../src/dev/environment.ts"
import type { DevService } from "../../src/dev/start.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import type { Environment } from "../../src/platform/config.ts"
import { newFolder, removeDevServices, startDevHere } from "../harness/dev-service.ts"

// What a dev service leaves in its folder for other commands, from one start to the next.

setDefaultTimeout(60_000)

const [first, second] = ["the first secret of these tests, long", "the second secret of these tests, long"]
const quiet = { PORT: "0", DEV_CHAIN_PORT: "0", OPERATOR_PORT: "0", LOG_LEVEL: "silent" }

let stops: (() => Promise<void>)[] = []
const stopAll = async () => {
  for (const stop of stops.splice(0)) await stop()
}
afterEach(stopAll)
afterAll(removeDevServices)

/** Starts the service of a folder in place of the previous one. */
async function startIn(folder: string, environment: Environment): Promise<DevService> {
  await stopAll()
  const { service, stop } = await startDevHere({ ...quiet, DATA_DIR: folder, ...environment })
  stops = [stop]
  return service
}

/** Runs a command that gets only the folder; returns its exit code and error output. */
async function operator(folder: string, ...words: string[]): Promise<[code: number, complaint: string]> {
  const { code, complaint } = await said(folder, ...words)
  return [code, complaint]
}

/** The same, with its output. */
async function said(folder: string, ...words: string[]) {
  let [printed, complaint] = ["", ""]
  const terminal = {
    print(text: string | Uint8Array) {
      printed += text
    },
    complain(text: string) {
      complaint += text
    },
  }
  const code = await runOperator(() => withDevEnvironment({ DATA_DIR: folder }), terminal, words)
  return { code, printed, complaint }
}

test("next to a dev service whose secret is rotated, operator commands need only its folder", async () => {
  const folder = newFolder()
  const left = () => readFileSync(join(folder, "environment.json"), "utf8")
  await startIn(folder, { SERVICE_SECRET: first })
  await startIn(folder, { SERVICE_SECRET: second, SERVICE_SECRET_PREVIOUS: first })
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
  expect(statSync(join(folder, "environment.json")).mode & 0o777).toBe(0o600)
  const [code] = await operator(folder, "secrets", "rewrap")
  expect(code).toBe(0)
  await startIn(folder, { SERVICE_SECRET: second })
  expect(left()).not.toContain(first)
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
})

test("an authorizer that the local chain does not know is reported", async () => {
  const folder = newFolder()
  const { chain } = await startIn(folder, {})
  const stranger = ["--account", "0x000000000000000000000000000000000000dEaD", "--overlap-hours", "0"]
  const { printed } = await said(folder, "chain", "call", "set-authorizer", ...stranger, "--json")
  const { to, data } = JSON.parse(printed)
  const client = createTestClient({ mode: "anvil", transport: http(chain.rpc_url) })
    .extend(publicActions)
    .extend(walletActions)
  const [account] = await client.getAddresses()
  const hash = await client.sendTransaction({ account: account as Address, chain: null, to, data })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  const { operator_url } = await startIn(folder, {})
  const told = async () => await (await fetch(`${operator_url}/readyz`)).text()
  let answer = await told()
  for (; answer === "ready\n"; answer = await told()) await Bun.sleep(50)
  expect(answer).toContain("AUTHORIZER_KEY")
})

test("a start that is rejected for its secret does not overwrite the only copy of the right one", async () => {
  const folder = newFolder()
  await startIn(folder, {})
  await expect(startIn(folder, { SERVICE_SECRET: second })).rejects.toThrow(
    "SERVICE_SECRET is not the one that this database was written with",
  )
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
  await startIn(folder, {})
})
