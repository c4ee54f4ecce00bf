import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { keccak256 } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import type { AttemptRow } from "../../src/db/schema.ts"
import { sendOutcomes } from "../../src/db/statuses.ts"
import type { FeeLimits } from "../../src/engine/chain/fees.ts"
import { nextMove } from "../../src/engine/lanes/next-move.ts"

const account = privateKeyToAccount(`0x${"11".repeat(32)}`)
const market = { base_fee_per_gas: 1_000n, priority_fee_per_gas: 10n }
const limits: FeeLimits = {
  max_fee_per_gas: 1_000_000n,
  max_priority_fee_per_gas: 1_000n,
  transaction_cost: 10n ** 18n,
}
const gas = 100_000n

type Said = Partial<
  Pick<AttemptRow, "last_outcome" | "last_error" | "first_sent_block" | "is_cancel" | "send_count">
> & {
  fee?: bigint
  tip?: bigint
  gas?: bigint
}

async function attempt(said: Said): Promise<AttemptRow> {
  const { fee = 1_300n, tip = 10n, gas: limit = gas, ...rest } = said
  const raw = await account.signTransaction({
    ...{ type: "eip1559", chainId: 1, nonce: 0, to: account.address, gas: limit },
    ...{ maxFeePerGas: fee, maxPriorityFeePerGas: tip },
  })
  return {
    ...{ hash: keccak256(raw), transaction_id: "t", kind: "first", raw, number: 1 },
    ...{ max_fee_per_gas: String(fee), max_priority_fee_per_gas: String(tip), first_sent_block: null },
    ...{ send_count: 1, last_error: null, last_outcome: null, is_cancel: false, created_at: new Date(0) },
    ...rest,
  }
}

async function moveFor(said: Said[], changes: { gas?: bigint; waits?: boolean; given?: boolean } = {}) {
  const attempts = await Promise.all(said.map(attempt))
  const { gas: needed = gas, waits: is_waiting_long = false, given: is_given_up = false } = changes
  const move = nextMove({ attempts, is_given_up, gas: needed, is_waiting_long }, market, limits)
  return move.do === "offer"
    ? { ...move.fees, do: move.do }
    : { do: move.do, of: attempts.indexOf(move.attempt) }
}

