import { and, desc, eq, gt, inArray, isNull, notExists, sql } from "drizzle-orm"
import {
  type Address,
  decodeFunctionData,
  encodeFunctionData,
  type Hex,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import type { IssueUnitInput } from "../machines/unit-token.ts"
import { type EffectResult, settleEffect } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { CallReverted } from "../src/chain/rpc.ts"
import type { TransactionRow } from "../src/chain/transactions.ts"
import type { Queries } from "../src/db/database.ts"
import { bulkPairings, collections, effects, transactions } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { failure } from "./failures.ts"
import { type Call, type Effect, isOutput, type Job, type Written } from "./job.ts"
import { foundSerialsOf, issuedOn, takeUpSerials } from "./take-up-serials.ts"
import { tryCall } from "./try-call.ts"

/** The most single units that are joined into one transaction; a bulk request has no more either. */
const maxUnits = 100

/** Issues a bulk request as one transaction, and single units that wait for the same collection together. */
export const issueUnits: Job = {
  src: "issueUnit",

  lineOf: (effect) => inputOf(effect).collection_id,

  async plan(chain, queries, waiting) {
    const collection = await collectionOf(queries, waiting[0])
    const ofCollection = waiting.filter((effect) => inputOf(effect).collection_id === collection.id)
    const members = nextBatch(ofCollection)
    const found = await settleFound(queries, collection, members)
    if (found) return found
    const last = await lastOnItsWay(queries, collection)
    if (last && isRunningDry(last, collection)) return { later: ofCollection }
    const takenUp = last ? null : await takeUpSerials(chain, queries, collection)
    if (takenUp === "later") return { later: ofCollection }
    return takenUp ?? issueBatch(collection, members)
  },

  refusal: (reason) => (reason === "InvalidChip" ? failure("unit.issuance_reverted", reason) : null),

  /**
   * Serials are read from the logs of the block, never assumed. A success without them had no effect, because these
   * units were issued before, as after a restored back-up: planned anew, they get the serials the chain has for them.
   */
  async results(chain, _queries, { transaction, effects, receipt }) {
    const serials =
      receipt.status === "success"
        ? (serialsIn(receipt, transaction) ?? (await serialsOfRepeat(chain, transaction, effects)))
        : null
    if (!serials && (await canSucceedLater(chain, transaction, effects))) return effects.map(() => "again")
    return effects.map((_effect, index): EffectResult => {
      const serial = serials?.[index]
      if (serial !== undefined) return { output: { serial, transaction_hash: receipt.transactionHash } }
      return { error: failure("unit.issuance_reverted", receipt.transactionHash) }
    })
  },

  async afterwards(turn, { transaction, effects }, results) {
    const { collection_id } = inputOf(effects[0] as Effect)
    const isIssued = effects.every((effect, index) => effect.status === "done" || isOutput(results[index]))
    if (isIssued) return await closeBulkPairings(turn, effects)
    const { first } = issueCall(transaction)
    await turn.tx
      .update(collections)
      .set({ next_serial: first })
      .where(and(eq(collections.id, collection_id), gt(collections.next_serial, first)))
  },
}

type CollectionRow = typeof collections.$inferSelect

async function collectionOf(queries: Queries, effect: Effect): Promise<CollectionRow> {
  const { collection_id } = inputOf(effect)
  const [collection] = await queries.select().from(collections).where(eq(collections.id, collection_id))
  if (!collection) throw new Error(`there is no collection ${collection_id} to issue for`)
  return collection
}

/** Gives units the serials that the chain has for their chips already; null where there are none. */
async function settleFound(
  queries: Queries,
  { id }: CollectionRow,
  members: Effect[],
): Promise<Written | null> {
  const chipIds = members.map((effect) => inputOf(effect).chip_id)
  const serials = await foundSerialsOf(queries, id, chipIds)
  const taken = members.filter((effect) => serials.has(inputOf(effect).chip_id))
  if (taken.length === 0) return null
  return {
    taken,
    async write(turn) {
      for (const effect of taken) {
        const found = serials.get(inputOf(effect).chip_id)
        if (!found) continue
        const { serial, transaction_hash } = found
        await settleEffect(turn, effect.id, { output: { serial, transaction_hash } })
      }
      await closeBulkPairings(turn, taken)
    },
    warning: null,
  }
}

function issueBatch({ id, address, next_serial: first }: CollectionRow, members: Effect[]): Call {
  const after = first + members.length
  return {
    members,
    to: address as Address,
    data: encodeFunctionData({
      abi: collectionAbi,
      functionName: "issue",
      args: [BigInt(first), members.map((member) => Number.parseInt(inputOf(member).chip_id, 16))],
    }),
    gas: 150_000n + 12_000n * BigInt(members.length),
    async reserve(turn) {
      const reserved = await turn.tx
        .update(collections)
        .set({ next_serial: after })
        .where(and(eq(collections.id, id), eq(collections.next_serial, first)))
        .returning({ id: collections.id })
      if (reserved.length === 0) throw new Error(`serial ${first} of ${id} was taken meanwhile`)
    },
  }
}

/** The collection's last transaction whose results are not known yet. */
async function lastOnItsWay(
  queries: Queries,
  { address, chain_id }: CollectionRow,
): Promise<TransactionRow | undefined> {
  const [last] = await queries
    .select()
    .from(transactions)
    .where(
      and(
        eq(transactions.chain_id, chain_id),
        eq(transactions.kind, issueUnits.src),
        eq(transactions.to, address),
        inArray(transactions.status, ["allocated", "signed", "sent", "mined"]),
      ),
    )
    .orderBy(desc(transactions.nonce))
    .limit(1)
  return last
}

/**
 * After a batch reverted, those behind it revert too: its serials were given back, and nothing new is planned on them
 * until none of that is on its way any more.
 */
function isRunningDry(last: TransactionRow, { next_serial }: CollectionRow): boolean {
  const { first, chips } = issueCall(last)
  return first + chips.length !== next_serial
}

/** A bulk request makes way for the next one when nothing of it is open any more. */
async function closeBulkPairings(turn: Turn, settled: Effect[]): Promise<void> {
  const bulks = new Map(settled.map((effect) => [inputOf(effect).bulk_pairing_id, effect.queue]))
  for (const [bulk_pairing_id, queue] of bulks) {
    if (bulk_pairing_id === null) continue
    const isOfBulk = sql`${effects.input} ->> 'bulk_pairing_id' = ${bulk_pairing_id}`
    const open = turn.tx
      .select({ id: effects.id })
      .from(effects)
      .where(and(eq(effects.queue, queue), eq(effects.status, "open"), isOfBulk))
    await turn.tx
      .update(bulkPairings)
      .set({ issued_at: turn.at })
      .where(and(eq(bulkPairings.id, bulk_pairing_id), isNull(bulkPairings.issued_at), notExists(open)))
  }
}

/**
 * A batch reverts also because one before it did or lost its nonce, or because the chain has other units at its
 * serials: then it is planned anew, a few times.
 */
async function canSucceedLater(
  chain: ConnectedChain,
  { lane_id, to, call }: TransactionRow,
  effects: Effect[],
): Promise<boolean> {
  const signer = chain.signers.find((each) => each.lane_id === lane_id)
  if (!signer) return false
  const verdict = await tryCall(chain, signer.address, { to: to as Address, data: call as Hex })
  // What goes before it is still to come.
  if (verdict instanceof CallReverted && verdict.reason === "SerialGap") return true
  if (effects.some(({ attempts }) => attempts >= maxPlans)) return false
  return !(verdict instanceof CallReverted) || issueUnits.refusal(verdict.reason) === null
}

const maxPlans = 5

/** The first unit with its bulk request, or with the single ones that follow before the next bulk request. */
function nextBatch(ofCollection: Effect[]): Effect[] {
  const bulkPairingId = ofCollection[0] && inputOf(ofCollection[0]).bulk_pairing_id
  const end = ofCollection.findIndex((effect) => inputOf(effect).bulk_pairing_id !== bulkPairingId)
  return ofCollection.slice(0, end === -1 ? undefined : end).slice(0, maxUnits)
}

function inputOf(effect: Effect): IssueUnitInput {
  return effect.input as IssueUnitInput
}

function issueCall(transaction: TransactionRow): { first: number; chips: readonly number[] } {
  const { args } = decodeFunctionData({ abi: collectionAbi, data: transaction.call as Hex })
  const [first, chips] = args as readonly [bigint, readonly number[]]
  return { first: Number(first), chips }
}

function serialsIn(receipt: TransactionReceipt, transaction: TransactionRow): number[] | null {
  const { chips } = issueCall(transaction)
  const logs = parseEventLogs({ abi: collectionAbi, eventName: ["Issued", "Transfer"], logs: receipt.logs })
  const ours = logs.filter((log) => isAddressEqual(log.address, transaction.to as Address))
  const issued = ours.find((log) => log.eventName === "Issued")
  const serials = ours
    .filter((log) => log.eventName === "Transfer")
    .map((log) => Number((log.args as { tokenId: bigint }).tokenId))
  if (!issued || serials.length !== chips.length) return null
  return (issued.args as { chips: Hex }).chips.toLowerCase() === packedChips(chips) ? serials : null
}

/** Of units that have their serials: where the chain has issued so many, the contract had nothing to do. */
async function serialsOfRepeat(
  chain: ConnectedChain,
  transaction: TransactionRow,
  effects: Effect[],
): Promise<number[] | null> {
  if (effects.some(({ status }) => status !== "done")) return null
  const { first, chips } = issueCall(transaction)
  if ((await issuedOn(chain, transaction.to as Address)) < first + chips.length - 1) return null
  return chips.map((_chip, index) => first + index)
}

/** Chips as the `Issued` event has them: five bytes each, in order. */
function packedChips(chips: readonly number[]): Hex {
  return `0x${chips.map((chip) => chip.toString(16).padStart(10, "0")).join("")}`
}
