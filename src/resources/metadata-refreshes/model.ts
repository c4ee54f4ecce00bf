import { type Static, Type } from "@sinclair/typebox"
import { metadataRefreshStatuses } from "../../db/statuses.ts"
import {
  collectionId,
  createdAt,
  failure,
  id,
  status,
  transactionHash,
  updatedAt,
} from "../../platform/fields.ts"

export const createMetadataRefreshBody = Type.Object(
  {},
  { title: "CreateMetadataRefresh", additionalProperties: false },
)

export const metadataRefreshResource = Type.Object(
  {
    id,
    collection_id: collectionId,
    status: status(metadataRefreshStatuses, {
      prepared: "waiting to be sent to the chain.",
      submitted: "sent to the chain.",
      confirmed: "announced on chain; final.",
      failed: "not announced; `failure` says why; final.",
    }),
    transaction_hash: transactionHash,
    failure,
    created_at: createdAt,
    updated_at: updatedAt,
  },
  { title: "MetadataRefresh", additionalProperties: false },
)
export type MetadataRefreshResource = Static<typeof metadataRefreshResource>
