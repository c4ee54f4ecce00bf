import { and, desc, eq, inArray, notExists, sql } from "drizzle-orm"
import {
  type Address,
  getAbiItem,
  type Hex,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type CollectionRow, effects, type TransactionRow, transactions } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { callsIn } from "../../src/engine/chain/desk.ts"
import { decodeIssue, packedChips } from "../../src/engine/chain/issue-call.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { CallReverted, reach } from "../../src/engine/chain/rpc.ts"
import { tryCall } from "../../src/engine/chain/try-call.ts"
import { mayCall } from "../../src/engine/jobs/calls-to.ts"
import type { Effect, Mined, Planned } from "../../src/engine/jobs/job.ts"
import { addressesOf } from "./collections.ts"

/** What a transaction issues in one collection. */
export type Issuance = { contract: Address; data: Hex; first: number; chip_ids: readonly string[] }

/** Returns what a transaction issues, or only what it issues in one contract. */
function issuancesIn({ to, call }: Pick<TransactionRow, "to" | "call">, of?: string): Issuance[] {
  return callsIn({ to, data: call }).flatMap(({ to: contract, data }) =>
    of === undefined || contract === of ? [{ contract, data, ...decodeIssue(data) }] : [],
  )
}

/** Returns what transactions with these statuses issue in a collection, last first; decodes no more than is taken. */
export async function issuancesWith(
  queries: Queries,
  { address, chain_id }: CollectionRow,
  statuses: readonly TransactionRow["status"][],
): Promise<IteratorObject<Issuance>> {
  const rows = await callsWith(queries, { address, chain_id, statuses })
  // Decodes only this collection's calls: decoding the others in desk calls would take long.
  return rows.values().flatMap((row) => issuancesIn(row, address))
}

type Sought = Pick<CollectionRow, "address" | "chain_id"> & { statuses: readonly TransactionRow["status"][] }

const callsWith = query((db, { address, chain_id, statuses }: Given<Sought>) =>
  db
    .select({ to: transactions.to, call: transactions.call })
    .from(transactions)
    .where(and(mayIssueIn({ address, chain_id }), inArray(transactions.status, statuses)))
    .orderBy(desc(transactions.nonce)),
)

/**
 * Returns what transactions have issued, or would have, for units of a collection that wait again or went on to another
 * transaction. Until these are final, a reorganization may bring them to where they succeed.
 */
export async function releasedIssuances(
  queries: Queries,
  { id, address, chain_id }: CollectionRow,
): Promise<Issuance[]> {
  const rows = await releasedCalls(queries, { id, address, chain_id })
  return rows.flatMap((row) => issuancesIn(row, address))
}

const releasedCalls = query(
  (db, { id, address, chain_id }: Given<Pick<CollectionRow, "id" | "address" | "chain_id">>) => {
    const isBound = eq(effects.transaction_id, transactions.id)
    const isOfCollection = sql`${effects.input} ->> 'collection_id' = ${id}`
    const bound = db.select({ id: effects.id }).from(effects).where(and(isBound, isOfCollection))
    const isSettled = inArray(transactions.status, ["confirmed", "reverted"])
    return db
      .select({ to: transactions.to, call: transactions.call })
      .from(transactions)
      .where(and(mayIssueIn({ address, chain_id }), isSettled, notExists(bound)))
  },
)

function mayIssueIn({ address, chain_id }: Given<Pick<CollectionRow, "address" | "chain_id">>) {
  return and(eq(transactions.chain_id, chain_id), eq(transactions.kind, "issueUnit"), mayCall(address))
}

/** What a transaction issues in one collection, with the effects that asked for it. */
export type Batch = Issuance & { collection_id: string; effects: Effect<"issueUnit">[] }

/** Returns the batches that a transaction issues. */
export async function batchesOf(
  queries: Queries,
  { transaction, effects }: Planned<"issueUnit">,
): Promise<Batch[]> {
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

/** Returns what none of the undone batches can do without; a call of the desk succeeds if any other batch can. */
export async function lackOf(
  chain: ConnectedChain,
  queries: Queries,
  undone: Planned<"issueUnit">,
): Promise<string | null> {
  const account = undone.transaction.to as Address
  for (const { contract, data } of await batchesOf(queries, undone)) {
    // A direct call has been tried already.
    if (contract === account) return null
    // Without a contract the call would succeed, too.
    if (!(await reach(() => chain.rpc.getCode({ address: contract })))) continue
    if (!((await tryCall(chain, account, { to: contract, data })) instanceof CallReverted)) return null
  }
  return "one of its collections is back as it was before"
}

/**
 * Returns the serials of a batch's chips, in order, with the block that shows them, null if the receipt does; null if
 * this transaction did not issue them.
 */
export async function serialsOf(
  chain: ConnectedChain,
  { receipt }: Mined<"issueUnit">,
  batch: Batch,
): Promise<{ serials: number[]; block_number: number | null } | null> {
  if (receipt.status !== "success") return null
  const issued = serialsIn(receipt, batch)
  if (issued) return { serials: issued, block_number: null }
  const serials = await serialsOfRepeat(chain, receipt, batch)
  return serials && { serials, block_number: Number(receipt.blockNumber) }
}

function serialsIn(receipt: TransactionReceipt, { contract, chip_ids }: Batch): number[] | null {
  const logs = parseEventLogs({ abi: issuanceEvents, logs: receipt.logs })
  const ours = logs.filter((log) => isAddressEqual(log.address, contract))
  const issued = ours.find((log) => log.eventName === "Issued")
  const serials = ours
    .filter((log) => log.eventName === "Transfer")
    .map((log) => Number((log.args as { tokenId: bigint }).tokenId))
  if (!issued || serials.length !== chip_ids.length) return null
  return (issued.args as { chips: Hex }).chips.toLowerCase() === packedChips(chip_ids) ? serials : null
}

/** Without the contract's other events, which viem would hash again for each log. */
const issuanceEvents = [
  getAbiItem({ abi: collectionAbi, name: "Issued" }),
  getAbiItem({ abi: collectionAbi, name: "Transfer" }),
]

/**
 * Returns the serials of units that already have them: if the chain had issued that many by then, the contract had
 * nothing to do. What was issued later may be undone alone.
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
