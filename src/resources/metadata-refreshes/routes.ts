import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { pathId } from "../../platform/fields.ts"
import { createMetadataRefreshBody, metadataRefreshResource } from "./model.ts"
import { presentMetadataRefresh } from "./present.ts"
import { createMetadataRefresh, getMetadataRefresh, prepareMetadataRefresh } from "./service.ts"

export const metadataRefreshRoutes: Route[] = [
  writeRoute({
    operation: "createMetadataRefresh",
    summary: "Announce that metadata has changed",
    description:
      "Has the collection's contract emit `BatchMetadataUpdate` (ERC-4906) for all its tokens and `ContractURIUpdated` (ERC-7572), so that marketplaces read the metadata again. At most once a minute per collection. Poll the refresh until it is `confirmed` or `failed`.",
    method: "POST",
    path: "/v1/collections/{collection_id}/metadata-refreshes",
    params: { collection_id: pathId("The collection's id.") },
    credentials: ["api_key"],
    idempotent: true,
    body: createMetadataRefreshBody,
    status: 201,
    response: metadataRefreshResource,
    errors: ["collection.not_found", "collection.not_active", "metadata_refresh.unsupported"],
    prepare: (context, caller, { params }) => prepareMetadataRefresh(context, caller, params.collection_id),
    async write(turn, { caller, params }) {
      const refresh = await createMetadataRefresh(turn, caller, params.collection_id)
      const location = `/v1/collections/${refresh.collection_id}/metadata-refreshes/${refresh.id}`
      return { body: presentMetadataRefresh(refresh), location }
    },
  }),
  readRoute({
    operation: "getMetadataRefresh",
    summary: "Get a metadata refresh",
    description: "One metadata refresh. `confirmed` means that the chain has confirmed the announcement.",
    path: "/v1/collections/{collection_id}/metadata-refreshes/{refresh_id}",
    params: { collection_id: pathId("The collection's id."), refresh_id: pathId("The refresh's id.") },
    credentials: ["api_key"],
    response: metadataRefreshResource,
    errors: ["collection.not_found", "metadata_refresh.not_found"],
    async read(context, caller, { params }) {
      return { body: presentMetadataRefresh(await getMetadataRefresh(context.db.read, caller, params)) }
    },
  }),
]
