import type { ChainConfig } from "../../platform/chain-settings.ts"
import { least, most } from "./extremes.ts"

/** What a transaction offers per unit of gas, in wei (EIP-1559). */
export type Fees = { max_fee_per_gas: bigint; max_priority_fee_per_gas: bigint }

/** What gas costs now, in wei per gas: the newest block's base fee, and the tip that block producers accept. */
export type FeeMarket = { base_fee_per_gas: bigint; priority_fee_per_gas: bigint }

/** The most that is offered, in wei per gas, and the most that one transaction may cost, in wei. */
export type FeeLimits = Fees & { transaction_cost: bigint }

/** Returns the limits in a chain's settings. */
export function feeLimits(
  chain: Pick<
    ChainConfig,
    "max_fee_per_gas_gwei" | "max_priority_fee_per_gas_gwei" | "max_transaction_cost" | "coin_decimals"
  >,
): FeeLimits {
  return {
    max_fee_per_gas: fromGwei(chain.max_fee_per_gas_gwei),
    max_priority_fee_per_gas: fromGwei(chain.max_priority_fee_per_gas_gwei),
    transaction_cost: scaled(chain.max_transaction_cost, chain.coin_decimals),
  }
}

/**
 * Returns the limits after a node refused a cost as too high: a tenth below it. A node's
 * cap shows only in its refusals.
 */
export function limitsBelow(limits: FeeLimits, refusedCost: bigint): FeeLimits {
  return { ...limits, transaction_cost: least(limits.transaction_cost, (refusedCost * 9n) / 10n) }
}

/** Returns the gas limit for an estimate: a quarter more, because the state may change before the call is mined. */
export function gasFor(estimate: bigint): bigint {
  return (estimate * 5n) / 4n
}

/** Returns the most that a transaction can cost, in wei. */
export function costOf(gas: bigint, { max_fee_per_gas }: Fees): bigint {
  return gas * max_fee_per_gas
}

/**
 * Returns the median, the lower of the middle two, so that a provider that is wrong or lies
 * changes it little; null if empty.
 */
export function median(amounts: bigint[]): bigint | null {
  const sorted = amounts.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0))
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null
}

/** Returns the base fee after full blocks, each of which raises it by an eighth at most (EIP-1559), rounded up. */
export function baseFeeAfter(fullBlocks: number, baseFee: bigint): bigint {
  return Array.from({ length: fullBlocks }).reduce<bigint>((fee) => (fee * 9n + 7n) / 8n, baseFee)
}

const firstCoversBlocks = 2
/** Six full blocks double the base fee, so one replacement is usually enough. */
const replacementCoversBlocks = 6

/**
 * Returns the price of a nonce for which no pool holds anything: it covers two full blocks. It stays within the limits
 * even if that is too low now; the transaction then waits for lower fees.
 */
export function firstFees(gas: bigint, market: FeeMarket, limits: FeeLimits): Fees {
  const tip = least(market.priority_fee_per_gas, limits.max_priority_fee_per_gas)
  const wanted = baseFeeAfter(firstCoversBlocks, market.base_fee_per_gas) + tip
  const max_fee_per_gas = least(wanted, ceiling(gas, limits))
  return { max_fee_per_gas, max_priority_fee_per_gas: least(tip, max_fee_per_gas) }
}

/**
 * Returns the price that replaces what pools hold: a tenth more in both fields, as they demand, and enough for now and
 * six full blocks if the limits allow. Null if they do not even allow the tenth. The tip may reach twice its limit,
 * because it must rise whatever it is worth.
 */
export function replacementFees(held: Fees, gas: bigint, market: FeeMarket, limits: FeeLimits): Fees | null {
  const leastFee = tenthMore(held.max_fee_per_gas)
  const leastTip = tenthMore(held.max_priority_fee_per_gas)
  const highest = ceiling(gas, limits)
  if (leastFee > highest || leastTip > 2n * limits.max_priority_fee_per_gas) return null
  const marketTip = least(market.priority_fee_per_gas, limits.max_priority_fee_per_gas)
  const tip = most(leastTip, marketTip)
  const wanted = baseFeeAfter(replacementCoversBlocks, market.base_fee_per_gas) + tip
  const max_fee_per_gas = least(most(leastFee, wanted), highest)
  return leastTip > max_fee_per_gas
    ? null
    : { max_fee_per_gas, max_priority_fee_per_gas: least(tip, max_fee_per_gas) }
}

/**
 * Returns a price that may outbid what a pool holds at an unknown price after `refused` did not: its replacement or, if
 * the limits allow none, the highest fee with a higher tip. Null if they do not allow that either.
 */
export function outbiddingFees(
  refused: Fees,
  gas: bigint,
  market: FeeMarket,
  limits: FeeLimits,
): Fees | null {
  const raised = replacementFees(refused, gas, market, limits)
  const max_fee_per_gas = ceiling(gas, limits)
  if (raised || refused.max_fee_per_gas > max_fee_per_gas) return raised
  const tip = tenthMore(refused.max_priority_fee_per_gas)
  if (tip > least(2n * limits.max_priority_fee_per_gas, max_fee_per_gas)) return null
  return { max_fee_per_gas, max_priority_fee_per_gas: tip }
}

/** Returns whether every pool that holds a transaction at `held` would accept one at `offered` in its place. */
export function isReplacement(held: Fees, offered: Fees): boolean {
  return (
    offered.max_fee_per_gas >= tenthMore(held.max_fee_per_gas) &&
    offered.max_priority_fee_per_gas >= tenthMore(held.max_priority_fee_per_gas)
  )
}

/** Returns whether no block can include it until the base fee falls; if so, its price is raised at once. */
export function isPricedOut({ max_fee_per_gas }: Fees, { base_fee_per_gas }: FeeMarket): boolean {
  return max_fee_per_gas < base_fee_per_gas
}

/** The gas of a batch call: a fixed part, and a part per member, above 0. */
type BatchGas = { fixed: bigint; each: bigint }

/**
 * Returns how many of the waiting members fit into one call at these fees within the
 * limits; 0 if even one costs too much.
 */
export function batchSize(
  waiting: number,
  gas: BatchGas,
  { max_fee_per_gas }: Fees,
  { transaction_cost }: FeeLimits,
): number {
  if (max_fee_per_gas === 0n) return waiting
  const room = most(transaction_cost / max_fee_per_gas - gas.fixed, 0n)
  return Number(least(room / gas.each, BigInt(waiting)))
}

/** Returns the highest fee per gas at which this much gas stays within the limits. */
function ceiling(gas: bigint, { max_fee_per_gas, transaction_cost }: FeeLimits): bigint {
  return gas === 0n ? max_fee_per_gas : least(max_fee_per_gas, transaction_cost / gas)
}

/** Adds a tenth, but at least one wei, because a tenth of a tiny fee rounds to nothing. */
function tenthMore(fee: bigint): bigint {
  return most((fee * 11n + 9n) / 10n, fee + 1n)
}

function fromGwei(gwei: number): bigint {
  return scaled(gwei, 9)
}

/** Converts an amount to its smallest unit, exact to twelve digits. */
function scaled(amount: number, decimals: number): bigint {
  const [digits = "0", exponent = "0"] = amount.toExponential(11).split("e")
  const places = Number(exponent) - 11 + decimals
  const whole = BigInt(digits.replace(".", ""))
  return places >= 0 ? whole * 10n ** BigInt(places) : whole / 10n ** BigInt(-places)
}
