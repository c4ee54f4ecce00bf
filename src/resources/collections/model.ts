import { type Static, Type } from "@sinclair/typebox"
import { collectionStatuses } from "../../db/statuses.ts"
import {
  address,
  chainId,
  createdAt,
  described,
  description,
  externalId,
  failure,
  id,
  imageUrl,
  name,
  nullable,
  redirectUrl,
  shown,
  status,
  text,
} from "../../platform/fields.ts"

const shownInPublic = {
  description: Type.Optional(nullable(description)),
  image_url: Type.Optional(nullable(imageUrl)),
}

export const createCollectionBody = Type.Object(
  {
    name,
    symbol: Type.Optional(text(4, "The token symbol, 1 to 4 characters; derived from the name if absent.")),
    external_id: Type.Optional(externalId),
    chain_id: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "The network, one of `allowed_chain_ids`; the organization's default network if absent.",
      }),
    ),
    redirect_url: Type.Optional(nullable(redirectUrl)),
    ...shownInPublic,
  },
  { title: "CreateCollection", additionalProperties: false },
)
export type CreateCollectionBody = Static<typeof createCollectionBody>

export const updateCollectionBody = Type.Object(
  { redirect_url: nullable(redirectUrl), ...shownInPublic },
  { title: "UpdateCollection", additionalProperties: false },
)
export type UpdateCollectionBody = Static<typeof updateCollectionBody>

export const contract = Type.Object(
  {
    address: described(
      address,
      "The contract's address, checksummed. It is known at once and never changes.",
    ),
    chain_id: chainId,
    status: status(collectionStatuses, {
      deploying: "being deployed, which takes seconds to minutes.",
      active: "deployed: chips can be paired to the collection's units.",
      failed: "it could not be deployed; the operator can retry it.",
    }),
  },
  {
    title: "Contract",
    description: "The collection's contract on its chain.",
    additionalProperties: false,
  },
)
export type Contract = Static<typeof contract>

export const collectionResource = Type.Object(
  {
    id,
    contract,
    name: shown(name),
    external_id: shown(externalId),
    redirect_url: shown(redirectUrl),
    symbol: Type.String({ description: "The token symbol." }),
    description: shown(description),
    image_url: shown(imageUrl),
    failure: described(failure, "Why the contract could not be deployed, or null."),
    created_at: createdAt,
  },
  { title: "Collection", additionalProperties: false },
)
export type CollectionResource = Static<typeof collectionResource>
