import type { AttemptRow } from "../../db/schema.ts"
import { least, most } from "../chain/extremes.ts"
import {
  costOf,
  type FeeLimits,
  type FeeMarket,
  type Fees,
  firstFees,
  isPricedOut,
  isReplacement,
  limitsBelow,
  outbiddingFees,
  replacementFees,
} from "../chain/fees.ts"
import { leastTipIn } from "../chain/send-errors.ts"
import { dearest, feesOf, gasOf, isSignedFor } from "./attempts.ts"

/** What is known about a nonce that no block has used. */
type OpenNonce = {
  /** All attempts, in order of signing; at least one. */
  attempts: AttemptRow[]
  /** Whether an empty transaction is to use up the nonce. */
  is_given_up: boolean
  /** The gas that the next attempt of the wanted kind needs. */
  gas: bigint
  /** Whether a pool has held the last attempt so long that its fees are too low, and not just for the moment. */
  is_waiting_long: boolean
}

/** `keep`: higher fees are wanted, but the limits do not allow them. */
type Move = { do: "resend" | "keep"; attempt: AttemptRow } | { do: "offer"; fees: Fees }

/** What is known about a nonce for which an attempt of the wanted kind was signed, and the prices to go by. */
type Signed = OpenNonce & {
  market: FeeMarket
  limits: FeeLimits
  /** The attempts of the wanted kind, in order of signing. */
  wanted: AttemptRow[]
  /** The last of them. */
  last: AttemptRow
  /** The dearest attempt that a pool has held: what is to be mined has to replace it. */
  held: AttemptRow | undefined
  /** The same if it is of the wanted kind: a call that is given up is not sent again. */
  own: AttemptRow | undefined
  /** The least tip that nodes' pools accept; 0 if no node named one. */
  least_tip: bigint
}

/**
 * Decides what is sent next for a nonce: the same bytes, unless a node said in recognized words that they are too
 * cheap, too expensive or have too little gas, or no block includes them at the present base fee.
 */
export function nextMove(open: OpenNonce, advised: FeeMarket, limits: FeeLimits): Move {
  const { attempts, is_given_up, gas, is_waiting_long } = open
  const least_tip = leastTipWithin(limits, attempts)
  const market = { ...advised, priority_fee_per_gas: most(advised.priority_fee_per_gas, least_tip) }
  const held = dearest(attempts.filter(({ first_sent_block }) => first_sent_block !== null))
  const wanted = attempts.filter(({ is_cancel }) => is_cancel === is_given_up)
  const last = wanted.at(-1)
  if (!last) return firstCancel(open, held, market, limits)

  const own = held?.is_cancel === is_given_up ? held : undefined
  const signed = { ...open, market, limits, wanted, last, held, own, least_tip }
  if (gasOf(last) !== gas) return offer(signed, replacingHeld(signed, limits), own ?? last)
  switch (last.last_outcome) {
    case "fee_too_high":
      return afterTooHigh(signed)
    case "underpriced":
      return afterUnderpriced(signed)
    case "no_funds":
      return afterNoFunds(signed)
    case "fee_too_low":
      return afterTooLow(signed)
  }
  if (isPricedOut(feesOf(last), market)) return afterTooLow(signed)
  return is_waiting_long ? offer(signed, replacing(last, signed, limits), last) : resend(last)
}

/** A cancel must replace whatever a pool may hold, whether or not a pool said so. */
function firstCancel(
  { attempts, gas }: OpenNonce,
  held: AttemptRow | undefined,
  market: FeeMarket,
  limits: FeeLimits,
): Move {
  const fees = replacing(dearest(attempts) as AttemptRow, { gas, market }, limits)
  return fees ? { do: "offer", fees } : { do: "keep", attempt: held ?? (attempts.at(-1) as AttemptRow) }
}

/** The last attempt costs more than a node allows: one that a pool holds will do if a block would take it. */
function afterTooHigh(signed: Signed): Move {
  const { last, own, market, limits, is_waiting_long } = signed
  if (own && !isGone(own) && !isPricedOut(feesOf(own), market) && !is_waiting_long) return resend(own)
  const within = limitsBelow(limits, costOf(gasOf(last), feesOf(last)))
  return offer(signed, replacingHeld(signed, within), own ? sentLess(last, own) : last)
}

/** The last attempt neither replaces what a pool holds nor, perhaps, reaches the tip that it demands. */
function afterUnderpriced(signed: Signed): Move {
  const { attempts, wanted, gas, last, held, own, market, limits, least_tip } = signed
  // Raising by a tenth per block would take a minute or more to reach that tip, and
  // multiply the whole price by as much.
  if (least_tip > feesOf(last).max_priority_fee_per_gas)
    return offer(signed, replacingHeld(signed, limits), last)
  const fees =
    held && !isBlockedByUnknown(attempts, held)
      ? replacing(held, signed, limits)
      : outbiddingFees(highestOf(attempts), gas, market, limits)
  const best = dearest(wanted) as AttemptRow
  // A pool that does not hold ours any more says so when it is sent again.
  return offer(signed, fees, [best, own ?? best].reduce(sentLess, last))
}

/**
 * Returns whether the pool that refused attempts as underpriced holds something at an unknown price. If it held ours, it
 * would recognize ours, or one of them would have replaced it.
 */
