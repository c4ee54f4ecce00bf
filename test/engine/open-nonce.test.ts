import { test } from "bun:test"
import fc from "fast-check"
import { keccak256 } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import type { AttemptRow } from "../../src/db/schema.ts"
import { type Fees, firstFees, isReplacement } from "../../src/engine/chain/fees.ts"
import type { SendOutcome } from "../../src/engine/chain/send-errors.ts"
import { feeColumns, feesOf, gasOf, kindColumns } from "../../src/engine/lanes/attempts.ts"
import { nextMove } from "../../src/engine/lanes/next-move.ts"

// A nonce whose lane follows `nextMove` round by round, beside a pool with rules of its own.

const account = privateKeyToAccount(`0x${"11".repeat(32)}`)
/** What the call needs at first, what from a round on, and what an empty transaction does. */
const [gas, moreGas, emptyGas] = [100_000n, 150_000n, 30_000n]
const usual = { max_fee_per_gas: 6_000n, max_priority_fee_per_gas: 200n, transaction_cost: 10n ** 18n }
const generous = { ...usual, max_fee_per_gas: 2n * usual.max_fee_per_gas }

/** What happens around the nonce in the first rounds; afterwards nothing more does. */
type Surroundings = {
  base_fees: bigint[]
  last_base_fee: bigint
  /** What a node says whatever the pool does; null if it says what is so. */
  said: (SendOutcome | null)[]
  /** Whether pools forget what they hold. */
  forgotten: boolean[]
  /** What the signer can pay. */
  balances: bigint[]
  /** What a pool holds from a round on that the service does not know of, as after a back-up was restored. */
  foreign: (Fees & { round: number }) | null
  /** The round from which an empty transaction is to use up the nonce, because the call would do harm. */
  given_up: number
  /** The round from which the call needs more gas. */
  more_gas: number
  /** What nodes demand as a tip. */
  least_tip: bigint
  /** The highest cost that nodes take; null if they have no limit. */
  highest_cost: bigint | null
}

const never = Number.POSITIVE_INFINITY
const someRound = fc.oneof(
  { weight: 4, arbitrary: fc.constant(never) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 }) },
)
const price = (max: bigint) => fc.bigInt({ min: 10n, max })
const surroundings: fc.Arbitrary<Surroundings> = fc.record({
  base_fees: fc.array(price(20_000n), { maxLength: 30 }),
  // Low enough that the limits cover it.
  last_base_fee: price(4_500n),
  said: fc.array(
    fc.constantFrom(null, null, null, "no_answer", "fee_too_low", "fee_too_high", "no_funds", "underpriced"),
    { maxLength: 15 },
  ),
  forgotten: fc.array(fc.boolean(), { maxLength: 20 }),
  balances: fc.array(fc.bigInt({ min: 10_000_000n, max: 900_000_000n }), { maxLength: 30 }),
  foreign: fc.option(
    fc
      .record({
        max_fee_per_gas: price(6_000n),
        // So low that twice the highest tip replaces it.
        max_priority_fee_per_gas: price(320n),
        round: fc.nat({ max: 12 }),
      })
      .filter(({ max_fee_per_gas, max_priority_fee_per_gas }) => max_priority_fee_per_gas <= max_fee_per_gas),
  ),
  given_up: someRound,
  more_gas: someRound,
  least_tip: fc.oneof(fc.constant(0n), price(200n)),
  highest_cost: fc.option(fc.bigInt({ min: 5_600n * moreGas, max: 9_000n * moreGas })),
})

