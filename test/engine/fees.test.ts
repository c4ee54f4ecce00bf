import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { least, most } from "../../src/engine/chain/extremes.ts"
import {
  baseFeeAfter,
  batchSize,
  costOf,
  type FeeLimits,
  type FeeMarket,
  feeLimits,
  firstFees,
  isPricedOut,
  limitsBelow,
  median,
  replacementFees,
} from "../../src/engine/chain/fees.ts"

const gwei = 1_000_000_000n
const amount = fc.bigInt({ min: 0n, max: 10_000n * gwei })
const gas = fc.bigInt({ min: 21_000n, max: 16_000_000n })
const market: fc.Arbitrary<FeeMarket> = fc.record({ base_fee_per_gas: amount, priority_fee_per_gas: amount })
const limits: fc.Arbitrary<FeeLimits> = fc.record({
  max_fee_per_gas: fc.bigInt({ min: 1n, max: 5_000n * gwei }),
  max_priority_fee_per_gas: fc.bigInt({ min: 1n, max: 500n * gwei }),
  transaction_cost: fc.bigInt({ min: 1n, max: 10n ** 19n }),
})
const held = fc
  .tuple(amount, amount)
  .map(([one, other]) => (one > other ? [one, other] : [other, one]))
  .map(([fee, tip]) => ({ max_fee_per_gas: fee ?? 0n, max_priority_fee_per_gas: tip ?? 0n }))

const wide: FeeLimits = {
  max_fee_per_gas: 10n ** 30n,
  max_priority_fee_per_gas: 10n ** 30n,
  transaction_cost: 10n ** 60n,
}

describe("the first price", () => {
  test("stays sufficient through two full blocks, and offers the whole tip in them", () => {
    fc.assert(
      fc.property(gas, market, (units, now) => {
        const { max_fee_per_gas, max_priority_fee_per_gas } = firstFees(units, now, wide)
        expect(max_priority_fee_per_gas).toBe(now.priority_fee_per_gas)
        expect(max_fee_per_gas - baseFeeAfter(2, now.base_fee_per_gas)).toBe(max_priority_fee_per_gas)
      }),
    )
  })

  test("stays within every limit, with a tip no higher than the price", () => {
    fc.assert(
      fc.property(gas, market, limits, (units, now, most) => {
        const fees = firstFees(units, now, most)
        expectWithin(fees, units, most)
        expect(fees.max_priority_fee_per_gas).toBeLessThanOrEqual(most.max_priority_fee_per_gas)
      }),
    )
  })

  test("follows the market down and is never above what was offered in dearer times", () => {
    fc.assert(
      fc.property(gas, market, market, limits, (units, one, other, most) => {
        const dearer = {
          base_fee_per_gas: one.base_fee_per_gas + other.base_fee_per_gas,
          priority_fee_per_gas: one.priority_fee_per_gas + other.priority_fee_per_gas,
        }
        const cheap = firstFees(units, one, most)
        expect(cheap.max_fee_per_gas).toBeLessThanOrEqual(firstFees(units, dearer, most).max_fee_per_gas)
      }),
    )
  })
})

describe("a replacement", () => {
  test("is accepted by a pool that requires ten percent more in both fields, or is not made", () => {
    fc.assert(
      fc.property(held, gas, market, limits, (before, units, now, most) => {
        const fees = replacementFees(before, units, now, most)
        if (fees === null) return
        for (const field of ["max_fee_per_gas", "max_priority_fee_per_gas"] as const) {
          expect(fees[field] * 10n).toBeGreaterThanOrEqual(before[field] * 11n)
          expect(fees[field]).toBeGreaterThan(before[field])
        }
        expectWithin(fees, units, most)
        expect(fees.max_priority_fee_per_gas).toBeLessThanOrEqual(2n * most.max_priority_fee_per_gas)
      }),
    )
  })

  test("is omitted only if a limit rules out ten percent more", () => {
    fc.assert(
      fc.property(held, gas, market, (before, units, now) => {
        expect(replacementFees(before, units, now, wide)).not.toBeNull()
      }),
    )
  })

  test("stays within every limit, with a tip no higher than the price and twice its limit", () => {
    fc.assert(
      fc.property(held, gas, market, limits, (before, units, now, most) => {
        const fees = replacementFees(before, units, now, most)
        fc.pre(fees !== null)
        const { max_fee_per_gas, max_priority_fee_per_gas } = fees
        expect(max_fee_per_gas).toBeLessThanOrEqual(most.max_fee_per_gas)
        expect(max_fee_per_gas * units).toBeLessThanOrEqual(most.transaction_cost)
        expect(max_priority_fee_per_gas).toBeLessThanOrEqual(max_fee_per_gas)
        expect(max_priority_fee_per_gas).toBeLessThanOrEqual(2n * most.max_priority_fee_per_gas)
      }),
    )
  })

  test("is sufficient for now as far as the limits allow", () => {
    fc.assert(
      fc.property(held, gas, market, limits, (before, units, now, most) => {
        const fees = replacementFees(before, units, now, most)
        if (fees === null || !isPricedOut(fees, now)) return
        const perGas = most.transaction_cost / units
        expect([most.max_fee_per_gas, perGas]).toContain(fees.max_fee_per_gas)
      }),
    )
  })

  test("late in a rise is not repeated for six full blocks", () => {
    const now = { base_fee_per_gas: 100n * gwei, priority_fee_per_gas: gwei }
    const fees = replacementFees({ max_fee_per_gas: gwei, max_priority_fee_per_gas: 1n }, 21_000n, now, wide)
    const later = { ...now, base_fee_per_gas: baseFeeAfter(6, now.base_fee_per_gas) }
    expect(fees && isPricedOut(fees, later)).toBe(false)
  })

  test("raises the tip no more than pools require if only the base fee rose", () => {
    const tip = 1_000_000n
    let fees = { max_fee_per_gas: gwei, max_priority_fee_per_gas: tip }
    let base = gwei
    let replaced = 0
    // Ten times the base fee, rising as fast as it can from block to block.
    while (base < 10n * gwei) {
      base = baseFeeAfter(1, base)
      const now = { base_fee_per_gas: base, priority_fee_per_gas: tip }
      if (!isPricedOut(fees, now)) continue
      fees = replacementFees(fees, 21_000n, now, wide) ?? fees
      replaced += 1
    }
    expect(replaced).toBeLessThanOrEqual(4)
    expect(fees.max_priority_fee_per_gas).toBeLessThan(2n * tip)
  })
})

