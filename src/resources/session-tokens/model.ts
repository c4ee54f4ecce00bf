import { type Static, Type } from "@sinclair/typebox"
import { chipId, described, expiresAt, id, unitId } from "../../platform/fields.ts"

const shown = {
  expires_at: expiresAt,
  scope: Type.Object(
    { chip_id: chipId, unit_id: unitId, organization_id: described(id, "The organization's id.") },
    { description: "What the session is bound to.", additionalProperties: false },
  ),
}

/** A session token when it is issued. */
export const issuedSessionToken = Type.Object(
  {
    token: Type.String({
      description: "The token, shown only once. Send it as `Authorization: Bearer <token>`.",
    }),
    ...shown,
  },
  { title: "IssuedSessionToken", additionalProperties: false },
)
export type IssuedSessionTokenResource = Static<typeof issuedSessionToken>

/** The session token that authenticates the request. */
export const currentSessionToken = Type.Object(shown, {
  title: "CurrentSessionToken",
  additionalProperties: false,
})
export type CurrentSessionToken = Static<typeof currentSessionToken>
