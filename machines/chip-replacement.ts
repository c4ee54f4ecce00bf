import { assign, setup } from "xstate"
import { laneEffect } from "./effect.ts"
import { isOtherTransaction, noOutcome, type Outcome, recordFailure, recordTransaction } from "./outcome.ts"

type ReplaceChipInput = {
  lane_id: string
  unit_id: string
  previous_chip_id: string
  chip_id: string
}
type ReplaceChipOutput = { transaction_hash: string }

type ChipReplacementEvent = { type: "SUBMITTED"; transaction_hash: string }

/** A chip replacement: the swap on chain, from preparation through broadcast to confirmation. */
export const chipReplacementMachine = setup({
  types: {
    input: {} as ReplaceChipInput,
    context: {} as ReplaceChipInput & Outcome,
    events: {} as ChipReplacementEvent,
  },
  actors: { replaceChip: laneEffect<ReplaceChipOutput, ReplaceChipInput>() },
  guards: { isOtherTransaction },
  actions: { recordTransaction: assign(recordTransaction), recordFailure: assign(recordFailure) },
}).createMachine({
  id: "chip-replacement",
  context: ({ input }) => ({
    lane_id: input?.lane_id ?? "",
    unit_id: input?.unit_id ?? "",
    previous_chip_id: input?.previous_chip_id ?? "",
    chip_id: input?.chip_id ?? "",
    ...noOutcome,
  }),
  // The swap spans `prepared` and `submitted`, so the root state invokes it.
  invoke: {
    id: "replaceChip",
    src: "replaceChip",
    input: ({ context: { lane_id, unit_id, previous_chip_id, chip_id } }) => ({
      lane_id,
      unit_id,
      previous_chip_id,
      chip_id,
    }),
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
