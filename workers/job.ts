import type { Address, Hex, TransactionReceipt } from "viem"
import type { EffectResult } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import type { TransactionRow } from "../src/chain/transactions.ts"
import type { Queries } from "../src/db/database.ts"
import type { effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"

export type Effect = typeof effects.$inferSelect

/** How effects of one kind become transactions, and what a transaction's receipt means for them. */
export type Job = {
  /** The name under which machines invoke it. */
  src: string
  /** Forms the next call from what waits, oldest first: the first effect and whichever others go with it. */
  plan(chain: ConnectedChain, queries: Queries, waiting: [Effect, ...Effect[]]): Promise<Call>
  /** Judges a receipt at the confirmation depth: a result for each effect, in the order of the effects. */
  results(chain: ConnectedChain, queries: Queries, mined: Mined): Promise<EffectResult[]>
  /** What the results change besides the effects' own actors, in the same database transaction. */
  afterwards?(turn: Turn, mined: Mined, results: EffectResult[]): Promise<void>
  /** The event that an effect's actor is given once the transaction is on its way. */
  submittedEvent?: string
}

export type Call = {
  members: Effect[]
  to: Address
  data: Hex
  /** Enough gas where the call cannot be simulated, because an earlier one to the same contract is on its way. */
  gas: bigint
  /** Takes what the call counts on, in the database transaction that gives it its nonce. */
  reserve?(turn: Turn): Promise<void>
}

export type Mined = { transaction: TransactionRow; effects: Effect[]; receipt: TransactionReceipt }
