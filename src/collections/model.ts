import { type Static, Type } from "@sinclair/typebox"
import { externalId, id, instant, name, nullable, redirectUrl, text } from "../fields.ts"
import type { CollectionRow } from "./service.ts"

export const createCollectionBody = Type.Object(
  {
    name,
    symbol: Type.Optional(text(4)),
    external_id: Type.Optional(externalId),
    chain_id: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    redirect_url: Type.Optional(nullable(redirectUrl)),
  },
  { additionalProperties: false },
)
export type CreateCollectionBody = Static<typeof createCollectionBody>

export const updateCollectionBody = Type.Object(
  { redirect_url: nullable(redirectUrl) },
  { additionalProperties: false },
)
export type UpdateCollectionBody = Static<typeof updateCollectionBody>

export const contract = Type.Object(
  {
    address: Type.String({ pattern: "^0x[0-9a-fA-F]{40}$" }),
    chain_id: Type.Integer({ minimum: 1 }),
    status: Type.Union([Type.Literal("deploying"), Type.Literal("active"), Type.Literal("failed")]),
  },
  { additionalProperties: false },
)

export const collectionResource = Type.Object(
  {
    id,
    contract,
    name: nullable(Type.String()),
    external_id: nullable(Type.String()),
    redirect_url: nullable(Type.String()),
    symbol: Type.String(),
    created_at: instant,
  },
  { additionalProperties: false },
)
export type CollectionResource = Static<typeof collectionResource>

export function presentCollection(collection: CollectionRow): CollectionResource {
  return {
    id: collection.id,
    contract: presentContract(collection),
    name: collection.name,
    external_id: collection.external_id,
    redirect_url: collection.redirect_url,
    symbol: collection.symbol,
    created_at: collection.created_at.toISOString(),
  }
}

export function presentContract(collection: CollectionRow): Static<typeof contract> {
  return { address: collection.address, chain_id: collection.chain_id, status: collection.status }
}
