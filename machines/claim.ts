import { assign, setup } from "xstate"
import {
  isExpired,
  isUsed,
  type WatchAuthorizationInput,
  watchAuthorization,
  watchingAuthorization,
} from "./authorization.ts"
import { laneEffect } from "./effect.ts"
import { noOutcome, type Outcome, recordFailure, recordTransaction } from "./outcome.ts"

type RelayClaimInput = { lane_id: string; unit_id: string; recipient: string }
type RelayClaimOutput = { transaction_hash: string }

type ClaimInput = { unit_id: string; recipient: string } & (Relayed | Broadcast)

/** The service relays the claim through its lane. */
type Relayed = { relay: { lane_id: string }; authorization: null }

/** The recipient's own wallet submits the claim with an authorization, which the service watches. */
type Broadcast = { relay: null; authorization: WatchAuthorizationInput | null }

/** A claim: hands a unit to a recipient; submitted by the service or by the recipient's own wallet. */
export const claimMachine = setup({
  types: {
    input: {} as ClaimInput,
    context: {} as ClaimInput & Outcome,
    events: {} as { type: never },
  },
  actors: { relayClaim: laneEffect<RelayClaimOutput, RelayClaimInput>(), watchAuthorization },
  guards: { isRelayed: ({ context }) => context.relay !== null, isUsed, isExpired },
  actions: { recordTransaction: assign(recordTransaction), recordFailure: assign(recordFailure) },
}).createMachine({
  id: "claim",
  context: ({ input }) => ({ ...(input ?? noClaim), ...noOutcome }),
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
            input: ({ context: { relay, unit_id, recipient } }) => ({
              lane_id: relay?.lane_id ?? "",
              unit_id,
              recipient,
            }),
            onDone: {
              target: "#claim.claimed",
              actions: { type: "recordTransaction", params: ({ event }) => event.output },
            },
            onError: {
              target: "#claim.failed",
              actions: { type: "recordFailure", params: ({ event }) => event },
            },
          },
        },
        watching: {
          invoke: watchingAuthorization("claim.superseded", {
            used: "#claim.claimed",
            expired: "#claim.expired",
            failed: "#claim.failed",
          }),
        },
      },
    },
    claimed: { type: "final" },
    expired: { type: "final" },
    failed: { type: "final" },
  },
})

/** A placeholder: XState may call the context factory without an input. */
const noClaim: ClaimInput = { unit_id: "", recipient: "", relay: null, authorization: null }
