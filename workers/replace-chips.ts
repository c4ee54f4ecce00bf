import { eq } from "drizzle-orm"
import { type Address, encodeFunctionData } from "viem"
import type { ReplaceChipInput } from "../machines/chip-replacement.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { CallReverted, reach } from "../src/chain/rpc.ts"
import type { Queries } from "../src/db/database.ts"
import { collections, units } from "../src/db/schema.ts"
import type { Effect, Job } from "./job.ts"

/** Binds a unit's token to another chip, by compare-and-set. */
export const replaceChips: Job = {
  src: "replaceChip",
  submittedEvent: "SUBMITTED",

  async plan(_chain, queries, [effect]) {
    const { previous_chip_id, chip_id } = effect.input as ReplaceChipInput
    const token = await tokenOf(queries, effect)
    return {
      members: [effect],
      to: token.contract,
      data: encodeFunctionData({
        abi: collectionAbi,
        functionName: "replaceChip",
        args: [token.serial, Number.parseInt(previous_chip_id, 16), Number.parseInt(chip_id, 16)],
      }),
      gas: 150_000n,
    }
  },

  async results(chain, queries, { effects, receipt }) {
    return await Promise.all(
      effects.map(async (effect) => {
        const { chip_id } = effect.input as ReplaceChipInput
        const token = await tokenOf(queries, effect)
        const bound = await reach(() =>
          chain.rpc.readContract({
            address: token.contract,
            abi: collectionAbi,
            functionName: "chipOf",
            args: [token.serial],
            blockNumber: receipt.blockNumber,
          }),
        ).catch((error) => {
          if (error instanceof CallReverted) return null
          throw error
        })
        if (bound === Number.parseInt(chip_id, 16))
          return { output: { transaction_hash: receipt.transactionHash } }
        return {
          error: {
            code: "chip_replacement.reverted",
            message: `The swap reverted in transaction ${receipt.transactionHash}; the unit keeps its chip.`,
          },
        }
      }),
    )
  },
}

async function tokenOf(queries: Queries, effect: Effect): Promise<{ contract: Address; serial: bigint }> {
  const { unit_id } = effect.input as ReplaceChipInput
  const [row] = await queries
    .select({ serial: units.serial, address: collections.address })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(eq(units.id, unit_id))
  if (!row?.serial) throw new Error(`the chip of unit ${unit_id} is replaced before the unit has a serial`)
  return { contract: row.address as Address, serial: BigInt(row.serial) }
}
