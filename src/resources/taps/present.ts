import type { TapRow } from "../../db/schema.ts"
import { presentChip } from "../chips/present.ts"
import { presentIssuedSessionToken } from "../session-tokens/present.ts"
import { presentUnit } from "../units/present.ts"
import type { DryRunTapResponse, TapRecord, TapResponse } from "./model.ts"
import type { TapOutcome } from "./service.ts"

/** Returns the response to a tap; `receipt` is null if none was requested. */
export function presentTap(
  outcome: TapOutcome,
  receipt: string | null = null,
): TapResponse | DryRunTapResponse {
  const { tap, chip, unit, redirect_url, session } = outcome
  const verified = { chip: presentChip(chip), unit: presentUnit(unit), redirect_url }
  if (!tap || !session) return { id: null, ...verified, session_token: null, receipt: null }
  return { id: tap.id, ...verified, session_token: presentIssuedSessionToken(session), receipt }
}

export function presentTapRecord(tap: TapRow): TapRecord {
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
