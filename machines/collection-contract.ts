import { assign, setup } from "xstate"
import { type EffectFailure, effect, failureOf } from "./effect.ts"

export type DeployCollectionInput = { collection_id: string; lane_id: string }
export type DeployCollectionOutput = { transaction_hash: string }

export type CollectionContractEvent = { type: "RETRY" }

/** A collection's contract: deploying until the chain has it; failed only when the deployment reverts. */
export const collectionContractMachine = setup({
  types: {
    input: {} as DeployCollectionInput,
    context: {} as {
      collection_id: string
      lane_id: string
      transaction_hash: string | null
      failure: EffectFailure | null
    },
    events: {} as CollectionContractEvent,
  },
  actors: { deployCollection: effect<DeployCollectionOutput, DeployCollectionInput>() },
}).createMachine({
  id: "collection-contract",
  context: ({ input }) => ({
    collection_id: input?.collection_id ?? "",
    lane_id: input?.lane_id ?? "",
    transaction_hash: null,
    failure: null,
  }),
  initial: "deploying",
  states: {
    deploying: {
      invoke: {
        id: "deployCollection",
        src: "deployCollection",
        input: ({ context }) => ({ collection_id: context.collection_id, lane_id: context.lane_id }),
        onDone: {
          target: "active",
          actions: assign(({ event }) => ({ transaction_hash: event.output.transaction_hash })),
        },
        onError: { target: "failed", actions: assign(({ event }) => ({ failure: failureOf(event.error) })) },
      },
    },
    active: { type: "final" },
    failed: {
      on: { RETRY: { target: "deploying", actions: assign({ failure: null }) } },
    },
  },
})
