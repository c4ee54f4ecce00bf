import { and, desc, eq, gt, inArray, isNull, like, notExists, or, sql } from "drizzle-orm"
import { type Address, type Hex, isAddressEqual, parseEventLogs, type TransactionReceipt } from "viem"
import { failure } from "../../machines/failures.ts"
import type { Queries } from "../../src/db/database.ts"
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
import type { Turn } from "../../src/db/turn.ts"
import type { OutputOf } from "../../src/engine/actors/effects.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { callsIn, runSelector } from "../../src/engine/chain/desk.ts"
import { decodeIssue, encodeIssue, packedChips } from "../../src/engine/chain/issue-call.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { CallReverted } from "../../src/engine/chain/rpc.ts"
import { tryCall } from "../../src/engine/chain/try-call.ts"
import { foundSerialsOf, ownIssuances } from "../../src/engine/found-serials.ts"
import {
  type Call,
  type Effect,
  isOutput,
  type Job,
  type JobResult,
  type Mined,
  maxPlans,
  type Write,
} from "../../src/engine/jobs/job.ts"
import { addressesOf, collectionOf } from "./collections.ts"
import { beforeHeldSerials, maxUnits, nextBatch, withoutOvertaking } from "./issue-order.ts"
import { joinAtDesk, maxAtDesk } from "./join-at-desk.ts"
import { takeFoundOwners, takeUpSerials } from "./take-up-serials.ts"

/** Issues a bulk request as one transaction, and single units that wait for the same collection together. */
export const issueUnits: Job<"issueUnit"> = {
  lineOf: (effect) => effect.input.collection_id,

  async plan(chain, queries, waiting) {
    const collection = await collectionOf(queries, waiting[0])
    const ofCollection = waiting.filter((effect) => effect.input.collection_id === collection.id)
    const members = await withoutOvertaking(queries, nextBatch(ofCollection))
    if (members.length === 0) return { do: "wait", effects: ofCollection }
    const found = await settleFound(queries, collection, members)
    if (found) return found
    const last = await lastOnItsWay(queries, collection)
    if (last && (isRunningDry(last, collection) || members.some(isRepeat)))
      return { do: "wait", effects: ofCollection }
    const takenUp = last ? null : await takeUpSerials(chain, queries, collection, ofCollection)
    if (takenUp) return takenUp
    const issued = await issuableNow(queries, collection, members)
    if (issued.length === 0) return { do: "wait", effects: ofCollection }
    const own = await issueBatch(chain, collection, issued)
    if (last || !isForDesk(chain, issued)) return own
    const others = await callsOfOthers(chain, queries, waiting, issued.length)
    return others.length === 0 ? own : ((await joinAtDesk(chain, [own, ...others])) ?? own)
  },

  refusal: (reason) => (reason === "InvalidChip" ? failure("unit.issuance_reverted", reason) : null),

  mayPass: async (_queries, effect, reason) => reason === "InvalidChip" && hasFitChip(effect),

  /**
   * Serials are read from the logs of the block, never assumed. A success without them had no effect, because these
   * units were issued before, as after a restored back-up: planned anew, they get the serials the chain has for them.
   */
  async results(chain, queries, mined) {
    const { effects } = mined
    const judged = new Map<string, JobResult<"issueUnit">>()
    for (const batch of await batchesOf(queries, mined)) {
      const serials = await serialsOf(chain, mined, batch)
      const isToCome = serials === null && (await canSucceedLater(chain, queries, mined.transaction, batch))
      for (const { id, input } of batch.effects) {
        const serial = serials?.[batch.chip_ids.indexOf(input.chip_id)]
        const { transactionHash: transaction_hash } = mined.receipt
        if (isToCome) judged.set(id, "again")
        else if (serial !== undefined) judged.set(id, { output: { serial, transaction_hash } })
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
      // After an older back-up was restored, what was on its way in it may have been claimed since.
      await takeFoundOwners(turn, collection_id, members.flatMap(issuedNow))
      await closeBulkPairings(turn, members)
      if (members.every(isIssued)) continue
      await turn.tx
        .update(collections)
        .set({ next_serial: first })
        .where(and(eq(collections.id, collection_id), gt(collections.next_serial, first)))
    }
  },

  afterRefusal: closeBulkPairings,
}

/** Single units, few enough for slots: a larger batch gains nothing by company. */
function isForDesk({ config }: ConnectedChain, members: Effect<"issueUnit">[]): boolean {
  return (
    config.desk_address !== null &&
    members.length < config.chips_as_code_from &&
    members[0]?.input.bulk_pairing_id === null
  )
}

/** The next single units of other collections that nothing stands in the way of, as a call for each. */
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
    const collection = await collectionOf(queries, next)
    const members = await withoutOvertaking(queries, batch)
    if (members.length === 0) continue
    if (await settleFound(queries, collection, members)) continue
    if (await lastOnItsWay(queries, collection)) continue
    if (await takeUpSerials(chain, queries, collection, ofCollection)) continue
    const issued = await issuableNow(queries, collection, members)
    if (issued.length === 0) continue
    calls.push(await issueBatch(chain, collection, issued))
    room -= issued.length
    if (calls.length + 1 === maxAtDesk) break
  }
  return calls
}

