import { numberToHex } from "viem"
import type { Header } from "../../src/engine/chain/headers.ts"

/** The header of a made-up block. */
export function headerAt(number: bigint): Header {
  const hash = numberToHex(number, { size: 32 })
  const parent_hash = numberToHex(number - 1n, { size: 32 })
  return { number, hash, parent_hash, timestamp: 0n, base_fee_per_gas: null }
}
