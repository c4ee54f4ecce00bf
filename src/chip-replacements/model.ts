import { type Static, Type } from "@sinclair/typebox"
import { c, chipId, e, id, instant, nullable } from "../fields.ts"
import { failure, transactionHash } from "../ownership-fields.ts"
import type { ChipReplacementRow } from "./service.ts"

/** Both variants in one closed object, as for a pairing. */
export const createChipReplacementBody = Type.Object(
  {
    chip_id: Type.Optional(chipId),
    e: Type.Optional(e),
    c: Type.Optional(c),
    is_test: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
export type CreateChipReplacementBody = Static<typeof createChipReplacementBody>

export const chipReplacementResource = Type.Object(
  {
    id,
    unit_id: id,
    status: Type.Union([
      Type.Literal("prepared"),
      Type.Literal("submitted"),
      Type.Literal("confirmed"),
      Type.Literal("failed"),
    ]),
    previous_chip_id: chipId,
    chip_id: chipId,
    transaction_hash: nullable(transactionHash),
    failure: nullable(failure),
    created_at: instant,
    updated_at: instant,
  },
  { additionalProperties: false },
)
export type ChipReplacementResource = Static<typeof chipReplacementResource>

export function presentChipReplacement(replacement: ChipReplacementRow): ChipReplacementResource {
  return {
    id: replacement.id,
    unit_id: replacement.unit_id,
    status: replacement.status,
    previous_chip_id: replacement.previous_chip_id,
    chip_id: replacement.chip_id,
    transaction_hash: replacement.transaction_hash,
    failure: replacement.failure,
    created_at: replacement.created_at.toISOString(),
    updated_at: replacement.updated_at.toISOString(),
  }
}
