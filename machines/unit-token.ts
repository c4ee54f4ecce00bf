import { assign, setup } from "xstate"
import { laneEffect } from "./effect.ts"
import { noOutcome, type Outcome, recordFailure } from "./outcome.ts"

type UnitTokenInput = { collection_id: string; lane_id: string }

type IssueUnitInput = UnitTokenInput & Pairing
type IssueUnitOutput = { serial: number; transaction_hash: string }

type Pairing = { chip_id: string; bulk_pairing_id: string | null }

type UnitTokenEvent =
  | ({ type: "PAIRED" } & Pairing)
  | { type: "RETRY" }
  | { type: "CHIP_REPLACED"; chip_id: string }
  | { type: "CLAIMED" }
  | { type: "RETURNED" }

/**
 * A unit's token: pending until a chip is paired and the token is issued on chain; active from
 * then on. A claim locks the chip.
 */
export const unitTokenMachine = setup({
  types: {
    input: {} as UnitTokenInput,
    context: {} as IssueUnitInput & { serial: number | null } & Outcome,
    events: {} as UnitTokenEvent,
  },
  actors: { issueUnit: laneEffect<IssueUnitOutput, IssueUnitInput>() },
  actions: {
    bindChip: assign((_, { chip_id, bulk_pairing_id }: Pairing) => ({ chip_id, bulk_pairing_id })),
    replaceChip: assign((_, { chip_id }: { chip_id: string }) => ({ chip_id })),
    recordIssuance: assign((_, { serial, transaction_hash }: IssueUnitOutput) => ({
      serial,
      transaction_hash,
    })),
    recordFailure: assign(recordFailure),
    forgetFailure: assign({ failure: null }),
  },
}).createMachine({
  id: "unit-token",
  context: ({ input }) => ({
    collection_id: input?.collection_id ?? "",
    lane_id: input?.lane_id ?? "",
    chip_id: "",
    bulk_pairing_id: null,
    serial: null,
    ...noOutcome,
  }),
  initial: "pending",
  states: {
    pending: {
      initial: "unpaired",
      states: {
        unpaired: {
          on: {
            PAIRED: { target: "issuing", actions: { type: "bindChip", params: ({ event }) => event } },
          },
        },
        issuing: {
          invoke: {
            id: "issueUnit",
            src: "issueUnit",
            input: ({ context: { collection_id, lane_id, chip_id, bulk_pairing_id } }) => ({
              collection_id,
              lane_id,
              chip_id,
              bulk_pairing_id,
            }),
            onDone: {
              target: "#unit-token.active",
              actions: { type: "recordIssuance", params: ({ event }) => event.output },
            },
            onError: {
              target: "stopped",
              actions: { type: "recordFailure", params: ({ event }) => event },
            },
          },
        },
        stopped: {
          on: { RETRY: { target: "issuing", actions: "forgetFailure" } },
        },
      },
    },
    active: {
      initial: "unclaimed",
      states: {
        unclaimed: { on: { CLAIMED: "claimed" } },
        // A reorganization undid a claim that the database does not have, or that can never be on chain again.
        claimed: { on: { RETURNED: "unclaimed" } },
      },
      // Accepted while claimed too: after a restore, a claim may be found before the chip replacement that preceded it.
      on: { CHIP_REPLACED: { actions: { type: "replaceChip", params: ({ event }) => event } } },
    },
  },
})