const nothingElse = { given_up: never, more_gas: never, least_tip: 0n, highest_cost: null }
/** Each led to a round that repeated itself. */
const onceStuck: Surroundings[] = [
  {
    ...{ base_fees: [10n], last_base_fee: 115n, said: [null, null, "no_funds"], forgotten: [] },
    ...{ balances: [11_400_000n, 10_000_000n], foreign: null },
    ...{ ...nothingElse, given_up: 1, more_gas: 1 },
  },
  {
    ...{ base_fees: [10n, 10n, 6_001n], last_base_fee: 92n, said: [], forgotten: [false, false, true] },
    balances: [10_000_000n],
    foreign: { max_fee_per_gas: 91n, max_priority_fee_per_gas: 91n, round: 3 },
    ...nothingElse,
  },
  {
    ...{ base_fees: [10n, 10n, 10n, 2_866n, 11n], last_base_fee: 2_866n, said: [null, null, "underpriced"] },
    ...{ forgotten: [], balances: [10_000_000n, 10_000_000n], foreign: null },
    ...{ ...nothingElse, highest_cost: 5_600n * gas },
  },
  {
    ...{ base_fees: [10n, 10n, 10n, 132n, 2_618n, 400n, 5_456n], last_base_fee: 131n, said: [] },
    forgotten: [false, false, false, false, false, false, true],
    balances: [10_000_000n, 10_000_000n, 13_100_000n, 39_900_000n, 10_000_000n],
    foreign: { max_fee_per_gas: 130n, max_priority_fee_per_gas: 130n, round: 7 },
    ...{ ...nothingElse, least_tip: 117n, more_gas: 6 },
  },
  {
    ...{
      base_fees: [13n, 10n, 4_231n, 3_800n, 13n],
      last_base_fee: 118n,
      said: ["underpriced"],
      forgotten: [],
    },
    ...{ balances: [10_000_000n, 10_000_000n, 10_000_000n, 10_000_000n], foreign: null, ...nothingElse },
  },
  {
    ...{ base_fees: [10n, 2_635n, 5_456n], last_base_fee: 112n, said: [null, null, "underpriced"] },
    forgotten: [false, false, true],
    balances: [11_400_000n, 545_500_000n, 10_000_000n, 10_000_000n, 10_000_000n, 10_000_000n, 10_000_000n],
    foreign: { max_fee_per_gas: 111n, max_priority_fee_per_gas: 111n, round: 3 },
    ...nothingElse,
  },
  {
    ...{ base_fees: [4_231n, 10n], last_base_fee: 127n, said: [], forgotten: [], balances: [10_000_000n] },
    foreign: { max_fee_per_gas: 126n, max_priority_fee_per_gas: 110n, round: 2 },
    ...nothingElse,
  },
  {
    base_fees: [4_661n, 10n, 10n, 4_661n, 4_661n, 4_661n, 6_001n, 6_001n],
    last_base_fee: 115n,
    said: [null, "no_answer", "no_funds", "no_answer"],
    forgotten: [false, false, false, false, false, false, true],
    ...{ balances: [10_000_000n], foreign: null, ...nothingElse },
  },
  {
    ...{ base_fees: [10n, 10n, 103n], last_base_fee: 94n, said: ["fee_too_high", null, "fee_too_high"] },
    ...{ forgotten: [false, false, true], balances: [] },
    foreign: { max_fee_per_gas: 93n, max_priority_fee_per_gas: 10n, round: 3 },
    ...nothingElse,
  },
  {
    ...{ base_fees: [10n, 10n, 2_904n, 11n], last_base_fee: 2_904n, said: [null, "underpriced"] },
    ...{ forgotten: [], balances: [10_000_000n, 10_000_000n, 10_000_000n] },
    foreign: { max_fee_per_gas: 127n, max_priority_fee_per_gas: 110n, round: 4 },
    ...nothingElse,
  },
]

test("a nonce is used in the end, whatever a pool holds of it, nodes said of it, fees did and the signer had", async () => {
  await fc.assert(
    fc.asyncProperty(surroundings, async (around) => {
      // What a pool holds may cost more to replace than nodes take.
      const highest_cost = around.foreign ? null : around.highest_cost
      const { isUsed, story } = await follow({ ...around, highest_cost })
      if (!isUsed) throw new Error(`the nonce is not used after ${rounds} rounds:\n${story.join("\n")}`)
    }),
    { numRuns: 1_500, examples: onceStuck.map((around) => [around]) },
  )
}, 60_000)

const rounds = 150

