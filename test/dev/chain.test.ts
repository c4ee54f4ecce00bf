import { afterAll, beforeAll, expect, spyOn, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type DevChain, startDevChain } from "../../src/dev/chain.ts"

const folder = mkdtempSync(join(tmpdir(), "dev-chain-"))
let chain: DevChain
/** Ends the chain's wait for the next second, after which it considers making a block. */
let onSecond = () => {}

beforeAll(async () => {
  chain = await startDevChain({
    folder,
    port: 0,
    isAwaited: async () => {
      onSecond()
      return false
    },
    metadata_base_url: "",
  })
}, 60_000)
afterAll(async () => {
  await chain.stop()
  rmSync(folder, { recursive: true, force: true })
})

test("a local chain without clients gets no requests", async () => {
  await nextSecond()
  const asked = spyOn(globalThis, "fetch")
  await nextSecond()
  await nextSecond()
  expect(asked).not.toHaveBeenCalled()
  asked.mockRestore()
})

test("a transaction is mined a moment later, whether its client waits for it or polls", async () => {
  const from = chain.wallets[0]?.address
  const transaction = { from, to: from, value: "0x1" }
  expect(await ask("eth_sendTransactionSync", [transaction])).toMatchObject({ status: "0x1" })
  const hash = await ask("eth_sendTransaction", [transaction])
  while ((await ask("eth_getTransactionReceipt", [hash])) === null) await nextSecond()
})

test("a chain that is stopped and started keeps its first block, also after the next start", async () => {
  const own = mkdtempSync(join(tmpdir(), "dev-chain-again-"))
  const blocks: unknown[] = []
  for (let start = 1; start <= 3; start++) {
    const again = await startDevChain({
      folder: own,
      port: 0,
      isAwaited: async () => false,
      metadata_base_url: "",
    })
    blocks.push(await firstBlockOf(again))
    await again.stop()
    // Of two blocks of one number, the chain takes the one that it reads last.
    changeState(own, (state) => state.blocks.sort((one, other) => timeOf(one) - timeOf(other)))
    await Bun.sleep(1_000)
  }
  rmSync(own, { recursive: true })
  expect(new Set(blocks).size).toBe(1)
}, 60_000)

test("a chain whose file cannot be read says so at once, and how to start with a new one", async () => {
  const own = mkdtempSync(join(tmpdir(), "dev-chain-broken-"))
  const file = join(own, "chain.json")
  writeFileSync(file, '{"blocks":')
  const since = performance.now()
  const starting = startDevChain({
    folder: own,
    port: 0,
    isAwaited: async () => false,
    metadata_base_url: "",
  })
  await expect(starting).rejects.toThrow(
    /^the local chain could not start: .*failed to parse json file.*; remove .*chain\.json to start with a new chain$/,
  )
  expect(performance.now() - since).toBeLessThan(20_000)
  rmSync(own, { recursive: true })
}, 60_000)

type State = { blocks: { header: { timestamp: string } }[] }

function changeState(own: string, change: (state: State) => void): void {
  const file = join(own, "chain.json")
  const state = JSON.parse(readFileSync(file, "utf8")) as State
  change(state)
  writeFileSync(file, JSON.stringify(state))
}

function timeOf({ header }: State["blocks"][number]): number {
  return Number(header.timestamp)
}

async function firstBlockOf(of: DevChain): Promise<string> {
  const { hash } = (await ask("eth_getBlockByNumber", ["0x0", false], of)) as { hash: string }
  return hash
}

function nextSecond(): Promise<void> {
  return new Promise((resolve) => {
    onSecond = resolve
  })
}

async function ask(method: string, params: unknown[], of = chain): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
  const headers = { "content-type": "application/json" }
  const answer = await fetch(of.rpc_url, { method: "POST", headers, body })
  return ((await answer.json()) as { result: unknown }).result
}
