/**
 * What a refusal to take a transaction means. `known`: the pool has these bytes. `nonce_low`: the nonce is used,
 * perhaps by us. `unclear`, in words nobody knows, and `no_answer`: nothing learnt, the same bytes again later.
 */
export type SendOutcome =
  | "known"
  | "nonce_low"
  | "nonce_high"
  | "underpriced"
  | "fee_too_low"
  | "no_funds"
  | "rate_limited"
  | "refused"
  | "unclear"
  | "no_answer"

/** Classifies a node's own words, lower case. A revert text may quote any of the others, so it is looked at first. */
export function classifySendError(text: string): SendOutcome {
  return outcomes.find(([pattern]) => pattern.test(text))?.[1] ?? "unclear"
}

const outcomes: [RegExp, SendOutcome][] = [
  [/execution reverted/, "refused"],
  [/already known|already imported|known transaction|alreadyknown/, "known"],
  [/nonce (is )?too low|nonce_too_low/, "nonce_low"],
  [/nonce (is )?too high|gapped|nonce gap/, "nonce_high"],
  [/underpriced|fee too low to replace/, "underpriced"],
  [/max fee per gas less than block base fee|fee cap less than|basefee/, "fee_too_low"],
  [/insufficient funds|insufficient balance/, "no_funds"],
  [/rate limit|too many requests|\b429\b|-32005/, "rate_limited"],
  [
    /intrinsic gas too low|exceeds block gas limit|gas limit too high|invalid sender|invalid chain id|chain id/,
    "refused",
  ],
]
