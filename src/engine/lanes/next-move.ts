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

/**
 * Decides what is sent next for a nonce: the same bytes, unless a node said in recognized words that they are too
 * cheap, too expensive or have too little gas, or no block includes them at the present base fee.
 */
export function nextMove(open: OpenNonce, advised: FeeMarket, limits: FeeLimits): Move {
  const { attempts, is_given_up, gas, is_waiting_long } = open
  const leastTip = leastTipWithin(limits, attempts)
  const market = { ...advised, priority_fee_per_gas: most(advised.priority_fee_per_gas, leastTip) }
  const wanted = attempts.filter(({ is_cancel }) => is_cancel === is_given_up)
  const last = wanted.at(-1)
  const held = dearest(attempts.filter(({ first_sent_block }) => first_sent_block !== null))
  const raised = (from: AttemptRow, within: FeeLimits) => replacementFees(feesOf(from), gas, market, within)
  const priced = (within: FeeLimits) => (held ? raised(held, within) : firstFees(gas, market, within))

  function offer(fees: Fees | null, otherwise: AttemptRow | undefined): Move {
    const fallback = otherwise ?? (attempts.at(-1) as AttemptRow)
    if (fees === null || (last && isSignedFor(last, gas, fees))) return { do: "keep", attempt: fallback }
    return { do: "offer", fees }
  }

  // A cancel must replace whatever a pool may hold, whether or not a pool said so.
  if (!last) return offer(raised(dearest(attempts) as AttemptRow, limits), held)
  if (gasOf(last) !== gas) return offer(priced(limits), held ?? last)
  switch (last.last_outcome) {
    case "fee_too_high": {
      const within = limitsBelow(limits, costOf(gasOf(last), feesOf(last)))
      const isWell = held && !isPricedOut(feesOf(held), market) && !is_waiting_long
      return isWell ? { do: "resend", attempt: held } : offer(priced(within), inTurn(last, held))
    }
    case "underpriced": {
      // Raising by a tenth per block would take a minute or more to reach that tip, and
      // multiply the whole price by as much.
      if (leastTip > feesOf(last).max_priority_fee_per_gas) return offer(priced(limits), last)
      const refused = dearest(attempts) as AttemptRow
      // A pool that holds something at an unknown price does not hold ours: it would recognize ours,
      // or this would have replaced it.
      const isOurs = held && held.last_outcome !== "underpriced"
      const isUnknown = !isOurs || isReplacement(feesOf(held), feesOf(refused))
      return isUnknown
        ? offer(outbiddingFees(feesOf(refused), gas, market, limits), last)
        : offer(raised(refused, limits), last)
    }
    case "no_funds": {
      if (held) return { do: "resend", attempt: inTurn(last, held) }
      const [todays, unpaid] = [firstFees(gas, market, limits), feesOf(last)]
      const isDearer = todays.max_fee_per_gas > unpaid.max_fee_per_gas
      const isWorthIt = isTenthLess(todays, unpaid) || (isDearer && isPricedOut(unpaid, market))
      return isWorthIt ? { do: "offer", fees: todays } : { do: "resend", attempt: last }
    }
  }
  const isTooCheap = last.last_outcome === "fee_too_low" || isPricedOut(feesOf(last), market)
  if (isTooCheap) {
    // An earlier attempt may be minable now, and the pools may have dropped it.
    const isOther = held !== undefined && held !== last && held.is_cancel === is_given_up
    const before = isOther && !isPricedOut(feesOf(held), market) ? held : undefined
    if (before && before.last_outcome !== "fee_too_low" && !is_waiting_long)
      return { do: "resend", attempt: before }
    return offer(priced(limits), before ? inTurn(before, last) : last)
  }
  return is_waiting_long ? offer(raised(last, limits), last) : { do: "resend", attempt: last }
}

/** Returns the least tip that nodes' pools accept, as far as the limits allow it; 0 if no node named one. */
function leastTipWithin({ max_priority_fee_per_gas }: FeeLimits, attempts: AttemptRow[]): bigint {
  const asked = attempts.map(({ last_error }) => leastTipIn(last_error ?? "") ?? 0n)
  return least(asked.reduce(most, 0n), max_priority_fee_per_gas)
}

/**
 * Returns the attempt that was sent less often: of the one that a pool holds, which keeps the nonce in play, and the
 * one that a node refuses for now, which a block would include.
 */
function inTurn(refused: AttemptRow, held: AttemptRow | undefined): AttemptRow {
  return held && held.send_count < refused.send_count ? held : refused
}

/**
 * Returns whether fees fell by more than a tenth. Smaller changes, which come with each block, are no reason to sign
 * again: an account may lack money for days.
 */
function isTenthLess(offered: Fees, { max_fee_per_gas }: Fees): boolean {
  return 10n * offered.max_fee_per_gas < 9n * max_fee_per_gas
}
