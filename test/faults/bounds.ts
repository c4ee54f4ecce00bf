import { and, eq, inArray, isNotNull, like } from "drizzle-orm"
import type { Hex } from "viem"
import type { Queries } from "../../src/db/database.ts"
import { effects, transactions } from "../../src/db/schema.ts"
import { openTransactionStatuses } from "../../src/db/statuses.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { advisedTip } from "./proxy.ts"
import type { Stage } from "./stage.ts"

// Bounds on what a run may cost and how long it may stall, apart from its correctness.

/** How much may be paid for gas relative to an oracle that knew every block. */
const mostOverOracle = 1.3
/** For how long nothing may progress after the cause is gone. */
const mostStillMilliseconds = 30_000

/** Reports a cost beyond the bound. */
export async function judgePrices({ anvil: { client }, world }: Stage): Promise<string[]> {
  return await paidOverOracle(client, world.context.db.read, advisedTip)
}

/** The oracle offers the base fee of the transaction's own block, plus the tip that providers suggest. */
export async function paidOverOracle(
  client: Pick<Stage["anvil"]["client"], "getBlock" | "getTransactionReceipt">,
  read: Queries,
  tip: bigint,
): Promise<string[]> {
  const rows = await read.select().from(transactions).where(isNotNull(transactions.hash))
  let paid = 0n
  let enough = 0n
  for (const { hash } of rows) {
    const receipt = await client.getTransactionReceipt({ hash: hash as Hex }).catch(() => null)
    if (!receipt) continue
    const { baseFeePerGas } = await client.getBlock({ blockHash: receipt.blockHash })
    paid += receipt.gasUsed * receipt.effectiveGasPrice
    enough += receipt.gasUsed * ((baseFeePerGas ?? 0n) + tip)
  }
  const ratio = Number((paid * 1_000n) / (enough || 1n)) / 1_000
  return ratio > mostOverOracle ? [`${ratio} times of what an oracle would have paid for gas`] : []
}

/** Watches whether open work progresses once nothing blocks it any more. */
export function watchStillness(stage: Stage, isInTheClear: () => boolean): { look(): Promise<void> } {
  let mark: string | null = null
  let since = performance.now()
  return {
    /** Throws if nothing has progressed for too long. */
    async look() {
      const seen = isInTheClear() ? await openWork(stage) : null
      if (seen !== mark || seen === null) {
        mark = seen
        since = performance.now()
      }
      const seconds = Math.round((performance.now() - since) / 1_000)
      if (seconds * 1_000 > mostStillMilliseconds)
        throw new Error(`nothing moved for ${seconds} s after the cause was gone: ${mark}`)
    },
  }
}

/** What is open and how far it is; null if nothing is. Sending again is no progress. */
async function openWork({ world }: Stage): Promise<string | null> {
  const { read } = world.context.db
  const onTheirWay = await read
    .select({ id: transactions.id, status: transactions.status, block_hash: transactions.block_hash })
    .from(transactions)
    .where(inArray(transactions.status, openTransactionStatuses))
  const waiting = await read
    .select({ id: effects.id, transaction_id: effects.transaction_id })
    .from(effects)
    .where(and(eq(effects.status, "open"), like(effects.queue, `${laneQueue("")}%`)))
  return onTheirWay.length + waiting.length === 0 ? null : JSON.stringify([onTheirWay, waiting])
}
