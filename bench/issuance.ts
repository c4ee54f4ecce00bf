import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { count, eq } from "drizzle-orm"
import {
  type Address,
  concatHex,
  createPublicClient,
  createTestClient,
  createWalletClient,
  encodeFunctionData,
  getAddress,
  http,
  keccak256,
  numberToHex,
  parseEventLogs,
  publicActions,
  stringToHex,
} from "viem"
import { foundry } from "viem/chains"
import { collections, units } from "../src/db/schema.ts"
import { anvilPath } from "../src/dev/anvil-path.ts"
import { openEffectIn } from "../src/engine/actors/rows.ts"
import { collectionAbi, factoryAbi } from "../src/engine/chain/contracts.generated.ts"
import { planDeployment } from "../src/engine/chain/deployment.ts"
import { openWorld, type World } from "../src/engine/world.ts"
import type { Caller } from "../src/platform/caller.ts"
import { loadConfig } from "../src/platform/config.ts"
import { inTurn } from "../src/platform/context.ts"
import { freePort } from "../src/platform/free-port.ts"
import { laneQueue } from "../src/platform/queues.ts"
import { pairChip } from "../src/resources/chips/service.ts"
import { createCollection } from "../src/resources/collections/service.ts"
import { tell } from "../src/resources/news/tell.ts"
import { createUnit } from "../src/resources/units/service.ts"
import { newCaller } from "../test/faults/play.ts"
import { accountAt, keyAt } from "../test/faults/stage.ts"
import { startWorkers } from "../workers/start.ts"
import { report } from "./report.ts"

// What the engine issues in a second on one lane, against a loop that does nothing but send the same transactions.
const blockSeconds = 1
const batchSize = 100
const window = 16
const batches = 96

type Measured = {
  /** From the block of the first batch to that of the last, both included. */
  units_per_second: number
  blocks: number
  /** From the first moment until the last unit was known to be issued, as far as the measured one looks. */
  seconds: number
}

/** Signs ahead, keeps sixteen on their way, looks at nothing but the nonce. */
async function measureBareLoop(url: string, factory: Address): Promise<Measured> {
  const account = accountAt(9)
  const chain = createPublicClient({ chain: foundry, transport: http(url), cacheTime: 0 })
  const wallet = createWalletClient({ account, chain: foundry, transport: http(url) })
  const salt = keccak256(stringToHex("bare"))
  const args = [salt, "Bare", "BARE"] as const
  const contract = await chain.readContract({
    address: factory,
    abi: factoryAbi,
    functionName: "addressOf",
    args,
  })
  const deployment = await wallet.writeContract({
    address: factory,
    abi: factoryAbi,
    functionName: "deploy",
    args,
  })
  await chain.waitForTransactionReceipt({ hash: deployment })

  const begin = performance.now()
  for (let sent = 0, used = 0; used < batches; used = (await nonceOf(chain, account.address)) - 1) {
    for (; sent < batches && sent - used < window; sent++) {
      const first = sent * batchSize + 1
      const chips = Array.from({ length: batchSize }, (_, index) => first + index)
      const packed = concatHex(chips.map((chip) => numberToHex(chip, { size: 5 })))
      const serializedTransaction = await account.signTransaction({
        type: "eip1559",
        chainId: foundry.id,
        nonce: sent + 1,
        to: contract,
        data: encodeFunctionData({
          abi: collectionAbi,
          functionName: "issue",
          args: [BigInt(first), packed, true],
        }),
        gas: 150_000n + 12_000n * BigInt(batchSize),
        maxFeePerGas: 10_000_000_000n,
        maxPriorityFeePerGas: 1_000_000_000n,
      })
      await chain.sendRawTransaction({ serializedTransaction })
    }
    await Bun.sleep(50)
  }
  const seconds = (performance.now() - begin) / 1_000
  return { ...(await throughput(url, contract)), seconds }
}

async function nonceOf(chain: ReturnType<typeof createPublicClient>, address: Address): Promise<number> {
  return await chain.getTransactionCount({ address, blockTag: "latest" })
}

/** Units that wait singly, which the lane joins into batches, until each is active in the database. */
async function measureEngine(world: World, url: string): Promise<Measured> {
  const { context } = world
  const enqueued = await enqueue(world)
  const workers = startWorkers(world)
  try {
    const address = await deployedAddress(world, enqueued)
    await pairAll(world, enqueued)
    const begin = performance.now()
    const queue = laneQueue(String(context.chains.get(foundry.id)?.issuanceLaneId(enqueued.collection_id)))
    context.wake(queue)
    // Counting the units so often would take a third of this process.
    await until(async () => (await openEffectIn(context.db.read, { queue })).length === 0)
    const seconds = (performance.now() - begin) / 1_000
    await requireAllActive(world)
    return { ...(await throughput(url, address)), seconds }
  } finally {
    await workers.stop()
  }
}

async function requireAllActive({ context }: World): Promise<void> {
  const [active] = await context.db.read
    .select({ units: count() })
    .from(units)
    .where(eq(units.token_status, "active"))
  if (Number(active?.units) !== batches * batchSize) throw new Error("not all units were issued")
}

