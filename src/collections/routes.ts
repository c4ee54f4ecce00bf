import { Type } from "@sinclair/typebox"
import { externalId } from "../fields.ts"
import { listRoute } from "../http/list.ts"
import { type Route, readRoute, writeRoute } from "../http/route.ts"
import { collectionResource, createCollectionBody, presentCollection, updateCollectionBody } from "./model.ts"
import { createCollection, getCollection, listCollections, updateCollection } from "./service.ts"

export const collectionRoutes: Route[] = [
  writeRoute({
    operation: "createCollection",
    summary: "Register a collection and deploy its contract",
    method: "POST",
    path: "/v1/collections",
    credentials: ["api_key"],
    idempotent: true,
    body: createCollectionBody,
    status: 201,
    response: collectionResource,
    errors: ["collection.already_exists", "quota.exceeded"],
    async write(turn, context, caller, { body }) {
      const collection = await createCollection(turn, context.chains, caller, body)
      return { body: presentCollection(collection), location: `/v1/collections/${collection.id}` }
    },
  }),
  listRoute({
    operation: "listCollections",
    summary: "List collections",
    path: "/v1/collections",
    credentials: ["api_key"],
    plural: "collections",
    item: collectionResource,
    filters: { external_id: Type.Optional(externalId) },
    read: (context, caller, filters, page) => listCollections(context.db.read, caller, { ...filters, page }),
    present: presentCollection,
  }),
  readRoute({
    operation: "getCollection",
    summary: "Get a collection",
    path: "/v1/collections/{collection_id}",
    credentials: ["api_key"],
    response: collectionResource,
    errors: ["collection.not_found"],
    async read(context, caller, { params }) {
      return { body: presentCollection(await getCollection(context.db.read, caller, params.collection_id)) }
    },
  }),
  writeRoute({
    operation: "updateCollection",
    summary: "Change a collection's redirect",
    method: "PATCH",
    path: "/v1/collections/{collection_id}",
    credentials: ["api_key"],
    body: updateCollectionBody,
    status: 200,
    response: collectionResource,
    errors: ["collection.not_found"],
    async write(turn, _context, caller, { params, body }) {
      return { body: presentCollection(await updateCollection(turn, caller, params.collection_id, body)) }
    },
  }),
]
