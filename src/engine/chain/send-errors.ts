import type { sendOutcomes } from "../../db/statuses.ts"

/**
 * What nodes say about a transaction:
 * - `known`: the pool has these bytes.
 * - `nonce_low`: the nonce is used, perhaps by this service.
 * - `nonce_high`: a lower nonce is missing.
 * - `underpriced`: too cheap compared with what the pool holds or requires.
 * - `fee_too_low`: below the current base fee.
 * - `fee_too_high`: above what the node lets anyone pay.
 * - `gas_too_low`: the gas limit does not cover the call.
 * - `no_funds`: the account cannot pay for it.
 * - `wait`: there is no room now.
 * - `refused`: these bytes will never be accepted.
 * - `unclear` (unrecognized words), `rate_limited`, `no_answer`: nothing is known; send the same bytes again later.
 */
export type SendOutcome = (typeof sendOutcomes)[number]

/** What clients say of a call that reverts: geth and its forks, hardhat and ganache, parity and nethermind. */
const revertWords =
  /execution reverted|transaction reverted|processing transaction: revert|vm execution error/

/** Returns whether a node's message, in lower case, says that a call reverts. */
export function isRevertText(text: string): boolean {
  return revertWords.test(text)
}

/** Classifies a node's own message, in lower case. A revert text may quote any of the others, so reverts come first. */
export function classifySendError(text: string): SendOutcome {
  const known = outcomes.find(([patterns]) => patterns.some((pattern) => pattern.test(text)))?.[1]
  return known ?? besideNonce(text) ?? "unclear"
}

/** Tells a used nonce from an early one by the numbers in the message: Cosmos chains use one sentence for both. */
function besideNonce(text: string): SendOutcome | null {
  const { got, expected } = (otherNonce.exec(text) ?? otherSequence.exec(text))?.groups ?? {}
  if (got === undefined || expected === undefined) return null
  return BigInt(got) < BigInt(expected) ? "nonce_low" : "nonce_high"
}

const otherNonce = /invalid nonce; got (?<got>\d+), expected (?<expected>\d+)/
const otherSequence = /sequence mismatch, expected (?<expected>\d+), got (?<got>\d+)/

/** Returns the least tip that a node's pool accepts, in wei per gas, if its message, in lower case, names it. */
export function leastTipIn(text: string): bigint | null {
  const wei = leastTip.exec(text)?.groups?.wei
  return wei === undefined ? null : BigInt(wei)
}

/** The wording of geth and Bor, of earlier nodes of BNB Chain, and of reth. */
const leastTip = /(gas tip cap \d+, minimum needed|tip needed|minimum required priority fee) (?<wei>\d+)/

/** From the narrowest wording to the widest: "fee cap exceeded" is tested before any other "exceeded". */
const outcomes: [RegExp[], SendOutcome][] = [
  [[revertWords], "refused"],
  [
    [
      /already ?(known|imported|exists in)|(?<!un)known transaction|existing (tx|txn|transaction) with same hash/,
      /same hash was already imported|ownnoncealreadyused|(?<!nonce (is )?)already in (the )?(mempool|(tx|transaction )?pool)/,
    ],
    "known",
  ],
  [
    [
      /nonce[ _-]?(is )?(too|to)[ _]?low|oldnonce|old nonce|invalid transaction nonce|^mined$/,
      /nonce is lower than|pool\(stale\)|stale nonce|transaction already finalized/,
    ],
    "nonce_low",
  ],
  [
    [
      /nonce[ _-](is )?too[ _-](high|distant|far)|gapped|nonce ?gap|future nonce|exceeds next nonce/,
      /nonce is higher than|transaction with a lower nonce/,
    ],
    "nonce_high",
  ],
  [[/sub-?pool is full|(tx|transaction) ?pool (is )?(full|overflow)|pool is full|\bqueue full/], "wait"],
  [
    [
      /max fee per gas less than block base fee|fee cap less than block|below current base fee/,
      /maxfeepergas( \(\d+\))? (is )?too low|less than (the )?(block('s)? )?base ?fee/,
      /gasfeecap is lower than/,
    ],
    "fee_too_low",
  ],
  [[/exceeds the configured cap|fee cap exceeded|fee too high/], "fee_too_high"],
  [
    [
      /underpriced|could not replace|insufficient gas price to replace|replacement ?not ?allowed/,
      /gas price (is )?(too low|below)|gas price \S+ is too low|fee( cap)? too low|feetoolow/,
      /below minimum required|below (the )?(chain|pool|configured) minimum|gas ?price \S+ less than (the )?(gas price )?minimum/,
      /replace by fee|to replace it, you need|another (tx|transaction) (which has|with) (the )?same nonce|same nonce (is )?already in/,
      /provided fee < |insufficient fees?\b/,
    ],
    "underpriced",
  ],
  [
    [
      /intrinsic ?gas|floor ?data ?gas|gas (cost|floor) (\(\d+\) )?exceeds the gas limit/,
      /transaction gas is too low|not enough gas for transaction validation/,
    ],
    "gas_too_low",
  ],
  [
    [
      /(insufficient|not enough) ?(funds|balance)|doesn't have enough funds|(out|lack) of funds/,
      /exceeds ((transaction )?sender )?account balance/,
    ],
    "no_funds",
  ],
  [
    [
      /rate ?limit|too many requests|\b429\b|request(s|_)? ?limit|usage limit|rps limit|request speed/,
      /compute units|capacity limit|monthly capacity|(requests?|calls) per (second|minute|day)|throttl|quota/,
      /request (count|rate) exceeded|credits limited to/,
    ],
    "rate_limited",
  ],
  [
    [
      /account limit exceeded|tries to replace pending|in-?flight transaction limit|spammer|pool size/,
      /too many (pending )?(transactions|messages)|address already reserved/,
      /sequencer|forwarding targets|not accepting transactions|congestion|over capacity/,
      /no backends available|not (currently )?healthy|replaced by transaction with higher/,
    ],
    "wait",
  ],
  [
    [
      /gas ?limit|transaction gas limit|chain ?id\b|invalid sender|invalid signature|not an eoa/,
      /oversized data|transaction type|replay-protected|publishing transactions not supported/,
      /priority ?fee per gas (is )?(higher than|exceeds) max ?fee|initcode size|gas uint64 overflow/,
      /senderiscontract|sender account not authorized to send|transaction is not permitted|forbidden sender address/,
      /address of transaction in blacklist|(sender|recipient|code) is banned/,
    ],
    "refused",
  ],
]

/** From the best verdict to the worst: one pool that has the bytes is enough. */
const fromBest: SendOutcome[] = [
  "known",
  "nonce_low",
  "underpriced",
  "fee_too_low",
  "gas_too_low",
  "fee_too_high",
  "no_funds",
  "wait",
  "nonce_high",
  "refused",
  "rate_limited",
  "unclear",
  "no_answer",
]

/** The outcome for a transaction's bytes, and the node's own message; null if it accepted them. */
export type SendVerdict = { outcome: SendOutcome; said: string | null }

/** Returns the best of several nodes' verdicts on the same bytes; `no_answer` if there are none. */
export function bestVerdict(verdicts: SendVerdict[]): SendVerdict {
  const [best] = verdicts.toSorted(
    (one, other) => fromBest.indexOf(one.outcome) - fromBest.indexOf(other.outcome),
  )
  return best ?? { outcome: "no_answer", said: null }
}