type Enqueued = { caller: Caller; collection_id: string; unit_ids: string[] }

async function enqueue({ context }: World): Promise<Enqueued> {
  const caller = await newCaller((work) => inTurn(context, null, work))
  const { id: collection_id } = await inTurn(context, null, (turn) =>
    createCollection(turn, context.chains, caller, { name: "Engine" }),
  )
  const unit_ids: string[] = []
  for (let batch = 0; batch < batches; batch++)
    await inTurn(context, null, async (turn) => {
      for (let index = 0; index < batchSize; index++)
        unit_ids.push((await createUnit(turn, caller, { collection_id })).id)
    })
  return { caller, collection_id, unit_ids }
}

async function deployedAddress({ context }: World, { collection_id }: Enqueued): Promise<Address> {
  let address = ""
  await until(async () => {
    const [row] = await context.db.read.select().from(collections).where(eq(collections.id, collection_id))
    if (row?.status === "active") address = row.address
    return address !== ""
  })
  return getAddress(address)
}

/** In one database transaction, so that the lane finds all of them waiting at once. */
async function pairAll({ context }: World, { caller, unit_ids }: Enqueued): Promise<void> {
  await inTurn(context, null, async (turn) => {
    for (const unit_id of unit_ids)
      await pairChip(turn, context.config.service_secret, caller, { unit_id, is_test: true })
  })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 180_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("the units were not issued in time")
    await Bun.sleep(50)
  }
}

async function throughput(url: string, contract: Address) {
  const chain = createPublicClient({ chain: foundry, transport: http(url) })
  const logs = await chain.getLogs({ address: contract, fromBlock: 0n })
  const numbers = parseEventLogs({ abi: collectionAbi, logs, eventName: "Issued" }).map((log) =>
    Number(log.blockNumber),
  )
  if (numbers.length !== batches)
    throw new Error(`${numbers.length} batches were issued instead of ${batches}`)
  const blocks = Math.max(...numbers) - Math.min(...numbers) + 1
  return { units_per_second: Math.round((batches * batchSize) / (blocks * blockSeconds)), blocks }
}

async function startChain(): Promise<{ url: string; factory: Address; stop: () => Promise<void> }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const flags = ["--port", String(port), "--silent", "--block-time", String(blockSeconds), "--order", "fifo"]
  const child = Bun.spawn([anvilPath(), ...flags], { stdio: ["ignore", "ignore", "inherit"] })
  const client = createTestClient({ mode: "anvil", chain: foundry, transport: http(url) }).extend(
    publicActions,
  )
  while (!(await client.getChainId().catch(() => null))) await Bun.sleep(50)
  const wallet = createWalletClient({ account: accountAt(0), chain: foundry, transport: http(url) })
  const { factory_address, factory_data } = planDeployment({
    deployer: accountAt(0).address,
    guardian: null,
    authorizer: accountAt(3).address,
    // As the service needs them; the bare loop does with one key what takes both roles of the others.
    signers: [1, 2, 9].map((index) => accountAt(index).address),
    metadata_base_url: "",
  })
  const hash = await wallet.sendTransaction({ data: factory_data })
  await client.waitForTransactionReceipt({ hash })
  return {
    url,
    factory: factory_address,
    async stop() {
      child.kill("SIGKILL")
      await child.exited
    },
  }
}

function configFor(folder: string, url: string, factory_address: Address) {
  const CHAINS = join(folder, "chains.json")
  const chain = {
    rpc_urls: [url],
    factory_address,
    confirmation_depth: 2,
    finality_depth: 12,
    block_time_seconds: blockSeconds,
  }
  writeFileSync(CHAINS, JSON.stringify({ [foundry.id]: chain }))
  return loadConfig({
    CHAINS,
    DATA_DIR: folder,
    SERVICE_SECRET: "not a secret: 0123456789 abcdefghij",
    SIGNER_KEYS: [keyAt(1), keyAt(2)].join(","),
    AUTHORIZER_KEY: keyAt(3),
    LOG_LEVEL: "error",
  })
}

const folder = mkdtempSync(join(tmpdir(), "bench-"))
const chain = await startChain()
try {
  const bare = await measureBareLoop(chain.url, chain.factory)
  const world = await openWorld(configFor(folder, chain.url, chain.factory), tell)
  const engine = await measureEngine(world, chain.url)
  await world.close()
  const ratio = Math.round((engine.units_per_second / bare.units_per_second) * 100) / 100
  report(
    { block_seconds: blockSeconds, batch_size: batchSize, window, batches, bare, engine, ratio },
    `issuance on one lane, ${blockSeconds} s blocks, batches of ${batchSize}, ${window} in flight, ${batches * batchSize} units
  a bare viem loop   ${bare.units_per_second} units/s in ${bare.blocks} blocks (${bare.seconds.toFixed(1)} s until mined)
  the engine         ${engine.units_per_second} units/s in ${engine.blocks} blocks (${engine.seconds.toFixed(1)} s until confirmed and applied)
  ratio              ${Math.round(ratio * 100)} % (at least 70 % is asked for)\n`,
  )
} finally {
  await chain.stop()
  rmSync(folder, { recursive: true, force: true })
}
