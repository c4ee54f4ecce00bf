import { afterAll, afterEach, beforeAll, expect, test } from "bun:test"
import { lanes } from "../../src/db/schema.ts"
import { checkChains } from "../../src/engine/chain/check-chains.ts"
import type { ChainConfig } from "../../src/platform/chain-settings.ts"
import type { Config } from "../../src/platform/config.ts"
import { createLog, type Log } from "../../src/platform/log.ts"
import { StartError } from "../../src/platform/start-error.ts"
import { openStage } from "../faults/stage.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  chainId,
  createCaller,
  openService,
  type TestService,
} from "../harness/services.ts"

let service: TestService
beforeAll(async () => {
  const [engine] = engines
  if (!engine) throw new Error("there is no database engine")
  service = await openService(engine)
})
afterAll(() => service.close())

const servers: Bun.Server<undefined>[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

const unused = `0x${"1".repeat(40)}`

test("a provider whose response never ends is logged as a warning, and the process still starts", async () => {
  const endless = () => new Response(new ReadableStream({ start: (body) => body.enqueue('{"jsonrpc":') }))
  expect(await warningsOf(unused, startServer(endless))).toEqual([
    expect.stringMatching(
      /^provider number 1 in rpc_urls of chain 31337 failed \(.*timed out.*\); it is tried/,
    ),
  ])
}, 30_000)

const refusals: Record<string, () => Response> = {
  "invalid project id": () => Response.json({ error: { code: -32_000, message: "invalid project id" } }),
  unauthorized: () => new Response("unauthorized", { status: 401 }),
}

for (const [said, refuse] of Object.entries(refusals))
  test(`a provider that returns "${said}" is logged with its own words, but without its URL`, async () => {
    const warnings = await warningsOf(unused, `${startServer(refuse)}/v3/a-secret-key`)
    expect(warnings).toEqual([expect.stringContaining(said)])
    expect(warnings[0]).not.toContain("a-secret-key")
    expect(warnings[0]).not.toContain("does not answer")
  })

test("a process does not start if CHAINS names the desk as the factory, because collection addresses would be wrong", async () => {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  const config = stage.world.chains.get(31_337)?.config
  if (!config?.desk_address) throw new Error("the stage has no desk")
  const exchanged = { ...config, factory_address: config.desk_address, desk_address: config.factory_address }
  const { db } = service.context
  const log = createLog("silent")
  const refused = await checkChains({ config: { chains: [exchanged] } as Config, db, log }).catch(
    (error) => error,
  )
  await checkChains({ config: { chains: [config] } as Config, db, log })
  await stage.close()
  expect(refused).toBeInstanceOf(StartError)
  expect(refused.message).toBe(
    `CHAINS: chain 31337 has a contract at factory_address ${config.desk_address} that is not a factory, such as a desk or a collection; correct factory_address`,
  )
}, 30_000)

test("a factory that has deployed collections but is missing, as while its only provider synchronizes, does not stop a process from starting", async () => {
  const caller = await createCaller(service)
  const { factory_address } = await activeCollection(service, caller)
  const warnings = await warningsOf(String(factory_address), startServer(emptyChain))
  expect(warnings).toEqual([
    `provider number 1 in rpc_urls of chain 31337 has no contract at factory_address ${factory_address}; is it behind?`,
  ])
})

test("a chain that was used and that CHAINS lacks is logged as a warning, once per chain", async () => {
  const other = await openService(engines[0] as (typeof engines)[number])
  const laneOf = (chain_id: number, address: string, next_nonce: number | null) => ({
    id: `${chain_id}:${address}`,
    ...{ chain_id, address, next_nonce, purpose: "all" as const, status: "open" as const },
  })
  // Nothing was ever done on chain 8, which was named by mistake.
  const rows = [laneOf(7, "0x1", 0), laneOf(7, "0x2", 5), laneOf(8, "0x1", null)]
  await other.turn(({ tx, at }) =>
    tx.insert(lanes).values(rows.map((row) => ({ ...row, lease_epoch: 0, created_at: at }))),
  )
  const warnings: string[] = []
  const log: Log = { ...createLog("silent"), warn: (_fields, message) => void warnings.push(message) }
  await checkChains({ config: { chains: [] as ChainConfig[] } as Config, db: other.context.db, log })
  await other.close()
  expect(warnings).toEqual([expect.stringMatching(/^CHAINS lacks chain 7,/)])
})

test("a factory that has deployed nothing and is missing is rejected", async () => {
  await activeCollection(service, await createCaller(service))
  await expect(warningsOf(unused, startServer(emptyChain))).rejects.toThrow(
    "has no contract at factory_address",
  )
})

async function warningsOf(factory_address: string, url: string): Promise<string[]> {
  const chain = { chain_id: chainId, factory_address, rpc_urls: [url] } as unknown as ChainConfig
  const warnings: string[] = []
  const log: Log = { ...createLog("silent"), warn: (_fields, message) => void warnings.push(message) }
  await checkChains({ config: { chains: [chain] } as Config, db: service.context.db, log })
  return warnings
}

/** A node that has no blocks yet. */
async function emptyChain(request: Request): Promise<Response> {
  const { id, method } = (await request.json()) as { id: number; method: string }
  return Response.json({ jsonrpc: "2.0", id, result: method === "eth_chainId" ? "0x7a69" : "0x" })
}

function startServer(fetch: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch })
  servers.push(server)
  return `http://127.0.0.1:${server.port}`
}
