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
  /** All attempts, the last one last; at least one. */
  attempts: AttemptRow[]
  /** Whether the nonce is to be used up by an empty transaction. */
  is_given_up: boolean
  /** The gas that the next attempt of the wanted kind needs. */
  gas: bigint
  /** Whether a pool has held the last attempt so long that its price is too low for more than this moment. */
  is_waiting_long: boolean
}

/** `keep`: a higher price is wanted, but the limits do not allow it. */
type Move = { do: "resend" | "keep"; attempt: AttemptRow } | { do: "offer"; fees: Fees }

/**
 * What is sent next for a nonce: the same bytes, unless a node said in known words that they are too cheap, too dear or
 * have too little gas, or no block takes them at the present base fee.
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

  // A cancel has to replace whatever may be in a pool, whether a pool said so or not.
  if (!last) return offer(raised(dearest(attempts) as AttemptRow, limits), held)
  if (gasOf(last) !== gas) return offer(priced(limits), held ?? last)
  switch (last.last_outcome) {
    case "fee_too_high": {
      const within = limitsBelow(limits, costOf(gasOf(last), feesOf(last)))
      const isWell = held && !isPricedOut(feesOf(held), market) && !is_waiting_long
      return isWell ? { do: "resend", attempt: held } : offer(priced(within), inTurn(last, held))
    }
    case "underpriced": {
      // A tenth more with each block comes to that in a minute or more, and to as many times the price.
      if (leastTip > feesOf(last).max_priority_fee_per_gas) return offer(priced(limits), last)
      const refused = dearest(attempts) as AttemptRow
      // If the pool holds something of unknown price, it is not ours: it would know ours again, or this would have
      // replaced it.
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
    // An earlier attempt may be minable now, and the pools may have forgotten it.
    const isOther = held !== undefined && held !== last && held.is_cancel === is_given_up
    const before = isOther && !isPricedOut(feesOf(held), market) ? held : undefined
    if (before && before.last_outcome !== "fee_too_low" && !is_waiting_long)
      return { do: "resend", attempt: before }
    return offer(priced(limits), before ? inTurn(before, last) : last)
  }
  return is_waiting_long ? offer(raised(last, limits), last) : { do: "resend", attempt: last }
}

/** The least tip that nodes' pools take, as far as the limits allow it; 0 where none said so. */
function leastTipWithin({ max_priority_fee_per_gas }: FeeLimits, attempts: AttemptRow[]): bigint {
  const asked = attempts.map(({ last_error }) => leastTipIn(last_error ?? "") ?? 0n)
  return least(asked.reduce(most, 0n), max_priority_fee_per_gas)
}

/**
 * Of the attempt that a pool holds, which keeps the nonce in play, and the one that a node refused for now, which a
 * block would take: the one that was sent less often.
 */
function inTurn(refused: AttemptRow, held: AttemptRow | undefined): AttemptRow {
  return held && held.send_count < refused.send_count ? held : refused
}

/** What changes with each block is no reason to sign anew with each: whoever has no money may wait for days. */
function isTenthLess(offered: Fees, { max_fee_per_gas }: Fees): boolean {
  return 10n * offered.max_fee_per_gas < 9n * max_fee_per_gas
}
