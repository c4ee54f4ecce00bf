import { assign, setup } from "xstate"
import { type EffectFailure, effect, failureOf } from "./effect.ts"

export type ReplaceChipInput = {
  lane_id: string
  unit_id: string
  previous_chip_id: string
  chip_id: string
}
export type ReplaceChipOutput = { transaction_hash: string }

export type ChipReplacementEvent = { type: "SUBMITTED"; transaction_hash: string }

/** A chip replacement: the swap on chain, from its preparation over its broadcast to its confirmation. */
export const chipReplacementMachine = setup({
  types: {
    input: {} as ReplaceChipInput,
    context: {} as ReplaceChipInput & { transaction_hash: string | null; failure: EffectFailure | null },
    events: {} as ChipReplacementEvent,
  },
  actors: { replaceChip: effect<ReplaceChipOutput, ReplaceChipInput>() },
}).createMachine({
  id: "chip-replacement",
  context: ({ input }) => ({
    lane_id: input?.lane_id ?? "",
    unit_id: input?.unit_id ?? "",
    previous_chip_id: input?.previous_chip_id ?? "",
    chip_id: input?.chip_id ?? "",
    transaction_hash: null,
    failure: null,
  }),
  // The swap goes on across `prepared` and `submitted`, so it belongs to the whole machine.
  invoke: {
    id: "replaceChip",
    src: "replaceChip",
    input: ({ context }) => ({
      lane_id: context.lane_id,
      unit_id: context.unit_id,
      previous_chip_id: context.previous_chip_id,
      chip_id: context.chip_id,
    }),
    onDone: {
      target: ".confirmed",
      actions: assign(({ event }) => ({ transaction_hash: event.output.transaction_hash })),
    },
    onError: { target: ".failed", actions: assign(({ event }) => ({ failure: failureOf(event.error) })) },
  },
  initial: "prepared",
  states: {
    prepared: {
      on: {
        SUBMITTED: {
          target: "submitted",
          actions: assign(({ event }) => ({ transaction_hash: event.transaction_hash })),
        },
      },
    },
    submitted: {},
    confirmed: { type: "final" },
    failed: { type: "final" },
  },
})
