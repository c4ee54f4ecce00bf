import { eq } from "drizzle-orm"
import { claims, collections, effects, units } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import type { Lane } from "../src/engine/lanes/held-lane.ts"
import { tickLane } from "../src/engine/lanes/lane.ts"
import { openWorld } from "../src/engine/world.ts"
import { loadConfig } from "../src/platform/config.ts"
import { inTurn } from "../src/platform/context.ts"
import { pairChip } from "../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../src/resources/claims/service.ts"
import { createCollection } from "../src/resources/collections/service.ts"
import { tell } from "../src/resources/news/tell.ts"
import { createUnit } from "../src/resources/units/service.ts"
import { newCaller } from "../test/faults/play.ts"
import { accountAt, openStage } from "../test/faults/stage.ts"
import { jobs } from "../workers/jobs/jobs.ts"
import { report } from "./report.ts"

// How many blocks an issuance and a claim take while others ask for much, over how many they take on a quiet chain. Each
// lane has one round for a block, so that what is counted is whose turn it is and not how fast this machine is.
const rounds = 5
const patienceBlocks = 1_000

/** `waiting` is how much others had not been given yet when each round began. */
type Measured = { issuance_blocks: number; claim_blocks: number; waiting: number[] }
type Result = Measured & { name: string; issuance_ratio: number; claim_ratio: number }
type Hand = Awaited<ReturnType<typeof openHand>>
type Load = { name: string; keys: number; ask(hand: Hand): Promise<void> }

const loads: Load[] = [
  { name: "another organization's 400 deployments", keys: 2, ask: (hand) => deployMany(hand, 400) },
  { name: "3,000 units of 40 collections, one key", keys: 1, ask: (hand) => issueMany(hand, 40, 75) },
]

async function openHand(keys: number) {
  const depths = { confirmation_depth: 3, finality_depth: 12, block_time_seconds: 2 }
  const stage = await openStage(depths, 1, keys)
  const world = await openWorld(loadConfig({ ...stage.environment, LOG_LEVEL: "silent" }), tell)
  const { context } = world
  const [chain] = world.chains.values()
  if (!chain) throw new Error("the stage has a chain")
  const claimant = { owner: "by hand", lease_milliseconds: 60_000 }
  const lanes = chain.signers.map(
    (signer): Lane => ({ context, chain, signer, claimant, jobs, checkpoint() {}, memory: {} }),
  )
  const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
  return {
    context,
    turn,
    caller: await newCaller(turn),
    /** Blocks until something is so. */
    async blocksUntil(isSo: () => Promise<boolean>): Promise<number> {
      for (let blocks = 0; ; blocks++) {
        for (const lane of lanes) await tickLane(lane)
        if (await isSo()) return blocks
        if (blocks === patienceBlocks) throw new Error(`nothing came of it in ${blocks} blocks`)
        await stage.anvil.client.mine({ blocks: 1 })
        // The newest block is remembered for a part of a block's time.
        await Bun.sleep(260)
      }
    },
    async close() {
      await world.close()
      await stage.close()
    },
  }
}

async function activeCollection({ context, turn, caller, blocksUntil }: Hand, by = caller): Promise<string> {
  const { id } = await turn((t) => createCollection(t, context.chains, by, { name: "Autumn" }))
  await blocksUntil(async () => {
    const [row] = await context.db.read.select().from(collections).where(eq(collections.id, id))
    return row?.status === "active"
  })
  return id
}

async function pairedUnit({ context, turn, caller }: Hand, collection_id: string, by = caller) {
  const { service_secret } = context.config
  return await turn(async (t) => {
    const { id: unit_id } = await createUnit(t, by, { collection_id })
    await pairChip(t, service_secret, by, { unit_id, is_test: true })
    return unit_id
  })
}

async function deployMany({ context, turn }: Hand, count: number): Promise<void> {
  const other = await newCaller(turn)
  await turn(async (t) => {
    for (let each = 0; each < count; each++)
      await createCollection(t, context.chains, other, { name: "Many" })
  })
}

async function issueMany(hand: Hand, count: number, unitsEach: number): Promise<void> {
  const other = await newCaller(hand.turn)
  const made = await hand.turn(async (t) => {
    const rows = []
    for (let each = 0; each < count; each++)
      rows.push(await createCollection(t, hand.context.chains, other, { name: "Many" }))
    return rows
  })
  const { read } = hand.context.db
  await hand.blocksUntil(async () => {
    const rows = await read
      .select()
      .from(collections)
      .where(eq(collections.organization_id, other.organization_id))
    return rows.every(({ status }) => status === "active")
  })
  for (let each = 0; each < unitsEach; each++) for (const { id } of made) await pairedUnit(hand, id, other)
}

async function blocksOfIssuance(
  hand: Hand,
  collection_id: string,
): Promise<[unit_id: string, blocks: number]> {
  const unit_id = await pairedUnit(hand, collection_id)
  const blocks = await hand.blocksUntil(async () => {
    const [unit] = await hand.context.db.read.select().from(units).where(eq(units.id, unit_id))
    return unit?.token_status === "active"
  })
  return [unit_id, blocks]
}

async function blocksOfClaim({ context, turn, caller, blocksUntil }: Hand, unit_id: string): Promise<number> {
  const body = { recipient: accountAt(7).address, execution: "service_relay" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  const { id } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
  return await blocksUntil(async () => {
    const [claim] = await context.db.read.select().from(claims).where(eq(claims.id, id))
    return claim?.status === "claimed"
  })
}

async function measure(hand: Hand, collection_id: string): Promise<Measured> {
  const issuances: number[] = []
  const handOvers: number[] = []
  const waiting: number[] = []
  for (let round = 0; round < rounds; round++) {
    waiting.push((await hand.context.db.read.select().from(effects).where(eq(effects.status, "open"))).length)
    const [unit_id, blocks] = await blocksOfIssuance(hand, collection_id)
    issuances.push(blocks)
    handOvers.push(await blocksOfClaim(hand, unit_id))
  }
  return { issuance_blocks: mean(issuances), claim_blocks: mean(handOvers), waiting }
}

function mean(numbers: number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0) / numbers.length
}

async function measureUnder({ name, keys, ask }: Load): Promise<Result> {
  const hand = await openHand(keys)
  try {
    const collection_id = await activeCollection(hand)
    say(`${name}: a quiet chain`)
    const quiet = await measure(hand, collection_id)
    say(`${name}: asked for`)
    await ask(hand)
    say(`${name}: measured beside it`)
    const loaded = await measure(hand, collection_id)
    const ratio = (mine: number, usual: number) => Math.round((mine / usual) * 100) / 100
    return {
      name,
      ...loaded,
      issuance_ratio: ratio(loaded.issuance_blocks, quiet.issuance_blocks),
      claim_ratio: ratio(loaded.claim_blocks, quiet.claim_blocks),
    }
  } finally {
    await hand.close()
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

const results: Result[] = []
for (const load of loads) results.push(await measureUnder(load))
const lines = results.map(
  ({ name, issuance_blocks, issuance_ratio, claim_blocks, claim_ratio, waiting }) =>
    `${name.padEnd(42)} issuance ${issuance_blocks} blocks (${issuance_ratio}), claim ${claim_blocks} blocks (${claim_ratio}); waiting beside it ${waiting.join(", ")}\n`,
)
report(results, lines.join(""))
