import { type Static, Type } from "@sinclair/typebox"
import { id, instant } from "../fields.ts"
import type { PublishableKeyRow } from "./service.ts"

export const publishableKeyResource = Type.Object(
  {
    id,
    key: Type.String({ pattern: "^end_pk_live_[0-9A-Za-z]+$" }),
    mode: Type.Union([Type.Literal("live"), Type.Literal("sandbox")]),
    name: Type.String(),
    created_at: instant,
  },
  { additionalProperties: false },
)

export function presentPublishableKey(row: PublishableKeyRow): Static<typeof publishableKeyResource> {
  return {
    id: row.id,
    key: row.key,
    mode: row.mode,
    name: row.name,
    created_at: row.created_at.toISOString(),
  }
}
