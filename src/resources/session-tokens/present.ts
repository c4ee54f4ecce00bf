import type { SessionTokenRow } from "../../db/schema.ts"
import type { CurrentSessionToken, IssuedSessionTokenResource } from "./model.ts"
import type { IssuedSessionToken } from "./service.ts"

export function presentIssuedSessionToken(issued: IssuedSessionToken): IssuedSessionTokenResource {
  return { token: issued.token, ...presentCurrentSessionToken(issued.session) }
}

export function presentCurrentSessionToken(session: ShownSession): CurrentSessionToken {
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
