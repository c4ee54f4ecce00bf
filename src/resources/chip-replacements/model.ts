import { type Static, Type } from "@sinclair/typebox"
import { chipReplacementStatuses } from "../../db/statuses.ts"
import {
  chipId,
  createdAt,
  described,
  failure,
  id,
  status,
  transactionHash,
  unitId,
  updatedAt,
} from "../../platform/fields.ts"
import { testOrEncoded } from "../chips/model.ts"

export const createChipReplacementBody = testOrEncoded("CreateChipReplacement", {})
export type CreateChipReplacementBody = Static<typeof createChipReplacementBody>

export const chipReplacementResource = Type.Object(
  {
    id,
    unit_id: unitId,
    status: status(chipReplacementStatuses, {
      prepared: "waiting to be sent to the chain.",
      submitted: "sent to the chain.",
      confirmed: "the unit has the new chip; final.",
      failed: "the unit keeps its chip; `failure` says why; final.",
    }),
    previous_chip_id: described(chipId, "The chip that is retired."),
    chip_id: described(chipId, "The new chip. It becomes the unit's chip once the chain has confirmed it."),
    transaction_hash: transactionHash,
    failure,
    created_at: createdAt,
    updated_at: updatedAt,
  },
  { title: "ChipReplacement", additionalProperties: false },
)
export type ChipReplacementResource = Static<typeof chipReplacementResource>
