import { and, eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { type CollectionRow, collections, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { World } from "../../src/engine/world.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { startWorkers, type Workers } from "../../workers/start.ts"
import { type Depths, openStage, type Stage } from "../faults/stage.ts"
import { type Blocks, mineSteadily } from "./blocks.ts"

/** Workers in this process, on a chain that mines ten blocks a second, and an organization. */
export type RunningWorkers = {
  stage: Stage
  context: Context
  workers: Workers
  caller: Caller
  turn: RunTurn
  blocks: Blocks
  close(): Promise<void>
}

export type RunTurn = <T>(work: (turn: Turn) => Promise<T>, requestId?: string) => Promise<T>

/** Starts them; `changes` replace parts of the world's context. */
export async function openEngine(
  changes: Partial<Context> = {},
  depths: Partial<Depths> = {},
): Promise<RunningWorkers> {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6, ...depths }, 1)
  return await runWorkers(stage, stage.world, changes)
}

/** The same in another world, which may reach the chain differently. */
export async function runWorkers(
  stage: Stage,
  world: World,
  changes: Partial<Context> = {},
): Promise<RunningWorkers> {
  const context = { ...world.context, ...changes }
  const workers = startWorkers({ ...world, context })
  const blocks = mineSteadily(stage.anvil)
  const turn: RunTurn = (work, requestId) => inTurn(context, requestId ?? null, work)
  const { id: organization_id } = await turn((t) =>
    createOrganization(t, {
      name: "Maker",
      default_chain_id: 31_337,
      allowed_chain_ids: [...world.chains.keys()],
    }),
  )
  return {
    stage,
    context,
    workers,
    caller: { organization_id, kind: "api_key", credential_id: newId(), session: null },
    turn,
    blocks,
    async close() {
      blocks.stop()
      await workers.stop()
      await stage.close()
    },
  }
}

/** A unit with a test chip as serial 1 of a new collection, both on the chain. */
export async function issuedUnit(
  running: RunningWorkers,
  requestId?: string,
): Promise<{ unit_id: string; collection_id: string; address: Address }> {
  const { id: collection_id, address } = await activeCollection(running, 31_337, requestId)
  const unit_id = await anotherUnit(running, collection_id, requestId)
  return { unit_id, collection_id, address: address as Address }
}

/** A new collection whose contract is on a chain. */
export async function activeCollection(
  { context, caller, turn }: RunningWorkers,
  chain_id: number,
  requestId?: string,
): Promise<CollectionRow> {
  const collection = await turn(
    (t) => createCollection(t, context.chains, caller, { name: "Autumn", chain_id }),
    requestId,
  )
  await until(async () => {
    const [row] = await context.db.read.select().from(collections).where(eq(collections.id, collection.id))
    return row?.status === "active"
  })
  return collection
}

/** One more unit of a collection, with a test chip and on the chain. */
export async function anotherUnit(
  { context, caller, turn }: RunningWorkers,
  collection_id: string,
  requestId?: string,
): Promise<string> {
  const { id: unit_id } = await turn((t) => createUnit(t, caller, { collection_id }))
  const secret = context.config.service_secret
  await turn((t) => pairChip(t, secret, caller, { unit_id, is_test: true }), requestId)
  await until(async () => {
    const [row] = await context.db.read
      .select()
      .from(units)
      .where(and(eq(units.id, unit_id), eq(units.token_status, "active")))
    return row !== undefined
  })
  return unit_id
}

/** Sends a call from an account without its key, and waits until it has succeeded. */
export async function sendAs(
  { anvil: { client } }: Stage,
  account: Address,
  to: Address,
  data: Hex,
): Promise<void> {
  await client.impersonateAccount({ address: account })
  await client.setBalance({ address: account, value: 10n ** 18n })
  const hash = await client.sendTransaction({ account, to, data, gas: 500_000n, chain: null })
  await until(
    async () => (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success",
  )
}

/** A call of the factory by its admin. */
export async function sendAsAdmin(stage: Stage, data: Hex): Promise<void> {
  const factory = stage.world.context.config.chains[0]?.factory_address as Address
  const admin = await stage.anvil.client.readContract({
    address: factory,
    abi: factoryAbi,
    functionName: "admin",
  })
  await sendAs(stage, admin, factory, data)
}

export async function until(isSo: () => Promise<boolean>, milliseconds = 45_000): Promise<void> {
  const deadline = performance.now() + milliseconds
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("it did not happen in time")
    await Bun.sleep(30)
  }
}

/** Replaces the blocks from a transaction's own on; the transaction is not in the pool then. */
export async function loseTransaction(running: RunningWorkers, hash: Hex, instead?: Hex): Promise<void> {
  const { client } = running.stage.anvil
  await running.blocks.betweenBlocks(async () => {
    const { blockNumber } = await client.getTransactionReceipt({ hash })
    await replaceBlocks(running.stage, blockNumber, instead)
    await client.dropTransaction({ hash })
  })
}

/** Replaces the blocks from a height on, with this transaction in the first new one. */
export async function replaceFrom(running: RunningWorkers, lowest: bigint, instead: Hex): Promise<void> {
  await running.blocks.betweenBlocks(() => replaceBlocks(running.stage, lowest, instead))
}

async function replaceBlocks({ anvil: { client } }: Stage, lowest: bigint, instead?: Hex): Promise<void> {
  const request = client.request as (call: object) => Promise<unknown>
  const depth = Number((await client.getBlock()).number - lowest) + 1
  await request({ method: "anvil_reorg", params: [depth, instead ? [[instead, 0]] : []] })
}