async function follow(around: Surroundings): Promise<{ isUsed: boolean; story: string[] }> {
  const attempts: AttemptRow[] = []
  const story: string[] = []
  let held: Held | null = null
  for (let round = 0; round < rounds; round++) {
    const base_fee_per_gas = around.base_fees[round] ?? around.last_base_fee
    if (around.foreign?.round === round && replaces(around.foreign, held)) held = { fees: around.foreign }
    if (held && held.fees.max_fee_per_gas >= base_fee_per_gas) return { isUsed: true, story }
    if (around.forgotten[round]) held = null

    const sent = await nextAttempt(attempts, around, { base_fee_per_gas, round })
    // The lane holds it back.
    if (round >= around.given_up && !sent.is_cancel) continue
    const answer = around.said[round] ?? answerTo(sent, around, { held, base_fee_per_gas, round })
    if (answer === "known") {
      held = { fees: feesOf(sent), hash: sent.hash }
      sent.first_sent_block ??= round
    }
    Object.assign(sent, { last_outcome: answer, send_count: sent.send_count + 1 })
    story.push(
      `base fee ${base_fee_per_gas}: sent ${said(feesOf(sent))}, ${answer}; held ${said(held?.fees)}`,
    )
  }
  return { isUsed: false, story: story.slice(-25) }
}

/** What a pool holds; without a hash what the service does not know of. */
type Held = { fees: Fees; hash?: string }

function replaces(offered: Fees, held: Held | null): boolean {
  return held === null || isReplacement(held.fees, offered)
}

/** The attempt to send in a round; signs it if no earlier one has its fees. */
async function nextAttempt(
  attempts: AttemptRow[],
  { given_up, more_gas }: Surroundings,
  { base_fee_per_gas, round }: { base_fee_per_gas: bigint; round: number },
): Promise<AttemptRow> {
  const is_given_up = round >= given_up
  const offered = { gas: is_given_up ? emptyGas : round >= more_gas ? moreGas : gas, is_given_up }
  const market = { base_fee_per_gas, priority_fee_per_gas: 100n }
  if (attempts.length === 0) return await sign(attempts, firstFees(gas, market, usual), offered)
  const last = attempts.findLast(({ is_cancel }) => is_cancel === is_given_up)
  const is_waiting_long = round - (last?.first_sent_block ?? round) >= 3
  const move = nextMove({ attempts, ...offered, is_waiting_long }, market, is_given_up ? generous : usual)
  return move.do === "offer" ? await sign(attempts, move.fees, offered) : move.attempt
}

async function sign(
  attempts: AttemptRow[],
  fees: Fees,
  { gas, is_given_up }: { gas: bigint; is_given_up: boolean },
): Promise<AttemptRow> {
  const number = attempts.length + 1
  const raw = await account.signTransaction({
    ...{ type: "eip1559", chainId: 1, nonce: 0, to: account.address, gas },
    ...{ maxFeePerGas: fees.max_fee_per_gas, maxPriorityFeePerGas: fees.max_priority_fee_per_gas },
  })
  const attempt: AttemptRow = {
    ...{ hash: keccak256(`${raw}${is_given_up ? "01" : "00"}`), transaction_id: "t", raw, number },
    ...kindColumns(is_given_up ? "cancel" : number === 1 ? "first" : "bump"),
    ...feeColumns(fees),
    ...{
      first_sent_block: null,
      send_count: 0,
      last_error: null,
      last_outcome: null,
      created_at: new Date(0),
    },
  }
  attempts.push(attempt)
  return attempt
}

/** What a node says of an attempt; some take also what no block would include now, or too little gas. */
function answerTo(
  sent: AttemptRow,
  { balances, more_gas, least_tip, highest_cost }: Surroundings,
  { held, base_fee_per_gas, round }: { held: Held | null; base_fee_per_gas: bigint; round: number },
): SendOutcome {
  const fees = feesOf(sent)
  const [fee, tip] = [fees.max_fee_per_gas, fees.max_priority_fee_per_gas]
  sent.last_error = null
  if (held?.hash === sent.hash) return "known"
  if (fee < base_fee_per_gas && round % 2 === 0) return "fee_too_low"
  if (round >= more_gas && round % 3 === 0 && !sent.is_cancel && gasOf(sent) < moreGas) return "gas_too_low"
  if (highest_cost !== null && fee * gasOf(sent) > highest_cost) return "fee_too_high"
  if (tip < least_tip) {
    sent.last_error = `transaction underpriced: tip needed ${least_tip}, tip permitted ${tip}`
    return "underpriced"
  }
  const balance = balances[round]
  if (balance !== undefined && fee * gasOf(sent) > balance) return "no_funds"
  return replaces(fees, held) ? "known" : "underpriced"
}

function said(fees: Fees | undefined): string {
  return fees ? `${fees.max_fee_per_gas}/${fees.max_priority_fee_per_gas}` : "nothing"
}