/** Gives units the serials that the chain has for their chips already; null where there are none. */
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

/** From now on a transaction that seemed to have achieved nothing stands for this effect, and is watched for it. */
async function giveTo(turn: Turn, { id }: Effect<"issueUnit">, transaction_id: string): Promise<void> {
  await turn.tx.update(effects).set({ transaction_id }).where(eq(effects.id, id))
  await turn.tx
    .update(transactions)
    .set({ status: "confirmed", updated_at: turn.at })
    .where(and(eq(transactions.id, transaction_id), eq(transactions.status, "reverted")))
}

/**
 * Those of a batch that go out together. What had no effect goes out anew with those it was with at first: a
 * reorganization may bring the earlier bytes back, and the contract refuses a batch of which it has only a part.
 */
async function issuableNow(
  queries: Queries,
  collection: CollectionRow,
  batch: Effect<"issueUnit">[],
): Promise<Effect<"issueUnit">[]> {
  const members = await beforeHeldSerials(queries, collection, batch)
  if (!members.some(isRepeat)) return members
  const earlier = await issuancesWith(queries, collection, ["confirmed", "reverted"])
  const before = earlier.find(({ first }) => first === collection.next_serial)
  const end = members.findIndex(({ input }) => !before?.chip_ids.includes(input.chip_id))
  return end <= 0 ? members : members.slice(0, end)
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
      if (reserved.length === 0) throw new Error(`serial ${first} of ${id} was taken meanwhile`)
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

/** What the collection's last transaction issues whose results are not known yet. */
async function lastOnItsWay(queries: Queries, collection: CollectionRow): Promise<Issuance | undefined> {
  const [last] = await issuancesWith(queries, collection, ["allocated", "signed", "sent", "mined"])
  return last
}

/** What transactions of some statuses issue of a collection, the last one first. */
async function issuancesWith(
  queries: Queries,
  { address, chain_id }: CollectionRow,
  statuses: TransactionRow["status"][],
): Promise<Issuance[]> {
  const rows = await callsWith(queries, { address, chain_id, statuses })
  // What others issue through the desk takes long to be read, and matters to them.
  return rows.flatMap((row) => issuancesIn(row, address))
}

type Sought = Pick<CollectionRow, "address" | "chain_id"> & { statuses: TransactionRow["status"][] }

const callsWith = query((db, { address, chain_id, statuses }: Given<Sought>) =>
  db
    .select({ to: transactions.to, call: transactions.call })
    .from(transactions)
    .where(
      and(
        eq(transactions.chain_id, chain_id),
        eq(transactions.kind, "issueUnit"),
        or(eq(transactions.to, address), like(transactions.call, `${runSelector}%`)),
        inArray(transactions.status, statuses),
      ),
    )
    .orderBy(desc(transactions.nonce)),
)

/**
 * After a batch reverted, those behind it revert too: its serials were given back, and nothing new is planned on them
 * until none of that is on its way any more.
 */
function isRunningDry({ first, chip_ids }: Issuance, { next_serial }: CollectionRow): boolean {
  return first + chip_ids.length !== next_serial
}

/**
 * What failed before fails again behind a transaction that reverted and whose receipt cannot be read, and would go out
 * anew with every block: it waits until nothing of the collection is on its way.
 */
function isRepeat({ attempts }: Effect<"issueUnit">): boolean {
  return attempts > 0
}

/** A bulk request makes way for the next one when nothing of it is open any more. */
async function closeBulkPairings({ tx, at }: Turn, settled: Effect<"issueUnit">[]): Promise<void> {
  for (const id of new Set(settled.map(({ input }) => input.bulk_pairing_id)))
    if (id !== null) await closeBulkPairing(tx, { id, issued_at: at })
}

const closeBulkPairing = query((db, { id, issued_at }: Given<{ id: string; issued_at: Date }>) => {
  // In the words of the index in migrations/0028_effects_of_bulk.sql.
  const isOfBulk = sql`${effects.input} ->> 'bulk_pairing_id' = ${id}`
  const isWaiting = and(isOfBulk, eq(effects.status, "open"), eq(effects.src, "issueUnit"))
  const open = db.select({ id: effects.id }).from(effects).where(isWaiting)
  return db
    .update(bulkPairings)
    .set({ issued_at })
    .where(and(eq(bulkPairings.id, id), isNull(bulkPairings.issued_at), notExists(open)))
})

/**
 * A batch reverts also because one before it did or lost its nonce, or because the chain has other units at its
 * serials: then it is planned anew, a few times.
 */
async function canSucceedLater(
  chain: ConnectedChain,
  queries: Queries,
  { lane_id }: TransactionRow,
  { contract: to, data, effects }: Batch,
): Promise<boolean> {
  // The lane may be one whose key is gone.
  const [lane] = await queries.select({ address: lanes.address }).from(lanes).where(eq(lanes.id, lane_id))
  if (!lane) throw new Error(`there is no lane ${lane_id} that issued`)
  const verdict = await tryCall(chain, lane.address as Address, { to, data })
  const reason = verdict instanceof CallReverted ? verdict.reason : null
  // What goes before it is still to come.
  if (reason === "SerialGap") return true
  // What was done and has to be done again is that however often it was planned.
  if (effects.some(({ status, attempts }) => status !== "done" && attempts >= maxPlans)) return false
  // Which of them is to blame is found out before they are sent again.
  return reason === null || issueUnits.refusal(reason) === null || effects.some(hasFitChip)
}

/** The contract refuses a chip whose id is zero, and with it all that are issued by the same call. */
function hasFitChip({ input }: Effect<"issueUnit">): boolean {
  return !/^0+$/.test(input.chip_id)
}

/** What a transaction issues of one collection. */
type Issuance = { contract: Address; data: Hex; first: number; chip_ids: readonly string[] }

/** What a transaction issues, of one contract alone where that is named. */
function issuancesIn({ to, call }: Pick<TransactionRow, "to" | "call">, of?: string): Issuance[] {
  return callsIn({ to, data: call }).flatMap(({ to: contract, data }) =>
    of === undefined || contract === of ? [{ contract, data, ...decodeIssue(data) }] : [],
  )
}

/** What a transaction issues of one collection, with the effects that it achieves. */
type Batch = Issuance & { collection_id: string; effects: Effect<"issueUnit">[] }

async function batchesOf(queries: Queries, { transaction, effects }: Mined<"issueUnit">): Promise<Batch[]> {
  const ids = [...new Set(effects.map(({ input }) => input.collection_id))]
  if (ids.length === 0) return []
  const rows = await addressesOf(queries, { ids })
  return issuancesIn(transaction).flatMap((issuance) => {
    const collection = rows.find((row) => row.address === issuance.contract)
    if (!collection) return []
    const ofBatch = effects.filter(({ input }) => input.collection_id === collection.id)
    return [{ ...issuance, collection_id: collection.id, effects: ofBatch }]
  })
}

/** The serials of a batch's chips, in order; null where this transaction did not give them any. */
async function serialsOf(
  chain: ConnectedChain,
  { receipt }: Mined<"issueUnit">,
  batch: Batch,
): Promise<number[] | null> {
  if (receipt.status !== "success") return null
  return serialsIn(receipt, batch) ?? (await serialsOfRepeat(chain, receipt, batch))
}

function serialsIn(receipt: TransactionReceipt, { contract, chip_ids }: Batch): number[] | null {
  const logs = parseEventLogs({ abi: collectionAbi, eventName: ["Issued", "Transfer"], logs: receipt.logs })
  const ours = logs.filter((log) => isAddressEqual(log.address, contract))
  const issued = ours.find((log) => log.eventName === "Issued")
  const serials = ours
    .filter((log) => log.eventName === "Transfer")
    .map((log) => Number((log.args as { tokenId: bigint }).tokenId))
  if (!issued || serials.length !== chip_ids.length) return null
  return (issued.args as { chips: Hex }).chips.toLowerCase() === packedChips(chip_ids) ? serials : null
}

/**
 * Of units that have their serials: where the chain had issued so many by then, the contract had nothing to do. What
 * was issued later may be undone alone.
 */
async function serialsOfRepeat(
  chain: ConnectedChain,
  { blockNumber }: TransactionReceipt,
  { contract, first, chip_ids, effects }: Batch,
): Promise<number[] | null> {
  if (effects.some(({ status }) => status !== "done")) return null
  const issued = await unlessForgotten(() => issuedOn(chain, contract, blockNumber))
  if ((issued ?? (await issuedOn(chain, contract))) < first + chip_ids.length - 1) return null
  return chip_ids.map((_id, index) => first + index)
}
