import { eq } from "drizzle-orm"
import { type Address, encodeFunctionData, isAddressEqual, parseEventLogs } from "viem"
import type { ReplaceChipInput } from "../machines/chip-replacement.ts"
import type { EffectResult } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { reach } from "../src/chain/rpc.ts"
import type { Queries } from "../src/db/database.ts"
import { chipReplacements, collections, units } from "../src/db/schema.ts"
import { failure } from "./failures.ts"
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

  refusal: (reason) => {
    if (reason === "ChipLocked") return failure("chip_replacement.locked", reason)
    return reason === "ChipMismatch" ? failure(reverted, reason) : null
  },

  /** Success is the contract's own word, in this transaction or, where it had nothing to do, in its state. */
  async results(chain, queries, { effects, receipt }) {
    return await Promise.all(
      effects.map(async (effect): Promise<EffectResult> => {
        const { chip_id } = effect.input as ReplaceChipInput
        const chip = Number.parseInt(chip_id, 16)
        const token = await tokenOf(queries, effect)
        const swaps = parseEventLogs({ abi: collectionAbi, eventName: "ChipReplaced", logs: receipt.logs })
        const isSwapped = swaps.some(
          ({ address, args }) =>
            isAddressEqual(address, token.contract) && args.serial === token.serial && args.chip === chip,
        )
        const { transactionHash: transaction_hash } = receipt
        if (isSwapped) return { output: { transaction_hash } }
        const now = await stateOf(chain, token)
        if (now.chip === chip) return { output: { transaction_hash } }
        const code = now.is_claimed ? "chip_replacement.locked" : reverted
        return { error: failure(code, transaction_hash) }
      }),
    )
  },

  async restate({ tx, at }, { actor_id }, transaction_hash) {
    const change = { transaction_hash, updated_at: at }
    await tx.update(chipReplacements).set(change).where(eq(chipReplacements.id, actor_id))
  },
}

const reverted = "chip_replacement.reverted"

async function stateOf(chain: ConnectedChain, token: { contract: Address; serial: bigint }) {
  const read = { address: token.contract, abi: collectionAbi, args: [token.serial] } as const
  const [chip, owner] = await reach(() =>
    Promise.all([
      chain.rpc.readContract({ ...read, functionName: "chipOf" }),
      chain.rpc.readContract({ ...read, functionName: "ownerOf" }),
    ]),
  )
  return { chip, is_claimed: !isAddressEqual(owner, token.contract) }
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
