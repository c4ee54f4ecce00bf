import { type Static, Type } from "@sinclair/typebox"
import { chipId, id, instant } from "../fields.ts"
import type { IssuedSessionToken, SessionTokenRow } from "./service.ts"

const scope = Type.Object(
  { chip_id: chipId, unit_id: id, organization_id: id },
  { additionalProperties: false },
)

/** A session token at its issuance. */
export const issuedSessionToken = Type.Object(
  { token: Type.String(), expires_at: instant, scope },
  { additionalProperties: false },
)

/** The session token that is presented with the request. */
export const currentSessionToken = Type.Object(
  { expires_at: instant, scope },
  { additionalProperties: false },
)

export function presentIssuedSessionToken(issued: IssuedSessionToken): Static<typeof issuedSessionToken> {
  return { token: issued.token, ...presentCurrentSessionToken(issued.session) }
}

export function presentCurrentSessionToken(session: ShownSession): Static<typeof currentSessionToken> {
  return {
    expires_at: session.expires_at.toISOString(),
    scope: {
      chip_id: session.chip_id,
      unit_id: session.unit_id,
      organization_id: session.organization_id,
    },
  }
}

type ShownSession = Pick<SessionTokenRow, "expires_at" | "chip_id" | "unit_id" | "organization_id">
