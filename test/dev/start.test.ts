import { afterAll, afterEach, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { type Address, createTestClient, http, publicActions, walletActions } from "viem"
import { withDevEnvironment } from "../../src/dev/environment.ts"
import type { DevService } from "../../src/dev/start.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
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

test("a demo organization whose key was revoked gets another one at the next start", async () => {
  const folder = newFolder()
  const { organization_id, api_key } = await startIn(folder, {})
  const { printed } = await said(folder, "keys", "list", "--organization", organization_id, "--json")
  const [{ id }] = JSON.parse(printed).keys
  expect(await operator(folder, "keys", "revoke", id)).toEqual([0, ""])
  const again = await startIn(folder, {})
  expect(again.organization_id).toBe(organization_id)
  expect(again.api_key).not.toBe(api_key)
  const headers = { authorization: `Bearer ${again.api_key}` }
  expect((await fetch(`${again.base_url}/v1/settings`, { headers })).status).toBe(200)
  expect((await startIn(folder, {})).api_key).toBe(again.api_key)
})

test("the metadata base follows the service to another port, unless the factory's admin chose one or is another", async () => {
  const folder = newFolder()
  const first = await startIn(folder, {})
  expect(await baseOf(folder, first)).toBe(`${first.base_url}/metadata`)
  const second = await startIn(folder, {})
  expect(second.base_url).not.toBe(first.base_url)
  expect(await baseOf(folder, second)).toBe(`${second.base_url}/metadata`)

  await call(folder, second, { functionName: "setBaseURI", args: ["ipfs://bafy"], by: 0 })
  const third = await startIn(folder, {})
  expect(await baseOf(folder, third)).toBe("ipfs://bafy")

  const [stranger] = await addressesOf(third, 9)
  await call(folder, third, { functionName: "setBaseURI", args: [`${third.base_url}/metadata`], by: 0 })
  await call(folder, third, { functionName: "transferAdmin", args: [stranger], by: 0 })
  await call(folder, third, { functionName: "acceptAdmin", args: [], by: 9 })
  const fourth = await startIn(folder, {})
  expect(await baseOf(folder, fourth)).toBe(`${third.base_url}/metadata`)
})

function clientOf({ chain }: DevService) {
  return createTestClient({ mode: "anvil", transport: http(chain.rpc_url), pollingInterval: 50 })
    .extend(publicActions)
    .extend(walletActions)
}

async function addressesOf(service: DevService, from: number): Promise<Address[]> {
  return (await clientOf(service).getAddresses()).slice(from)
}

function factoryIn(folder: string, { chain }: DevService) {
  const chains = JSON.parse(readFileSync(join(folder, "chains.json"), "utf8"))
  return { address: chains[chain.id].factory_address as Address, abi: factoryAbi }
}

async function baseOf(folder: string, service: DevService): Promise<string> {
  return await clientOf(service).readContract({ ...factoryIn(folder, service), functionName: "baseURI" })
}

type Call = { functionName: "setBaseURI" | "transferAdmin" | "acceptAdmin"; args: unknown[]; by: number }

/** Calls the factory as one of the chain's accounts, by its index. */
async function call(folder: string, service: DevService, { by, ...wanted }: Call): Promise<void> {
  const client = clientOf(service)
  const [account] = await addressesOf(service, by)
  const request = { ...factoryIn(folder, service), ...wanted, account, chain: null }
  const hash = await client.writeContract(request as Parameters<typeof client.writeContract>[0])
  const { status } = await client.waitForTransactionReceipt({ hash })
  expect(status).toBe("success")
}
