import type { Hex } from "viem"
import type { LaneRow } from "../../db/schema.ts"
import { ChainUnreachable, reach } from "../chain/rpc.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { noteFinalBlock } from "./leases.ts"
import type { BlockPlace } from "./look.ts"

/**
 * Compares the last block known as final, which the lane's row keeps across restarts, with the chain: the lane must
 * halt if it was replaced. Decides nothing until all providers agree.
 */
export async function compareFinalBlock(lane: HeldLane, row: LaneRow): Promise<Findings> {
  const { final_block_number: number, final_block_hash } = row
  const { finality_depth } = lane.chain.config
  // The finality depth may have been raised since.
  if (number === null || number > Number(lane.head) - finality_depth + 1) return nothing
  const seen = await lane.chain.headers.at(BigInt(number)).catch(() => null)
  if (seen?.hash === final_block_hash) return nothing
  const hashes = await hashesOf(lane, number)
  // Also true if no provider serves a block that old.
  if (hashes.every((hash) => hash === final_block_hash)) return nothing
  const isBeyondDoubt = isFromAll(lane, hashes) && !hashes.includes(final_block_hash as Hex)
  if (!isBeyondDoubt) return disagreement(lane, `block ${number}`)
  const halt = `chain ${lane.chain.chain_id} replaced block ${number}, which was final at a depth of ${finality_depth} blocks: make sure that its providers are right, then run: operator retry ${lane.signer.lane_id}`
  return { ...nothing, halt }
}

/** Remembers the newest final block if all providers agree on it; sixteen times per finality depth is enough. */
export async function followFinalBlock(lane: HeldLane, known: number | null): Promise<void> {
  const { finality_depth } = lane.chain.config
  const number = Number(lane.head) - finality_depth + 1
  const step = Math.ceil(finality_depth / stepsPerDepth)
  if (number < 0 || (known !== null && number < known + step)) return
  const hashes = await hashesOf(lane, number)
  const [hash, ...others] = hashes
  if (!hash || !isFromAll(lane, hashes) || others.some((other) => other !== hash)) return
  await inLane(lane, (turn) => noteFinalBlock(turn, lane.lease, { number, hash }))
}

const stepsPerDepth = 16

/** Returns whether a block is final, so that no reorganization can replace it. */
export async function isFinal(
  { chain }: HeldLane,
  { block_number }: Pick<BlockPlace, "block_number">,
): Promise<boolean> {
  return BigInt(block_number) <= (await chain.headers.finalHeight())
}

/** Returns the block's hash from each provider that has the block. */
async function hashesOf({ chain }: HeldLane, number: number): Promise<Hex[]> {
  const hashes = await reach(() => chain.providers.blockHashes(BigInt(number)))
  return hashes.filter((hash) => hash !== null)
}

/** Returns whether every provider responded, except those that are gone: a silent one may be the one that is right. */
export function isFromAll({ chain }: HeldLane, answers: readonly unknown[]): boolean {
  return answers.length >= chain.providers.voices()
}

/** Returns the finding that providers disagree, or that some are silent where all are needed. */
export function disagreement({ chain }: HeldLane, about: string): Findings {
  return {
    ...noticed(
      `not all providers of chain ${chain.chain_id} agree on ${about}: nothing is confirmed until they do, or until the wrong one is removed from CHAINS`,
    ),
    failure: new ChainUnreachable("not all providers agree"),
  }
}
