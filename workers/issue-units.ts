import { and, desc, eq, gt, inArray, isNull } from "drizzle-orm"
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
import type { EffectResult } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { CallReverted, reach } from "../src/chain/rpc.ts"
import type { TransactionRow } from "../src/chain/transactions.ts"
import type { Queries } from "../src/db/database.ts"
import { bulkPairings, collections, transactions } from "../src/db/schema.ts"
import { failure } from "./failures.ts"
import type { Effect, Job } from "./job.ts"
import { tryCall } from "./try-call.ts"

/** The most single units that are joined into one transaction; a bulk request has no more either. */
const maxUnits = 100

/** Issues a bulk request as one transaction, and single units that wait for the same collection together. */
export const issueUnits: Job = {
  src: "issueUnit",

  lineOf: (effect) => inputOf(effect).collection_id,

  async plan(_chain, queries, waiting) {
    const { collection_id } = inputOf(waiting[0])
    const [collection] = await queries.select().from(collections).where(eq(collections.id, collection_id))
    if (!collection) throw new Error(`there is no collection ${collection_id} to issue for`)
    if (await isRunningDry(queries, collection))
      return { later: waiting.filter((effect) => inputOf(effect).collection_id === collection_id) }
    const members = nextBatch(waiting)
    const first = collection.next_serial
    const after = first + members.length
    return {
      members,
      to: collection.address as Address,
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
          .where(and(eq(collections.id, collection_id), eq(collections.next_serial, first)))
          .returning({ id: collections.id })
        if (reserved.length === 0) throw new Error(`serial ${first} of ${collection_id} was taken meanwhile`)
      },
    }
  },

  refusal: (reason) =>
    ["IssuedDifferently", "InvalidChip"].includes(reason) ? failure("unit.issuance_reverted", reason) : null,

  /** Serials are read from the logs of the block, never assumed; a success without them is not a success. */
  async results(chain, _queries, { transaction, effects, receipt }) {
    const issued =
      receipt.status === "success"
        ? (serialsIn(receipt, transaction) ?? (await serialsIssuedBefore(chain, transaction)))
        : null
    if (!issued && (await canSucceedLater(chain, transaction, effects))) return effects.map(() => "again")
    return effects.map((_effect, index): EffectResult => {
      const serial = issued?.serials[index]
      if (serial !== undefined) return { output: { serial, transaction_hash: issued?.transaction_hash } }
      return { error: failure("unit.issuance_reverted", receipt.transactionHash) }
    })
  },

  async afterwards(turn, { transaction, effects }, results) {
    const { collection_id, bulk_pairing_id } = inputOf(effects[0] as Effect)
    const isIssued = results.every((result) => result !== "again" && "output" in result)
    if (!isIssued) {
      const { first } = issueCall(transaction)
      await turn.tx
        .update(collections)
        .set({ next_serial: first })
        .where(and(eq(collections.id, collection_id), gt(collections.next_serial, first)))
    }
    if (!isIssued || !bulk_pairing_id) return
    await turn.tx
      .update(bulkPairings)
      .set({ issued_at: turn.at })
      .where(and(eq(bulkPairings.id, bulk_pairing_id), isNull(bulkPairings.issued_at)))
  },
}

/**
 * After a batch reverted, those behind it revert too: its serials were given back, and nothing new is planned on them
 * until none of that is on its way any more.
 */
async function isRunningDry(
  queries: Queries,
  { address, chain_id, next_serial }: typeof collections.$inferSelect,
): Promise<boolean> {
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
  if (!last) return false
  const { first, chips } = issueCall(last)
  return first + chips.length !== next_serial
}

/** A batch reverts also because one before it did, or lost its nonce: then it is planned anew, a few times. */
async function canSucceedLater(
  chain: ConnectedChain,
  { lane_id, to, call }: TransactionRow,
  effects: Effect[],
): Promise<boolean> {
  const signer = chain.signers.find((each) => each.lane_id === lane_id)
  if (!signer || effects.some(({ attempts }) => attempts >= maxPlans)) return false
  const verdict = await tryCall(chain, signer.address, { to: to as Address, data: call as Hex })
  return !(verdict instanceof CallReverted) || issueUnits.refusal(verdict.reason) === null
}

const maxPlans = 5

/** The first unit with its bulk request, or with the single ones that follow before the next bulk request. */
function nextBatch(waiting: [Effect, ...Effect[]]): Effect[] {
  const { collection_id, bulk_pairing_id } = inputOf(waiting[0])
  const ofCollection = waiting.filter((effect) => inputOf(effect).collection_id === collection_id)
  const end = ofCollection.findIndex((effect) => inputOf(effect).bulk_pairing_id !== bulk_pairing_id)
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

type Issued = { serials: number[]; transaction_hash: string }

function serialsIn(receipt: TransactionReceipt, transaction: TransactionRow): Issued | null {
  const { chips } = issueCall(transaction)
  const logs = parseEventLogs({ abi: collectionAbi, eventName: ["Issued", "Transfer"], logs: receipt.logs })
  const ours = logs.filter((log) => isAddressEqual(log.address, transaction.to as Address))
  const issued = ours.find((log) => log.eventName === "Issued")
  const serials = ours
    .filter((log) => log.eventName === "Transfer")
    .map((log) => Number((log.args as { tokenId: bigint }).tokenId))
  if (!issued || serials.length !== chips.length) return null
  if ((issued.args as { chips: Hex }).chips.toLowerCase() !== packedChips(chips)) return null
  return { serials, transaction_hash: receipt.transactionHash }
}

/** Where the very same units were issued by an earlier transaction, as after a restored back-up. */
async function serialsIssuedBefore(
  chain: ConnectedChain,
  transaction: TransactionRow,
): Promise<Issued | null> {
  const { first, chips } = issueCall(transaction)
  const logs = await reach(() =>
    chain.rpc.getContractEvents({
      address: transaction.to as Address,
      abi: collectionAbi,
      eventName: "Issued",
      args: { first: BigInt(first) },
      fromBlock: 0n,
    }),
  )
  const same = logs.find((log) => log.args.chips?.toLowerCase() === packedChips(chips))
  if (!same) return null
  return { serials: chips.map((_chip, index) => first + index), transaction_hash: same.transactionHash }
}

/** Chips as the `Issued` event has them: five bytes each, in order. */
function packedChips(chips: readonly number[]): Hex {
  return `0x${chips.map((chip) => chip.toString(16).padStart(10, "0")).join("")}`
}