describe("a priced-out offer", () => {
  test("is one below the base fee, and nothing else", () => {
    fc.assert(
      fc.property(held, market, (fees, now) => {
        expect(isPricedOut(fees, now)).toBe(fees.max_fee_per_gas < now.base_fee_per_gas)
      }),
    )
  })
})

describe("after a node has rejected a cost as too high", () => {
  test("the next price costs less than the rejected one, and never replaces upwards", () => {
    fc.assert(
      fc.property(gas, market, limits, (units, now, most) => {
        const refused = firstFees(units, now, most)
        fc.pre(refused.max_fee_per_gas > 0n)
        const lower = limitsBelow(most, costOf(units, refused))
        expect(costOf(units, firstFees(units, now, lower))).toBeLessThan(costOf(units, refused))
        expect(replacementFees(refused, units, now, lower)).toBeNull()
      }),
    )
  })
})

describe("a batch", () => {
  const batch = fc.record({
    fixed: fc.bigInt({ min: 21_000n, max: 500_000n }),
    each: fc.bigInt({ min: 1n, max: 100_000n }),
  })

  test("is as large as the ceiling allows, and one more effect would exceed it", () => {
    fc.assert(
      fc.property(fc.nat(100), batch, market, limits, (waiting, each, now, most) => {
        const fees = { max_fee_per_gas: now.base_fee_per_gas + 1n, max_priority_fee_per_gas: 1n }
        const size = batchSize(waiting, each, fees, most)
        const cost = (members: number) => costOf(each.fixed + BigInt(members) * each.each, fees)
        expect(size).toBeLessThanOrEqual(waiting)
        if (size > 0) expect(cost(size)).toBeLessThanOrEqual(most.transaction_cost)
        if (size < waiting) expect(cost(size + 1)).toBeGreaterThan(most.transaction_cost)
      }),
    )
  })

  test("of 100 on a chain with a price spike shrinks to what a node with a cap of one coin relays", () => {
    const polygon = { fixed: 150_000n, each: 12_000n }
    const spike = { max_fee_per_gas: 990n * gwei, max_priority_fee_per_gas: 30n * gwei }
    const oneCoin = { ...wide, transaction_cost: 10n ** 18n }
    expect(batchSize(100, polygon, spike, oneCoin)).toBe(71)
  })
})

describe("the median", () => {
  test("of several values is near the majority, whatever a single one says", () => {
    fc.assert(
      fc.property(amount, amount, fc.bigInt({ min: 0n }), (one, other, liar) => {
        const middle = median([one, other, liar]) ?? 0n
        expect(middle).toBeGreaterThanOrEqual(least(one, other))
        expect(middle).toBeLessThanOrEqual(most(one, other))
      }),
    )
  })

  test("of two is the lower one, and of none is none", () => {
    expect(median([7n, 5n])).toBe(5n)
    expect(median([])).toBeNull()
  })
})

describe("a chain's limits", () => {
  test("are converted from gwei and from the coin without a rounding error", () => {
    const chain = {
      max_fee_per_gas_gwei: 0.1,
      max_priority_fee_per_gas_gwei: 300,
      max_transaction_cost: 0.9,
      coin_decimals: 18,
    }
    expect(feeLimits(chain)).toEqual({
      max_fee_per_gas: 100_000_000n,
      max_priority_fee_per_gas: 300_000_000_000n,
      transaction_cost: 900_000_000_000_000_000n,
    })
  })
})

function expectWithin(
  fees: { max_fee_per_gas: bigint; max_priority_fee_per_gas: bigint },
  units: bigint,
  most: FeeLimits,
): void {
  expect(fees.max_fee_per_gas).toBeLessThanOrEqual(most.max_fee_per_gas)
  expect(costOf(units, fees)).toBeLessThanOrEqual(most.transaction_cost)
  expect(fees.max_priority_fee_per_gas).toBeLessThanOrEqual(fees.max_fee_per_gas)
}