describe("the next move for a nonce", () => {
  const teachNothing = [
    "wait",
    "rate_limited",
    "refused",
    "unclear",
    "no_answer",
    "nonce_high",
    null,
  ] as const

  test("repeats the same bytes after every response that says nothing about the price, however long it waits", async () => {
    for (const last_outcome of teachNothing)
      expect(await moveFor([{ last_outcome }])).toEqual({ do: "resend", of: 0 })
  })

  test("never offers more than the limits, whatever was returned and offered", async () => {
    const fee = fc.bigInt({ min: 10n, max: 2_000_000n })
    const outcome = fc.constantFrom(...sendOutcomes)
    await fc.assert(
      fc.asyncProperty(
        fee,
        outcome,
        fc.boolean(),
        fc.boolean(),
        async (offered, last_outcome, waits, held) => {
          const move = await moveFor([{ fee: offered, last_outcome, first_sent_block: held ? 1 : null }], {
            waits,
          })
          if (!("max_fee_per_gas" in move)) return
          expect(move.max_fee_per_gas <= limits.max_fee_per_gas).toBe(true)
          expect(move.max_fee_per_gas * gas <= limits.transaction_cost).toBe(true)
          expect(move.max_priority_fee_per_gas <= move.max_fee_per_gas).toBe(true)
        },
      ),
    )
  })

  test("is today's price if no pool accepted the bytes and they were too cheap or cannot be mined", async () => {
    const todays = { do: "offer", max_fee_per_gas: 1_276n, max_priority_fee_per_gas: 10n } as const
    expect(await moveFor([{ fee: 900n, last_outcome: "fee_too_low" }])).toEqual(todays)
    expect(await moveFor([{ fee: 900n, last_outcome: "unclear" }])).toEqual(todays)
  })

  test("is lower again if the rejected offer was above today's price", async () => {
    const move = await moveFor([{ fee: 500_000n, last_outcome: "no_funds" }])
    expect(move).toEqual({ do: "offer", max_fee_per_gas: 1_276n, max_priority_fee_per_gas: 10n })
  })

  test("is ten percent more and sufficient for six full blocks if a pool holds an offer that is now too cheap", async () => {
    const move = await moveFor([{ fee: 900n, last_outcome: "known", first_sent_block: 5 }])
    expect(move).toMatchObject({ do: "offer", max_priority_fee_per_gas: 11n })
    expect("max_fee_per_gas" in move && move.max_fee_per_gas > 2_000n).toBe(true)
  })

  test("is an earlier offer of the pool if that can be mined and the later, cheaper one cannot, also at the limit", async () => {
    const before = { fee: limits.max_fee_per_gas, last_outcome: "known", first_sent_block: 5 } as const
    const after = { fee: 900n, last_outcome: "known", first_sent_block: 9 } as const
    expect(await moveFor([before, after])).toEqual({ do: "resend", of: 0 })
    expect(await moveFor([before, after], { waits: true })).toEqual({ do: "keep", of: 0 })
    const refused = { ...before, last_outcome: "fee_too_low" } as const
    expect(await moveFor([refused, after])).toEqual({ do: "keep", of: 0 })
    expect(await moveFor([{ ...refused, send_count: 2 }, after])).toEqual({ do: "keep", of: 1 })
    const cheaper = { ...before, fee: 5_000n } as const
    expect(await moveFor([cheaper, after], { waits: true })).toMatchObject({
      do: "offer",
      max_fee_per_gas: 5_500n,
    })
    const cancel = { ...after, is_cancel: true } as const
    expect(await moveFor([before, cancel], { given: true })).toEqual({ do: "keep", of: 1 })
  })

  test("is ten percent above the most expensive attempt if a pool has another one, whichever that is", async () => {
    const move = await moveFor([
      { fee: 5_000n, last_outcome: "no_answer" },
      { fee: 1_300n, last_outcome: "underpriced" },
    ])
    expect(move).toMatchObject({ do: "offer", max_fee_per_gas: 5_500n })
  })

  test.each([
    "transaction gas price below minimum: gas tip cap 10, minimum needed 250",
    "transaction underpriced: tip needed 250, tip permitted 10",
    "transaction priority fee below minimum required priority fee 250",
  ])("is at once the tip that a node requires, if it says “%s”", async (last_error) => {
    const refused = { last_outcome: "underpriced", last_error } as const
    expect(await moveFor([refused])).toEqual({
      ...{ do: "offer", max_fee_per_gas: 1_516n, max_priority_fee_per_gas: 250n },
    })
    const held = { last_outcome: "known", first_sent_block: 5 } as const
    expect(await moveFor([held, { ...refused, fee: 1_430n, tip: 11n }])).toMatchObject({
      max_priority_fee_per_gas: 250n,
    })
    // The required tip is offered, and something else is wrong.
    expect(await moveFor([{ ...refused, tip: 250n }])).toMatchObject({ max_priority_fee_per_gas: 275n })
  })

  test("is the tip that a node requires within the limits, and may exceed them by as much as any other", async () => {
    const last_error = "transaction gas price below minimum: gas tip cap 10, minimum needed 50000"
    const refused = { last_outcome: "underpriced", last_error } as const
    expect(await moveFor([refused])).toMatchObject({ max_priority_fee_per_gas: 1_000n })
    expect(await moveFor([{ ...refused, fee: 2_266n, tip: 1_000n }])).toMatchObject({
      max_priority_fee_per_gas: 1_100n,
    })
    expect(await moveFor([{ ...refused, fee: 9_000n, tip: 2_000n }])).toEqual({ do: "keep", of: 0 })
  })

  test("is no smaller tip than a node required if the signer does not have enough for that one yet", async () => {
    const last_error = "transaction gas price below minimum: gas tip cap 10, minimum needed 250"
    const refused = { last_outcome: "underpriced", last_error } as const
    const unpaid = { fee: 1_516n, tip: 250n, last_outcome: "no_funds" } as const
    expect(await moveFor([refused, unpaid])).toEqual({ do: "resend", of: 1 })
    expect(await moveFor([refused, { ...unpaid, fee: 2_000n }])).toEqual({
      ...{ do: "offer", max_fee_per_gas: 1_516n, max_priority_fee_per_gas: 250n },
    })
  })

  test("is no other tip at the limit if the signer lacks the money, whatever tips providers suggest", async () => {
    // The cost limit of a transaction leaves a price below the base fee.
    const costly = 2n * 10n ** 15n
    const unpaid = { fee: 500n, tip: 9n, gas: costly, last_outcome: "no_funds" } as const
    expect(await moveFor([unpaid], { gas: costly })).toEqual({ do: "resend", of: 0 })
    expect(await moveFor([{ ...unpaid, fee: 400n }], { gas: costly })).toMatchObject({
      max_fee_per_gas: 500n,
    })
  })

  test("is a higher tip if the price is at its limit and a pool holds an unknown transaction", async () => {
    const refused = { fee: limits.max_fee_per_gas, last_outcome: "underpriced" } as const
    const higherTip = {
      ...{ do: "offer" as const, max_fee_per_gas: limits.max_fee_per_gas, max_priority_fee_per_gas: 11n },
    }
    expect(await moveFor([refused])).toEqual(higherTip)
    // A pool that accepted these very bytes and now rejects them has replaced them.
    expect(await moveFor([{ ...refused, first_sent_block: 5 }])).toEqual(higherTip)
  })

  test("is a higher tip also if the rejected offer was to replace one that a pool once held", async () => {
    const ours = { fee: 900n, last_outcome: "known", first_sent_block: 5 } as const
    const refused = { fee: limits.max_fee_per_gas, tip: 11n, last_outcome: "underpriced" } as const
    expect(await moveFor([ours, refused])).toMatchObject({ do: "offer", max_priority_fee_per_gas: 13n })
    // The pool may hold that one still.
    expect(await moveFor([ours, { ...refused, tip: 10n }])).toEqual({
      ...{ do: "offer", max_fee_per_gas: 2_042n, max_priority_fee_per_gas: 11n },
    })
  })

  test("is never above what a node found too expensive, and keeps what a pool holds", async () => {
    const alone = await moveFor([{ fee: 1_270n, last_outcome: "fee_too_high" }])
    expect("max_fee_per_gas" in alone && alone.max_fee_per_gas <= 1_143n).toBe(true)
    const held = { fee: 1_300n, last_outcome: "known", first_sent_block: 5 } as const
    expect(await moveFor([held, { fee: 2_000n, last_outcome: "fee_too_high" }])).toEqual({
      do: "resend",
      of: 0,
    })
  })

  test.each(["no_funds", "fee_too_high"] as const)(
    "alternates between what a pool holds, which no block takes, and the better offer that was rejected as %s",
    async (last_outcome) => {
      const held = { fee: 900n, last_outcome: "known", first_sent_block: 5 } as const
      // So little more that nothing below the rejected offer replaces what the pool holds.
      const better = { fee: 990n, last_outcome }
      const sent = async (counts: [number, number]) =>
        await moveFor([
          { ...held, send_count: counts[0] },
          { ...better, send_count: counts[1] },
        ])
      expect(await sent([7, 1])).toMatchObject({ of: 1 })
      expect(await sent([7, 7])).toMatchObject({ of: 1 })
      expect(await sent([7, 8])).toMatchObject({ of: 0 })
    },
  )

  const pricedOut = { fee: 900n, last_outcome: "known", first_sent_block: 5 } as const
  test.each([
    ["no_funds", [], { fee: 1_276n, tip: 10n }],
    ["fee_too_low", [pricedOut], { fee: 2_042n, tip: 11n }],
  ] as const)(
    "alternates between a price that a pool refused and the better one rejected as %s, instead of offering the first again",
    async (last_outcome, earlier, { fee, tip }) => {
      const refused = { fee, tip, last_outcome: "underpriced" } as const
      const better = { fee: 2n * fee, tip: 2n * tip, last_outcome } as const
      const sent = async (counts: [number, number]) =>
        await moveFor([
          ...earlier,
          { ...refused, send_count: counts[0] },
          { ...better, send_count: counts[1] },
        ])
      expect(await sent([1, 1])).toEqual({ do: "resend", of: earlier.length + 1 })
      expect(await sent([1, 2])).toEqual({ do: "resend", of: earlier.length })
    },
  )

  test("never offers what was signed before, whatever was returned", async () => {
    const said = fc.record({
      fee: fc.constantFrom(900n, 990n, 1_276n, 2_266n, limits.max_fee_per_gas),
      tip: fc.constantFrom(10n, 11n, 13n),
      last_outcome: fc.constantFrom(...sendOutcomes),
      first_sent_block: fc.constantFrom(null, 5),
      is_cancel: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(said, { minLength: 1, maxLength: 5 }), fc.boolean(), async (all, given) => {
        const move = await moveFor(all, { given })
        if (!("max_fee_per_gas" in move)) return
        const isSame = ({ fee, tip, is_cancel }: (typeof all)[number]) =>
          is_cancel === given && fee === move.max_fee_per_gas && tip === move.max_priority_fee_per_gas
        expect(all.some(isSame)).toBe(false)
      }),
    )
  })

  test("is the same price with more gas if the gas was too low", async () => {
    const move = await moveFor([{ fee: 1_276n, last_outcome: "gas_too_low" }], { gas: 2n * gas })
    expect(move).toEqual({ do: "offer", max_fee_per_gas: 1_276n, max_priority_fee_per_gas: 10n })
  })

  test("is what a pool holds if more gas is needed and the limits allow nothing more expensive", async () => {
    const held = { fee: 999_999n, last_outcome: "known", first_sent_block: 5 } as const
    const tooSmall = { fee: 1_300n, last_outcome: "gas_too_low" } as const
    expect(await moveFor([held, tooSmall], { gas: 2n * gas })).toEqual({ do: "keep", of: 0 })
  })

  test("waits at the highest price rather than exceed the limits, also for a nonce that is given up", async () => {
    const held = { fee: 999_999n, last_outcome: "known", first_sent_block: 5 } as const
    expect(await moveFor([held], { waits: true })).toEqual({ do: "keep", of: 0 })
    expect(await moveFor([held], { given: true })).toEqual({ do: "keep", of: 0 })
  })

  test("is the last bytes if a nonce is given up, no pool had any, and the limits allow no more", async () => {
    const unheard = { fee: 999_999n, last_outcome: "no_answer" } as const
    expect(await moveFor([unheard, unheard], { given: true })).toEqual({ do: "keep", of: 1 })
  })

  test("replaces whatever a pool may hold if the nonce is given up", async () => {
    const move = await moveFor([{ fee: 3_000n, last_outcome: "no_answer" }], { given: true })
    expect(move).toMatchObject({ do: "offer", max_fee_per_gas: 3_300n })
  })
})
