import { amountIn } from "./answers.ts"
import { type FeeMarket, median } from "./fees.ts"
import type { Header } from "./headers.ts"
import type { Providers } from "./providers.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/**
 * Reads what gas costs now: the block's base fee, and the median of the tips that providers suggest, or of
 * their gas prices less the base fee if they suggest no tips. The base fee is 0 on a chain without
 * EIP-1559. Throws `ChainUnreachable`.
 */
export async function readFeeMarket(providers: Providers, newest: Header): Promise<FeeMarket> {
  const base_fee_per_gas = newest.base_fee_per_gas ?? 0n
  const tip = median(await amounts(providers, "eth_maxPriorityFeePerGas").catch(() => []))
  if (tip !== null) return { base_fee_per_gas, priority_fee_per_gas: tip }
  const price = median(await reach(() => amounts(providers, "eth_gasPrice")))
  if (price === null) throw new ChainUnreachable("no provider says what gas costs")
  const over = price - base_fee_per_gas
  return { base_fee_per_gas, priority_fee_per_gas: over > 0n ? over : 0n }
}

/** Returns what providers say, without those that say no number, such as null or 0x. */
async function amounts(providers: Providers, method: string): Promise<bigint[]> {
  return (await providers.askAll({ method })).flatMap((said) => amountIn(said) ?? [])
}
