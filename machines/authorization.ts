/** An EIP-712 authorization that a person's own wallet submits, and what the chain made of it. */
export type WatchAuthorizationInput = {
  chain_id: number
  contract_address: string
  serial: number
  authorization_digest: string
  /** The token's nonce that the authorization uses up. */
  authorization_nonce: number
  deadline_at: string
}

/**
 * `used`: the authorization is in a block at the confirmation depth. `expired`: a block later than the deadline
 * is that deep and the authorization is unused. `superseded`: ownership changed otherwise, so it never can be used.
 */
export type WatchAuthorizationOutput =
  | { outcome: "used"; transaction_hash: string }
  | { outcome: "expired" }
  | { outcome: "superseded"; transaction_hash: string }

type WatchEnded = { event: { output: WatchAuthorizationOutput } }

/** Guards of those who wait for an authorization, named so that charts can show them. */
export function isUsed({ event }: WatchEnded): boolean {
  return event.output.outcome === "used"
}

export function isExpired({ event }: WatchEnded): boolean {
  return event.output.outcome === "expired"
}
