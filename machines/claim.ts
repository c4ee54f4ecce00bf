import { assign, setup } from "xstate"
import {
  isExpired,
  isUsed,
  type WatchAuthorizationInput,
  type WatchAuthorizationOutput,
} from "./authorization.ts"
import { type EffectFailure, effect, failureOf } from "./effect.ts"

export type RelayClaimInput = { lane_id: string; unit_id: string; recipient: string }
export type RelayClaimOutput = { transaction_hash: string }

/** The relay needs its lane; the client's own broadcast needs an authorization to watch. */
export type ClaimInput = {
  unit_id: string
  recipient: string
  relay: { lane_id: string } | null
  authorization: WatchAuthorizationInput | null
}

/** A claim: hands a unit to a recipient, sent by the service or by the recipient's own wallet. */
export const claimMachine = setup({
  types: {
    input: {} as ClaimInput,
    context: {} as ClaimInput & { transaction_hash: string | null; failure: EffectFailure | null },
    events: {} as { type: never },
  },
  actors: {
    relayClaim: effect<RelayClaimOutput, RelayClaimInput>(),
    watchAuthorization: effect<WatchAuthorizationOutput, WatchAuthorizationInput>(),
  },
  guards: {
    isRelayed: ({ context }) => context.relay !== null,
  },
}).createMachine({
  id: "claim",
  context: ({ input }) => ({
    unit_id: input?.unit_id ?? "",
    recipient: input?.recipient ?? "",
    relay: input?.relay ?? null,
    authorization: input?.authorization ?? null,
    transaction_hash: null,
    failure: null,
  }),
  initial: "claiming",
  states: {
    claiming: {
      initial: "authorized",
      states: {
        authorized: {
          always: [{ guard: "isRelayed", target: "relaying" }, { target: "watching" }],
        },
        relaying: {
          invoke: {
            id: "relayClaim",
            src: "relayClaim",
            input: ({ context }) => ({
              lane_id: context.relay?.lane_id ?? "",
              unit_id: context.unit_id,
              recipient: context.recipient,
            }),
            onDone: {
              target: "#claim.claimed",
              actions: assign(({ event }) => ({ transaction_hash: event.output.transaction_hash })),
            },
            onError: {
              target: "#claim.failed",
              actions: assign(({ event }) => ({ failure: failureOf(event.error) })),
            },
          },
        },
        watching: {
          invoke: {
            id: "watchAuthorization",
            src: "watchAuthorization",
            input: ({ context }) => context.authorization as WatchAuthorizationInput,
            onDone: [
              {
                guard: isUsed,
                target: "#claim.claimed",
                actions: assign(({ event }) => ({
                  transaction_hash: event.output.outcome === "used" ? event.output.transaction_hash : null,
                })),
              },
              { guard: isExpired, target: "#claim.expired" },
              {
                target: "#claim.failed",
                actions: assign({
                  failure: {
                    code: "claim.superseded",
                    message: "The unit was claimed in another way before this authorization was used.",
                  },
                }),
              },
            ],
            onError: {
              target: "#claim.failed",
              actions: assign(({ event }) => ({ failure: failureOf(event.error) })),
            },
          },
        },
      },
    },
    claimed: { type: "final" },
    expired: { type: "final" },
    failed: { type: "final" },
  },
})
