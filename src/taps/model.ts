import { type Static, Type } from "@sinclair/typebox"
import { chipResource, presentChip } from "../chips/model.ts"
import { c, chipId, e, id, instant, nullable } from "../fields.ts"
import { issuedSessionToken, presentIssuedSessionToken } from "../session-tokens/model.ts"
import { presentUnit, unitResource } from "../units/model.ts"
import type { TapOutcome, TapRow } from "./service.ts"

export const createTapBody = Type.Object(
  {
    chip_id: chipId,
    e,
    c: Type.Optional(c),
    ttl: Type.Optional(Type.Integer({ minimum: 60, maximum: 3_600 })),
    dry_run: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
export type CreateTapBody = Static<typeof createTapBody>

export const createTestTapBody = Type.Object({ chip_id: chipId }, { additionalProperties: false })
export type CreateTestTapBody = Static<typeof createTestTapBody>

export const tapResponse = Type.Object(
  {
    id: nullable(id),
    chip: chipResource,
    unit: unitResource,
    redirect_url: nullable(Type.String()),
    session_token: nullable(issuedSessionToken),
  },
  { additionalProperties: false },
)

export const testTapResponse = Type.Object(
  { chip_id: chipId, e, count: Type.Integer({ minimum: 1 }) },
  { additionalProperties: false },
)
export type TestTap = Static<typeof testTapResponse>

/** A tap in the history. */
export const tapRecord = Type.Object(
  {
    id,
    chip_id: chipId,
    unit_id: id,
    is_test: Type.Boolean(),
    counter: Type.Integer({ minimum: 0 }),
    skipped: Type.Integer({ minimum: 0 }),
    created_at: instant,
  },
  { additionalProperties: false },
)

export function presentTap({
  tap,
  chip,
  unit,
  redirect_url,
  session,
}: TapOutcome): Static<typeof tapResponse> {
  return {
    id: tap?.id ?? null,
    chip: presentChip(chip),
    unit: presentUnit(unit),
    redirect_url,
    session_token: session && presentIssuedSessionToken(session),
  }
}

export function presentTapRecord(tap: TapRow): Static<typeof tapRecord> {
  return {
    id: tap.id,
    chip_id: tap.chip_id,
    unit_id: tap.unit_id,
    is_test: tap.is_test,
    counter: tap.counter,
    skipped: tap.skipped,
    created_at: tap.created_at.toISOString(),
  }
}
