import { assign, setup } from "xstate"
import {
  isExpired,
  isUsed,
  type WatchAuthorizationInput,
  type WatchAuthorizationOutput,
} from "./authorization.ts"
import { type EffectFailure, effect, failureOf } from "./effect.ts"

export type TransferInput = { unit_id: string; authorization: WatchAuthorizationInput | null }

/** A transfer: authorized by the service, submitted by the owner's own wallet, decided by the chain. */
export const transferMachine = setup({
  types: {
    input: {} as TransferInput,
    context: {} as TransferInput & { transaction_hash: string | null; failure: EffectFailure | null },
    events: {} as { type: never },
  },
  actors: { watchAuthorization: effect<WatchAuthorizationOutput, WatchAuthorizationInput>() },
}).createMachine({
  id: "transfer",
  context: ({ input }) => ({
    unit_id: input?.unit_id ?? "",
    authorization: input?.authorization ?? null,
    transaction_hash: null,
    failure: null,
  }),
  initial: "prepared",
  states: {
    prepared: {
      invoke: {
        id: "watchAuthorization",
        src: "watchAuthorization",
        input: ({ context }) => context.authorization as WatchAuthorizationInput,
        onDone: [
          {
            guard: isUsed,
            target: "confirmed",
            actions: assign(({ event }) => ({
              transaction_hash: event.output.outcome === "used" ? event.output.transaction_hash : null,
            })),
          },
          { guard: isExpired, target: "expired" },
          {
            target: "failed",
            actions: assign({
              failure: {
                code: "transfer.superseded",
                message: "The unit changed its owner in another way before this authorization was used.",
              },
            }),
          },
        ],
        onError: { target: "failed", actions: assign(({ event }) => ({ failure: failureOf(event.error) })) },
      },
    },
    confirmed: { type: "final" },
    expired: { type: "final" },
    failed: { type: "final" },
  },
})
