import { Type } from "@sinclair/typebox"
import { listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { externalId, pathId } from "../../platform/fields.ts"
import { collectionResource, createCollectionBody, updateCollectionBody } from "./model.ts"
import { presentCollection } from "./present.ts"
import {
  createCollection,
  editableFields,
  getCollection,
  listCollections,
  updateCollection,
} from "./service.ts"

export const collectionRoutes: Route[] = [
  writeRoute({
    operation: "createCollection",
    summary: "Create a collection and deploy its contract",
    description:
      "The contract's address is known at once and never changes. Poll the collection until `contract.status` is `active` before you pair chips to its units.",
    method: "POST",
    path: "/v1/collections",
    credentials: ["api_key"],
    idempotent: true,
    body: createCollectionBody,
    checkBody: formThen(checkOf(createCollectionBody), editableFields),
    status: 201,
    response: collectionResource,
    errors: ["collection.already_exists", "quota.exceeded"],
    async write(turn, { context, caller, body }) {
      const collection = await createCollection(turn, context.chains, caller, body)
      return { body: presentCollection(collection), location: `/v1/collections/${collection.id}` }
    },
  }),
  listRoute({
    operation: "listCollections",
    summary: "List collections",
    description:
      "The organization's collections, newest first. The filter `external_id` matches at most one.",
    path: "/v1/collections",
    credentials: ["api_key"],
    plural: "collections",
    entries: "Collections, newest first.",
    item: collectionResource,
    filters: { external_id: Type.Optional(externalId) },
    read: (context, caller, filters, page) => listCollections(context.db.read, caller, { ...filters, page }),
    present: presentCollection,
  }),
  readRoute({
    operation: "getCollection",
    summary: "Get a collection",
    description: "One collection with the status of its contract.",
    path: "/v1/collections/{collection_id}",
    params: { collection_id: pathId("The collection's id.") },
    credentials: ["api_key"],
    response: collectionResource,
    errors: ["collection.not_found"],
    async read(context, caller, { params }) {
      return { body: presentCollection(await getCollection(context.db.read, caller, params.collection_id)) }
    },
  }),
  writeRoute({
    operation: "updateCollection",
    summary: "Change a collection",
    description:
      "`redirect_url` is required; it applies to units of the collection for which neither the unit nor its product has one. The other fields are changed only if they are sent; null clears a field.",
    method: "PATCH",
    path: "/v1/collections/{collection_id}",
    params: { collection_id: pathId("The collection's id.") },
    credentials: ["api_key"],
    body: updateCollectionBody,
    status: 200,
    response: collectionResource,
    errors: ["collection.not_found"],
    async write(turn, { caller, params, body }) {
      return { body: presentCollection(await updateCollection(turn, caller, params.collection_id, body)) }
    },
  }),
]
