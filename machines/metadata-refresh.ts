import { assign, setup } from "xstate"
import { laneEffect } from "./effect.ts"
import { isOtherTransaction, noOutcome, type Outcome, recordFailure, recordTransaction } from "./outcome.ts"

type RefreshMetadataInput = { lane_id: string; collection_id: string }
type RefreshMetadataOutput = { transaction_hash: string }

type MetadataRefreshEvent = { type: "SUBMITTED"; transaction_hash: string }

/** A metadata refresh: the contract tells marketplaces to read metadata again, from preparation to confirmation. */
export const metadataRefreshMachine = setup({
  types: {
    input: {} as RefreshMetadataInput,
    context: {} as RefreshMetadataInput & Outcome,
    events: {} as MetadataRefreshEvent,
  },
  actors: { refreshMetadata: laneEffect<RefreshMetadataOutput, RefreshMetadataInput>() },
  guards: { isOtherTransaction },
  actions: { recordTransaction: assign(recordTransaction), recordFailure: assign(recordFailure) },
}).createMachine({
  id: "metadata-refresh",
  context: ({ input }) => ({
    lane_id: input?.lane_id ?? "",
    collection_id: input?.collection_id ?? "",
    ...noOutcome,
  }),
  // The call spans `prepared` and `submitted`, so the root state invokes it.
  invoke: {
    id: "refreshMetadata",
    src: "refreshMetadata",
    input: ({ context: { lane_id, collection_id } }) => ({ lane_id, collection_id }),
    onDone: {
      target: ".confirmed",
      actions: { type: "recordTransaction", params: ({ event }) => event.output },
    },
    onError: { target: ".failed", actions: { type: "recordFailure", params: ({ event }) => event } },
  },
  initial: "prepared",
  states: {
    prepared: {
      on: {
        SUBMITTED: {
          target: "submitted",
          actions: { type: "recordTransaction", params: ({ event }) => event },
        },
      },
    },
    submitted: {
      on: {
        // Another price of the transaction was mined, or one without effect was followed by another.
        SUBMITTED: {
          guard: { type: "isOtherTransaction", params: ({ event }) => event },
          actions: { type: "recordTransaction", params: ({ event }) => event },
        },
      },
    },
    confirmed: { type: "final" },
    failed: { type: "final" },
  },
})
