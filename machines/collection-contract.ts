import { assign, setup } from "xstate"
import { laneEffect } from "./effect.ts"
import { noOutcome, type Outcome, recordFailure, recordTransaction } from "./outcome.ts"

type DeployCollectionInput = { collection_id: string; lane_id: string }
type DeployCollectionOutput = { transaction_hash: string }

type CollectionContractEvent = { type: "RETRY" }

/** A collection's contract: deploying until it is on chain; failed only if the deployment reverts. */
export const collectionContractMachine = setup({
  types: {
    input: {} as DeployCollectionInput,
    context: {} as DeployCollectionInput & Outcome,
    events: {} as CollectionContractEvent,
  },
  actors: { deployCollection: laneEffect<DeployCollectionOutput, DeployCollectionInput>() },
  actions: {
    recordTransaction: assign(recordTransaction),
    recordFailure: assign(recordFailure),
    forgetFailure: assign({ failure: null }),
  },
}).createMachine({
  id: "collection-contract",
  context: ({ input }) => ({
    collection_id: input?.collection_id ?? "",
    lane_id: input?.lane_id ?? "",
    ...noOutcome,
  }),
  initial: "deploying",
  states: {
    deploying: {
      invoke: {
        id: "deployCollection",
        src: "deployCollection",
        input: ({ context: { collection_id, lane_id } }) => ({ collection_id, lane_id }),
        onDone: {
          target: "active",
          actions: { type: "recordTransaction", params: ({ event }) => event.output },
        },
        onError: { target: "failed", actions: { type: "recordFailure", params: ({ event }) => event } },
      },
    },
    active: { type: "final" },
    failed: {
      on: { RETRY: { target: "deploying", actions: "forgetFailure" } },
    },
  },
})