function isBlockedByUnknown(attempts: AttemptRow[], held: AttemptRow): boolean {
  if (isGone(held)) return true
  const refused = attempts.filter(({ last_outcome }) => last_outcome === "underpriced")
  return refused.some((each) => isReplacement(feesOf(held), feesOf(each)))
}

/** The signer cannot pay for the last attempt. Signs again only if prices moved enough to matter. */
function afterNoFunds(signed: Signed): Move {
  const { gas, last, held, own, market, limits } = signed
  if (held) return resend(own ? sentLess(last, own) : last)
  const [todays, unpaid] = [firstFees(gas, market, limits), feesOf(last)]
  const isDearer = todays.max_fee_per_gas > unpaid.max_fee_per_gas
  const isWorthIt = isTenthLess(todays, unpaid) || (isDearer && isPricedOut(unpaid, market))
  return isWorthIt ? offer(signed, todays, last) : resend(last)
}

/** No block includes the last attempt at the present base fee, or a node said so. */
function afterTooLow(signed: Signed): Move {
  const { last, own, market, limits, is_waiting_long } = signed
  // An earlier attempt may be minable now, and the pools may have dropped it.
  const minable = own && own !== last && !isPricedOut(feesOf(own), market) ? own : undefined
  const isRefused = minable?.last_outcome === "fee_too_low" || isGone(minable)
  if (minable && !isRefused && !is_waiting_long) return resend(minable)
  return offer(signed, replacingHeld(signed, limits), minable ? sentLess(minable, last) : last)
}

function resend(attempt: AttemptRow): Move {
  return { do: "resend", attempt }
}

/**
 * Offers fees, unless the limits allow none or the last attempt has the same; then an attempt is kept in play. The fees
 * of an earlier attempt help no more than when it was sent: what outbids all is offered if a pool refused the dearest for
 * something else that it holds, and otherwise they take turns.
 */
function offer(signed: Signed, fees: Fees | null, otherwise: AttemptRow): Move {
  const { wanted, gas, last, market, limits } = signed
  if (fees === null || isSignedFor(last, gas, fees)) return { do: "keep", attempt: otherwise }
  const before = wanted.find((each) => isSignedFor(each, gas, fees))
  if (!before) return { do: "offer", fees }
  if (before.last_outcome === "fee_too_high") {
    const within = limitsBelow(limits, costOf(gas, fees))
    const lower = offer({ ...signed, limits: within }, replacingHeld(signed, within), last)
    // Another node may take it.
    return lower.do === "offer" ? lower : { ...lower, attempt: sentLess(lower.attempt, before) }
  }
  const alike = wanted.filter((each) => gasOf(each) === gas)
  const best = dearest(alike) as AttemptRow
  const isRefused = best.last_outcome === "underpriced"
  const raised = isRefused ? outbiddingFees(highestOf(alike), gas, market, limits) : null
  if (raised) return { do: "offer", fees: raised }
  return { do: isPricedOut(fees, market) ? "keep" : "resend", attempt: [best, before].reduce(sentLess, last) }
}

/**
 * Returns fees that replace what a pool holds, which may be unknown, or first fees if none holds anything; null if the
 * limits allow none.
 */
function replacingHeld(signed: Signed, within: FeeLimits): Fees | null {
  const { attempts, held, gas, market } = signed
  if (!held) return firstFees(gas, market, within)
  return isGone(held)
    ? outbiddingFees(highestOf(attempts), gas, market, within)
    : replacing(held, signed, within)
}

/** Returns whether a pool that held an attempt has something else by now: it would recognize what it holds. */
function isGone(held: AttemptRow | undefined): boolean {
  return held?.last_outcome === "underpriced"
}

/** Returns the fees that replace an attempt; null if the limits allow none. */
function replacing(
  attempt: AttemptRow,
  { gas, market }: Pick<Signed, "gas" | "market">,
  within: FeeLimits,
): Fees | null {
  return replacementFees(feesOf(attempt), gas, market, within)
}

/** Returns the highest fee and the highest tip, which may be those of two attempts. */
function highestOf(attempts: AttemptRow[]): Fees {
  const fees = attempts.map(feesOf)
  return {
    max_fee_per_gas: fees.map((each) => each.max_fee_per_gas).reduce(most),
    max_priority_fee_per_gas: fees.map((each) => each.max_priority_fee_per_gas).reduce(most),
  }
}

/** Returns the least tip that nodes' pools accept, as far as the limits allow it; 0 if no node named one. */
function leastTipWithin({ max_priority_fee_per_gas }: FeeLimits, attempts: AttemptRow[]): bigint {
  const asked = attempts.map(({ last_error }) => leastTipIn(last_error ?? "") ?? 0n)
  return least(asked.reduce(most, 0n), max_priority_fee_per_gas)
}

/**
 * Returns the attempt that was sent less often, the first on a tie: the one that a pool holds keeps the nonce in play,
 * the one that a node refuses for now is what a block would include.
 */
function sentLess(one: AttemptRow, other: AttemptRow): AttemptRow {
  return other.send_count < one.send_count ? other : one
}

/**
 * Returns whether fees fell by more than a tenth. Smaller changes, which come with each block, are no reason to sign
 * again: an account may lack money for days.
 */
function isTenthLess(offered: Fees, { max_fee_per_gas }: Fees): boolean {
  return 10n * offered.max_fee_per_gas < 9n * max_fee_per_gas
}
