import { assign, setup } from "xstate"
import { type EffectFailure, effect, failureOf } from "./effect.ts"

export type UnitTokenInput = { collection_id: string; lane_id: string }

export type IssueUnitInput = {
  collection_id: string
  lane_id: string
  chip_id: string
  bulk_pairing_id: string | null
}
export type IssueUnitOutput = { serial: number; transaction_hash: string }

export type UnitTokenEvent =
  | { type: "PAIRED"; chip_id: string; bulk_pairing_id: string | null }
  | { type: "RETRY" }
  | { type: "CHIP_REPLACED"; chip_id: string }
  | { type: "CLAIMED" }

/** A unit's token: pending until a chip is paired and the chain has issued it; its chip is locked by the claim. */
export const unitTokenMachine = setup({
  types: {
    input: {} as UnitTokenInput,
    context: {} as {
      collection_id: string
      lane_id: string
      chip_id: string
      bulk_pairing_id: string | null
      serial: number | null
      transaction_hash: string | null
      failure: EffectFailure | null
    },
    events: {} as UnitTokenEvent,
  },
  actors: { issueUnit: effect<IssueUnitOutput, IssueUnitInput>() },
}).createMachine({
  id: "unit-token",
  context: ({ input }) => ({
    collection_id: input?.collection_id ?? "",
    lane_id: input?.lane_id ?? "",
    chip_id: "",
    bulk_pairing_id: null,
    serial: null,
    transaction_hash: null,
    failure: null,
  }),
  initial: "pending",
  states: {
    pending: {
      initial: "unpaired",
      states: {
        unpaired: {
          on: {
            PAIRED: {
              target: "issuing",
              actions: assign(({ event }) => ({
                chip_id: event.chip_id,
                bulk_pairing_id: event.bulk_pairing_id,
              })),
            },
          },
        },
        issuing: {
          invoke: {
            id: "issueUnit",
            src: "issueUnit",
            input: ({ context }) => ({
              collection_id: context.collection_id,
              lane_id: context.lane_id,
              chip_id: context.chip_id,
              bulk_pairing_id: context.bulk_pairing_id,
            }),
            onDone: {
              target: "#unit-token.active",
              actions: assign(({ event }) => ({
                serial: event.output.serial,
                transaction_hash: event.output.transaction_hash,
              })),
            },
            onError: {
              target: "stopped",
              actions: assign(({ event }) => ({ failure: failureOf(event.error) })),
            },
          },
        },
        stopped: {
          on: { RETRY: { target: "issuing", actions: assign({ failure: null }) } },
        },
      },
    },
    active: {
      initial: "unclaimed",
      states: {
        unclaimed: {
          on: {
            CHIP_REPLACED: { actions: assign(({ event }) => ({ chip_id: event.chip_id })) },
            CLAIMED: "claimed",
          },
        },
        claimed: {},
      },
    },
  },
})
