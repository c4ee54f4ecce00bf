import { afterEach, expect, test } from "bun:test"
import { checkChains } from "../../src/engine/chain/check-chains.ts"
import type { ChainConfig } from "../../src/platform/chain-settings.ts"
import { createLog, type Log } from "../../src/platform/log.ts"

const servers: Bun.Server<undefined>[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

test("a provider whose answer begins and never ends is warned of, and keeps no process from starting", async () => {
  const endless = () => new Response(new ReadableStream({ start: (body) => body.enqueue('{"jsonrpc":') }))
  const chain = { chain_id: 31_337, factory_address: `0x${"1".repeat(40)}`, rpc_urls: [startServer(endless)] }
  const warnings: string[] = []
  const log: Log = { ...createLog("silent"), warn: (_fields, message) => void warnings.push(message) }
  await checkChains([chain as unknown as ChainConfig], log)
  expect(warnings).toEqual([
    "number 1 of rpc_urls of chain 31337 does not answer; it is asked again when needed",
  ])
}, 10_000)

function startServer(answer: () => Response): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer })
  servers.push(server)
  return `http://127.0.0.1:${server.port}`
}
