import { and, eq, gt, inArray, isNull, notExists, sql } from "drizzle-orm"
import type { Address } from "viem"
import { failure } from "../../machines/failures.ts"
import { DatabaseUnavailable, type Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import {
  bulkPairings,
  type CollectionRow,
  collections,
  effects,
  lanes,
  type TransactionRow,
  transactions,
} from "../../src/db/schema.ts"
import { openTransactionStatuses } from "../../src/db/statuses.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { OutputOf } from "../../src/engine/actors/effects.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { encodeIssue } from "../../src/engine/chain/issue-call.ts"
import { CallReverted, ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { tryCall } from "../../src/engine/chain/try-call.ts"
import { foundSerialsOf, ownIssuances } from "../../src/engine/found-serials.ts"
import {
  type Call,
  type Effect,
  isOutput,
  type Job,
  type JobResult,
  maxPlans,
  type Wait,
  type Write,
} from "../../src/engine/jobs/job.ts"
import { collectionOf } from "./collections.ts"
import { type Batch, batchesOf, type Issuance, issuancesWith, lackOf, serialsOf } from "./issue-batches.ts"
import { beforeHeldSerials, maxUnits, nextBatch, nextUnits } from "./issue-order.ts"
import { joinAtDesk, maxAtDesk } from "./join-at-desk.ts"
import { takeFoundOwners, takeUpSerials } from "./take-up-serials.ts"

/** Issues a bulk request as one transaction, and joins single units that wait for the same collection. */
export const issueUnits: Job<"issueUnit"> = {
  lineOf: (effect) => effect.input.collection_id,

  async plan(chain, queries, waiting) {
    const collection = await collectionOf(queries, waiting[0])
    const ofCollection = waiting.filter((effect) => effect.input.collection_id === collection.id)
    const members = await nextUnits(queries, collection, ofCollection)
    const found = await settleFound(queries, collection, members)
    if (found) return found
    const next = { collection, ofCollection, members }
    const last = await lastOnItsWay(queries, collection)
    if (last) return await planBehind(chain, queries, last, next)
    const own = await planFirst(chain, queries, next)
    if (own.do !== "call" || !isForDesk(chain, own.members)) return own
    const others = await callsOfOthers(chain, queries, waiting, own.members.length)
    return others.length === 0 ? own : ((await joinAtDesk(chain, [own, ...others])) ?? own)
  },

  refusal: (reason) => (reason === "InvalidChip" ? failure("unit.issuance_reverted", reason) : null),

  mayPass: async (_queries, effect, reason) => reason === "InvalidChip" && hasFitChip(effect),

  /**
   * Serials are read from logs, never assumed. A success without logs had no effect, because these units had been
   * issued before, as after a restored back-up: planned again, they get the serials that the chain has for them.
   */
  async results(chain, queries, mined) {
    const { effects } = mined
    const judged = new Map<string, JobResult<"issueUnit">>()
    for (const batch of await batchesOf(queries, mined)) {
      const issued = await serialsOf(chain, mined, batch)
      const isToCome = issued === null && (await canSucceedLater(chain, queries, mined.transaction, batch))
      for (const { id, input } of batch.effects) {
        const serial = issued?.serials[batch.chip_ids.indexOf(input.chip_id)]
        const { transactionHash: transaction_hash } = mined.receipt
        if (isToCome) judged.set(id, "again")
        else if (issued && serial !== undefined)
          judged.set(id, { output: { serial, transaction_hash }, block_number: issued.block_number })
        else judged.set(id, { error: failure("unit.issuance_reverted", transaction_hash) })
      }
    }
    return effects.map(({ id }) => judged.get(id) ?? "again")
  },

  async afterwards(turn, mined, results) {
    const { effects } = mined
    const isIssued = (effect: Effect<"issueUnit">) =>
      effect.status === "done" || isOutput(results[effects.indexOf(effect)])
    const issuedNow = (effect: Effect<"issueUnit">) => {
      const result = results[effects.indexOf(effect)]
      if (effect.status === "done" || !isOutput(result)) return []
      return [{ unit_id: effect.actor_id, serial: result.output.serial }]
    }
    for (const { collection_id, first, effects: members } of await batchesOf(turn.tx, mined)) {
      if (members.length === 0) continue
      // After a restored back-up, units whose transactions were open may have been claimed since.
      await takeFoundOwners(turn, collection_id, members.flatMap(issuedNow))
      await closeBulkPairings(turn, members)
      if (!members.every(isIssued)) await takeBackSerials(turn, { id: collection_id, first })
    }
  },

  async release(turn, planned) {
    for (const { collection_id: id, first, effects: members } of await batchesOf(turn.tx, planned))
      if (members.length > 0) await takeBackSerials(turn, { id, first })
  },

  afterRefusal: closeBulkPairings,
  lack: lackOf,
}

/** What waits for a collection, and the part of it that comes next. */
type Next = {
  collection: CollectionRow
  ofCollection: Effect<"issueUnit">[]
  members: Effect<"issueUnit">[]
}

/** Plans an issuance that builds on one still open, unless that one or those behind it will revert. */
async function planBehind(
  chain: ConnectedChain,
  queries: Queries,
  last: Issuance,
  { collection, ofCollection, members }: Next,
): Promise<Call<"issueUnit"> | Wait<"issueUnit">> {
  if (isRunningDry(last, collection) || members.some(isRepeat)) return { do: "wait", effects: ofCollection }
  const issued = await beforeHeldSerials(queries, collection, members)
  return await issueOrWait(chain, { collection, ofCollection, members: issued })
}

/** Plans an issuance while none of the collection is open: only then can serials be compared with the chain's. */
async function planFirst(
  chain: ConnectedChain,
  queries: Queries,
  { collection, ofCollection, members }: Next,
): Promise<Call<"issueUnit"> | Wait<"issueUnit"> | Write<"issueUnit">> {
  const takenUp = await takeUpSerials(chain, queries, collection, ofCollection)
  if (takenUp?.do === "write") return giveAtOnce(collection, takenUp)
  if (takenUp) return takenUp
  const issued = await beforeHeldSerials(queries, collection, members)
  return await issueOrWait(chain, { collection, ofCollection, members: issued })
}

async function issueOrWait(
  chain: ConnectedChain,
  { collection, ofCollection, members }: Next,
): Promise<Call<"issueUnit"> | Wait<"issueUnit">> {
  if (members.length === 0) return { do: "wait", effects: ofCollection }
  return await issueBatch(chain, collection, members)
}

/**
 * Returns whether these are single units, too few to be stored as code: a larger batch gains nothing by being joined.
 */
function isForDesk({ config }: ConnectedChain, members: Effect<"issueUnit">[]): boolean {
  return (
    config.desk_address !== null &&
    members.length < config.chips_as_code_from &&
    members[0]?.input.bulk_pairing_id === null
  )
}

/** Returns a call for each other collection whose next single units can be sent now. */
async function callsOfOthers(
  chain: ConnectedChain,
  queries: Queries,
  [first, ...waiting]: [Effect<"issueUnit">, ...Effect<"issueUnit">[]],
  units: number,
): Promise<Call<"issueUnit">[]> {
  const calls: Call<"issueUnit">[] = []
  let room = maxUnits - units
  for (const [id, ofCollection] of Map.groupBy(waiting, ({ input }) => input.collection_id)) {
    const [next] = ofCollection
    const batch = nextBatch(ofCollection)
    if (!next || id === first.input.collection_id || !isForDesk(chain, batch)) continue
    if (batch.length > room) continue
    const planned = await callOfOther(chain, queries, next, { ofCollection, room })
    if (!planned) continue
    calls.push(planned)
    room -= planned.members.length
    if (calls.length + 1 === maxAtDesk) break
  }
  return calls
}

/** Returns the call for another collection's next units; null if none can go along now, or if it is broken itself. */
async function callOfOther(
  chain: ConnectedChain,
  queries: Queries,
  next: Effect<"issueUnit">,
  { ofCollection, room }: { ofCollection: Effect<"issueUnit">[]; room: number },
): Promise<Call<"issueUnit"> | null> {
  try {
    const collection = await collectionOf(queries, next)
    const members = await nextUnits(queries, collection, ofCollection)
    if (members.length > room || !isForDesk(chain, members)) return null
    if (await settleFound(queries, collection, members)) return null
    if (await lastOnItsWay(queries, collection)) return null
    const planned = await planFirst(chain, queries, { collection, ofCollection, members })
    return planned.do === "call" ? planned : null
  } catch (error) {
    if (error instanceof ChainUnreachable || error instanceof DatabaseUnavailable) throw error
    return null
  }
}

/** Gives serials in the database transaction that takes them up: until then, no lane repeats what issued them. */
function giveAtOnce(collection: CollectionRow, takenUp: Write<"issueUnit">): Write<"issueUnit"> {
  return {
    ...takenUp,
    async write(turn) {
      await takenUp.write(turn)
      const found = await settleFound(turn.tx, collection, takenUp.taken)
      await found?.write(turn)
    },
  }
}

/** Gives units the serials that the chain already has for their chips; null if there are none. */
async function settleFound(
  queries: Queries,
  { id }: CollectionRow,
  members: Effect<"issueUnit">[],
): Promise<Write<"issueUnit"> | null> {
  const chipIds = members.map((effect) => effect.input.chip_id)
  const serials = await foundSerialsOf(queries, id, chipIds)
  const taken = members.filter((effect) => serials.has(effect.input.chip_id))
  if (taken.length === 0) return null
  const hashes = [...serials.values()].map(({ transaction_hash }) => transaction_hash)
  const issuances = await ownIssuances(queries, hashes)
  return {
    do: "write",
    taken,
    async write(turn) {
      for (const effect of taken) {
        const found = serials.get(effect.input.chip_id)
        if (!found) continue
        const { serial, transaction_hash } = found
        const own = issuances.get(transaction_hash)
        if (own !== undefined) await giveTo(turn, effect, own)
        const output: OutputOf<"issueUnit"> = { serial, transaction_hash }
        await settleEffect(turn, effect.id, { output })
        await takeFoundOwners(turn, id, [{ unit_id: effect.actor_id, serial }])
      }
      await closeBulkPairings(turn, taken)
    },
    warning: null,
  }
}

/**
 * Binds the effect to its transaction, which seemed to achieve nothing for it. Its lane finds the transaction again and
 * judges it for this effect, too: by now, it may be in a block where it achieves nothing.
 */
async function giveTo(turn: Turn, { id }: Effect<"issueUnit">, transaction_id: string): Promise<void> {
  await turn.tx.update(effects).set({ transaction_id }).where(eq(effects.id, id))
  await turn.tx
    .update(transactions)
    .set({ status: "confirmed", block_hash: null, updated_at: turn.at })
    .where(and(eq(transactions.id, transaction_id), inArray(transactions.status, ["confirmed", "reverted"])))
}

async function issueBatch(
  { config, generations }: ConnectedChain,
  { id, address, next_serial: first }: CollectionRow,
  members: Effect<"issueUnit">[],
): Promise<Call<"issueUnit">> {
  const after = first + members.length
  const { generation } = await generations.originOf(address as Address)
  const chip_ids = members.map((member) => member.input.chip_id)
  return {
    do: "call",
    members,
    to: address as Address,
    data: encodeIssue(
      generation,
      { first, chip_ids },
      { asCode: members.length >= config.chips_as_code_from },
    ),
    gas: 150_000n + 12_000n * BigInt(members.length),
    async reserve(turn) {
      const reserved = await reserveSerials(turn.tx, { id, first, after })
      if (reserved.length === 0) throw new Error(`serial ${first} of collection ${id} was reserved meanwhile`)
    },
  }
}

const reserveSerials = query(
  (db, { id, first, after }: Given<{ id: string; first: number; after: number }>) =>
    db
      .update(collections)
      .set({ next_serial: after })
      .where(and(eq(collections.id, id), eq(collections.next_serial, first)))
      .returning({ id: collections.id }),
)

/** Takes back the serials from `first` on, so that they are given to units again. */
async function takeBackSerials({ tx }: Turn, { id, first }: { id: string; first: number }): Promise<void> {
  await tx
    .update(collections)
    .set({ next_serial: first })
    .where(and(eq(collections.id, id), gt(collections.next_serial, first)))
}

/** Returns what the collection's last open transaction issues. */
async function lastOnItsWay(queries: Queries, collection: CollectionRow): Promise<Issuance | undefined> {
  const [last] = await issuancesWith(queries, collection, openTransactionStatuses)
  return last
}

/**
 * Returns whether a batch reverted while this one was open. Those behind it then revert, too: its serials were taken
 * back, and nothing new is planned until none of them is open.
 */
function isRunningDry({ first, chip_ids }: Issuance, { next_serial }: CollectionRow): boolean {
  return first + chip_ids.length !== next_serial
}

/**
 * Returns whether the effect failed before. Behind a reverted transaction whose receipt cannot be read it would fail
 * again at every block, so it waits until no transaction of the collection is open.
 */
function isRepeat({ attempts }: Effect<"issueUnit">): boolean {
  return attempts > 0
}

/** Closes bulk requests without open effects, so that the next ones can come. */
async function closeBulkPairings({ tx, at }: Turn, settled: Effect<"issueUnit">[]): Promise<void> {
  for (const id of new Set(settled.map(({ input }) => input.bulk_pairing_id)))
    if (id !== null) await closeBulkPairing(tx, { id, issued_at: at })
}

const closeBulkPairing = query((db, { id, issued_at }: Given<{ id: string; issued_at: Date }>) => {
  // Phrased like the index in migrations/0028_effects_of_bulk.sql.
  const isOfBulk = sql`${effects.input} ->> 'bulk_pairing_id' = ${id}`
  const isWaiting = and(isOfBulk, eq(effects.status, "open"), eq(effects.src, "issueUnit"))
  const open = db.select({ id: effects.id }).from(effects).where(isWaiting)
  return db
    .update(bulkPairings)
    .set({ issued_at })
    .where(and(eq(bulkPairings.id, id), isNull(bulkPairings.issued_at), notExists(open)))
})

/**
 * Returns whether a reverted batch is planned again, a limited number of times: it may have reverted because one before
 * it did or lost its nonce, or because the chain has other units at its serials.
 */
async function canSucceedLater(
  chain: ConnectedChain,
  queries: Queries,
  { lane_id }: TransactionRow,
  { contract: to, data, effects }: Batch,
): Promise<boolean> {
  // The lane's key may be gone, so its address is read from the database.
  const [lane] = await queries.select({ address: lanes.address }).from(lanes).where(eq(lanes.id, lane_id))
  if (!lane) throw new Error(`there is no lane ${lane_id}, which sent the issuance`)
  const verdict = await tryCall(chain, lane.address as Address, { to, data })
  const reason = verdict instanceof CallReverted ? verdict.reason : null
  // An earlier batch is not mined yet.
  if (reason === "SerialGap") return true
  // What was done once is done again, however often it was planned.
  if (effects.every(({ status, attempts }) => status !== "done" && attempts >= maxPlans)) return false
  // Planning finds out which of them causes the revert.
  return reason === null || issueUnits.refusal(reason) === null || effects.some(hasFitChip)
}

/** Returns whether the chip's id is not zero: the contract refuses a zero chip, and with it the whole call. */
function hasFitChip({ input }: Effect<"issueUnit">): boolean {
  return !/^0+$/.test(input.chip_id)
}
