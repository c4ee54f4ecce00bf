import { type Static, Type } from "@sinclair/typebox"
import { described, nullable, redirectUrl, shown } from "../../platform/fields.ts"

const defaultRedirectUrl = described(
  redirectUrl,
  "Where a tap is redirected if neither the unit nor its product or collection has a redirect URL.",
)

export const updateSettingsBody = Type.Object(
  { default_redirect_url: nullable(defaultRedirectUrl) },
  { title: "UpdateSettings", additionalProperties: false },
)
export type UpdateSettingsBody = Static<typeof updateSettingsBody>

export const settingsResource = Type.Object(
  {
    default_redirect_url: shown(defaultRedirectUrl),
    default_chain_id: nullable(
      Type.Integer({
        description: "The network of a collection that is created without `chain_id`. Read-only.",
      }),
    ),
    allowed_chain_ids: Type.Array(Type.Integer(), {
      description: "The networks that a collection may be created on. Read-only.",
    }),
  },
  { title: "Settings", additionalProperties: false },
)
export type SettingsResource = Static<typeof settingsResource>

export const mostOrigins = 50

const allowList = {
  description:
    "Origins: an exact one, `https://*.example.com` for every subdomain, or `http://localhost:*` for every port.",
}

/** `canonicalCorsOrigins` checks the form of the entries. */
export const replaceCorsOriginsBody = Type.Object(
  {
    cors_origins: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
      maxItems: mostOrigins,
      ...allowList,
    }),
  },
  { title: "ReplaceCorsOrigins", additionalProperties: false },
)
export type ReplaceCorsOriginsBody = Static<typeof replaceCorsOriginsBody>

export const corsOriginsResource = Type.Object(
  { cors_origins: Type.Array(Type.String(), allowList) },
  { title: "CorsOrigins", additionalProperties: false },
)
