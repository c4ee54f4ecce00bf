import { type Static, Type } from "@sinclair/typebox"
import { nullable, redirectUrl } from "../fields.ts"
import type { Settings } from "./service.ts"

export const updateSettingsBody = Type.Object(
  { default_redirect_url: nullable(redirectUrl) },
  { additionalProperties: false },
)
export type UpdateSettingsBody = Static<typeof updateSettingsBody>

export const settingsResource = Type.Object(
  {
    default_redirect_url: nullable(Type.String()),
    default_chain_id: nullable(Type.Integer()),
    allowed_chain_ids: Type.Array(Type.Integer()),
  },
  { additionalProperties: false },
)

/** What an entry looks like is checked by `canonicalCorsOrigins`. */
export const replaceCorsOriginsBody = Type.Object(
  { cors_origins: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 50 }) },
  { additionalProperties: false },
)
export type ReplaceCorsOriginsBody = Static<typeof replaceCorsOriginsBody>

export const corsOriginsResource = Type.Object(
  { cors_origins: Type.Array(Type.String()) },
  { additionalProperties: false },
)

export function presentSettings(settings: Settings): Static<typeof settingsResource> {
  return {
    default_redirect_url: settings.default_redirect_url,
    default_chain_id: settings.default_chain_id,
    allowed_chain_ids: settings.allowed_chain_ids,
  }
}
