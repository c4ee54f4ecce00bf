import { chainEffect } from "./effect.ts"
import { type FailureCode, failure } from "./failures.ts"

/** An EIP-712 authorization that a person submits from their own wallet, identified for the watch on chain. */
export type WatchAuthorizationInput = {
  chain_id: number
  contract_address: string
  serial: number
  authorization_digest: string
  /** The token's authorization nonce in the contract, which using the authorization increments. */
  authorization_nonce: number
  deadline_at: string
}

/**
 * `used`: the authorization is in a block at the confirmation depth. `expired`: a block later than the deadline is that
 * deep and the authorization is unused. `superseded`: ownership changed in another way, so it can never be used.
 */
export type WatchAuthorizationOutput =
  | { outcome: "used"; transaction_hash: string }
  | { outcome: "expired" }
  | { outcome: "superseded"; transaction_hash: string }

export const watchAuthorization = chainEffect<WatchAuthorizationOutput, WatchAuthorizationInput>()

/** Guards for machines that invoke `watchAuthorization`. */
export const isUsed = (_: unknown, { outcome }: WatchAuthorizationOutput) => outcome === "used"
export const isExpired = (_: unknown, { outcome }: WatchAuthorizationOutput) => outcome === "expired"

/**
 * Returns the `invoke` that watches the authorization in the context. The machine must define the
 * guards and actions named here.
 */
export function watchingAuthorization<Target extends string>(
  superseded: FailureCode,
  targets: { used: Target; expired: Target; failed: Target },
) {
  return {
    id: "watchAuthorization",
    src: "watchAuthorization",
    input: ({ context }: { context: Watching }) => context.authorization ?? noAuthorization,
    onDone: [
      {
        guard: { type: "isUsed", params: outputOf },
        target: targets.used,
        actions: { type: "recordTransaction", params: outputOf },
      },
      { guard: { type: "isExpired", params: outputOf }, target: targets.expired },
      {
        target: targets.failed,
        actions: { type: "recordFailure", params: { error: failure(superseded) } },
      },
    ],
    onError: {
      target: targets.failed,
      actions: { type: "recordFailure", params: errorOf },
    },
  } as const
}

type Watching = { authorization: WatchAuthorizationInput | null }

function outputOf({ event }: { event: { output: WatchAuthorizationOutput } }): WatchAuthorizationOutput {
  return event.output
}

function errorOf({ event }: { event: { error: unknown } }): { error: unknown } {
  return { error: event.error }
}

/** A placeholder for the authorization of a machine that XState starts without an input. */
const noAuthorization: WatchAuthorizationInput = {
  chain_id: 0,
  contract_address: "",
  serial: 0,
  authorization_digest: "",
  authorization_nonce: 0,
  deadline_at: "",
}
