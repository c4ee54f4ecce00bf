import type { Hex } from "viem"
import type { LaneRow } from "../../db/schema.ts"
import { ChainUnreachable, reach } from "../chain/rpc.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { noteFinalBlock } from "./leases.ts"
import type { BlockPlace } from "./look.ts"

/**
 * Whether the block that was final, which the lane's row knows through whatever restart, is another one now: then the
 * lane must halt. Where not all providers say so, nothing can be done before they do.
 */
export async function compareFinalBlock(lane: HeldLane, row: LaneRow): Promise<Findings> {
  const { final_block_number: number, final_block_hash } = row
  const { finality_depth } = lane.chain.config
  // The depth may have been raised since.
  if (number === null || number > Number(lane.head) - finality_depth + 1) return nothing
  const seen = await lane.chain.headers.at(BigInt(number)).catch(() => null)
  if (seen?.hash === final_block_hash) return nothing
  const hashes = await hashesOf(lane, number)
  // Also where nobody serves a block that is so old.
  if (hashes.every((hash) => hash === final_block_hash)) return nothing
  const isBeyondDoubt = isFromAll(lane, hashes) && !hashes.includes(final_block_hash as Hex)
  if (!isBeyondDoubt) return disagreement(lane, `block ${number}`)
  const halt = `chain ${lane.chain.chain_id} replaced block ${number}, which was final at a depth of ${finality_depth} blocks: check that its providers are right, then run: operator retry ${lane.signer.lane_id}`
  return { ...nothing, halt }
}

/** Remembers what is final now, a few times in as many blocks as it takes, where all providers agree on it. */
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

/** Whether no reorganization replaces a block any more. */
export async function isFinal(
  { chain }: HeldLane,
  { block_number }: Pick<BlockPlace, "block_number">,
): Promise<boolean> {
  return BigInt(block_number) <= (await chain.headers.finalHeight())
}

/** What the providers say that have the block. */
async function hashesOf({ chain }: HeldLane, number: number): Promise<Hex[]> {
  const hashes = await reach(() => chain.providers.blockHashes(BigInt(number)))
  return hashes.filter((hash) => hash !== null)
}

/** A provider that is silent may be the one that is right, as long as it is not gone for good. */
export function isFromAll({ chain }: HeldLane, answers: readonly unknown[]): boolean {
  return answers.length >= chain.providers.voices()
}

/** That providers disagree, or are silent where all are needed. */
export function disagreement({ chain }: HeldLane, about: string): Findings {
  return {
    ...noticed(
      `not all providers of chain ${chain.chain_id} say the same of ${about}: nothing is confirmed until they do, or the wrong one is removed from CHAINS`,
    ),
    failure: new ChainUnreachable("the providers disagree"),
  }
}
