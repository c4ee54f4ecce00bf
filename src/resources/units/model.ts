import { type Static, Type } from "@sinclair/typebox"
import { ownershipStatuses, tokenStatuses } from "../../db/statuses.ts"
import {
  address,
  attributes,
  chipId,
  collectionId,
  createdAt,
  described,
  description,
  externalId,
  id,
  imageUrl,
  instant,
  metadata,
  name,
  nullable,
  redirectUrl,
  shown,
  status,
} from "../../platform/fields.ts"
import { contract } from "../collections/model.ts"

const productId = described(
  id,
  "The product, which may have a redirect URL. Products are created by the operator of the service.",
)

const editable = {
  external_id: Type.Optional(nullable(externalId)),
  name: Type.Optional(nullable(name)),
  attributes: Type.Optional(nullable(attributes)),
  redirect_url: Type.Optional(nullable(redirectUrl)),
  product_id: Type.Optional(nullable(productId)),
  description: Type.Optional(nullable(description)),
  image_url: Type.Optional(nullable(imageUrl)),
  metadata: Type.Optional(nullable(metadata)),
}

export const createUnitBody = Type.Object(
  { collection_id: collectionId, ...editable },
  { title: "CreateUnit", additionalProperties: false },
)
export type CreateUnitBody = Static<typeof createUnitBody>

export const updateUnitBody = Type.Object(editable, {
  title: "UpdateUnit",
  additionalProperties: false,
  minProperties: 1,
})
export type UpdateUnitBody = Static<typeof updateUnitBody>

const token = Type.Object(
  {
    status: status(tokenStatuses, {
      pending: "not issued yet: pair a chip, or wait if one is paired.",
      active: "issued: the unit can be claimed.",
    }),
    serial: nullable(
      Type.Integer({
        description: "The number of the token in its collection, from 1; null until the token is active.",
      }),
    ),
  },
  { title: "Token", description: "The unit's token.", additionalProperties: false },
)

const membership = Type.Object(
  { id, name: shown(name), external_id: shown(externalId), contract, token },
  {
    title: "CollectionMembership",
    description: "The collection that the unit belongs to.",
    additionalProperties: false,
  },
)

const snapshot = {
  id,
  external_id: shown(externalId),
  name: shown(name),
  attributes: nullable(attributes),
  created_at: createdAt,
  redirect_url: shown(redirectUrl),
  collection: nullable(membership),
}

/** A unit inside a chip. */
export const unitSnapshot = Type.Object(snapshot, { title: "UnitSnapshot", additionalProperties: false })
export type UnitSnapshot = Static<typeof unitSnapshot>

const ownershipStatus = status(ownershipStatuses, {
  unissued: "it has no token yet.",
  custody: "issued and in the service's custody: it can be claimed.",
  owned: "a person owns it.",
})

const ownership = Type.Object(
  {
    status: ownershipStatus,
    owner: described(
      nullable(address),
      "The owner's address (checksummed), as confirmed by the chain; null unless `owned`.",
    ),
    updated_at: described(
      nullable(instant),
      "When the ownership last changed; null before the token is issued.",
    ),
  },
  {
    title: "Ownership",
    description:
      "Who owns the unit. It follows claims and transfers and, once the operator has released the contracts, transfers that holders make without the service.",
    additionalProperties: false,
  },
)

/** A unit in the unit operations and in a tap. */
export const unitResource = Type.Object(
  {
    ...snapshot,
    product_id: nullable(productId),
    chip_id: described(nullable(chipId), "The paired chip; null if none is paired."),
    description: shown(description),
    image_url: shown(imageUrl),
    metadata: nullable(metadata),
    ownership,
  },
  { title: "Unit", additionalProperties: false },
)
export type UnitResource = Static<typeof unitResource>

/** A unit in a list of units. */
export const unitListItem = Type.Object(
  { id, external_id: shown(externalId), name: shown(name), created_at: createdAt },
  { title: "ListedUnit", additionalProperties: false },
)
export type UnitListItem = Static<typeof unitListItem>
