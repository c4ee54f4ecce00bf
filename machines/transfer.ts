import { assign, setup } from "xstate"
import {
  isExpired,
  isUsed,
  type WatchAuthorizationInput,
  watchAuthorization,
  watchingAuthorization,
} from "./authorization.ts"
import { noOutcome, type Outcome, recordFailure, recordTransaction } from "./outcome.ts"

type TransferInput = { unit_id: string; authorization: WatchAuthorizationInput | null }

/** A transfer: authorized by the service, submitted by the owner's own wallet, decided by the chain. */
export const transferMachine = setup({
  types: {
    input: {} as TransferInput,
    context: {} as TransferInput & Outcome,
    events: {} as { type: never },
  },
  actors: { watchAuthorization },
  guards: { isUsed, isExpired },
  actions: { recordTransaction: assign(recordTransaction), recordFailure: assign(recordFailure) },
}).createMachine({
  id: "transfer",
  context: ({ input }) => ({
    unit_id: input?.unit_id ?? "",
    authorization: input?.authorization ?? null,
    ...noOutcome,
  }),
  initial: "prepared",
  states: {
    prepared: {
      invoke: watchingAuthorization("transfer.superseded", {
        used: "confirmed",
        expired: "expired",
        failed: "failed",
      }),
    },
    confirmed: { type: "final" },
    expired: { type: "final" },
    failed: { type: "final" },
  },
})
