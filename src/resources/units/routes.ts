import { Type } from "@sinclair/typebox"
import { ownershipStatuses, tokenStatuses } from "../../db/statuses.ts"
import { listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { chipId, collectionId, externalId, oneOf, pathId } from "../../platform/fields.ts"
import { createUnitBody, unitListItem, unitResource, updateUnitBody } from "./model.ts"
import { presentListedUnit, presentUnit } from "./present.ts"
import { createUnit, editableFields, getUnit, listUnits, updateUnit } from "./service.ts"

export const unitRoutes: Route[] = [
  writeRoute({
    operation: "createUnit",
    summary: "Create a unit",
    description: "Adds a unit to a collection. Its token is issued once a chip is paired to the unit.",
    method: "POST",
    path: "/v1/units",
    credentials: ["api_key"],
    idempotent: true,
    body: createUnitBody,
    checkBody: formThen(checkOf(createUnitBody), editableFields),
    status: 201,
    response: unitResource,
    errors: ["collection.not_found", "unit.already_exists", "quota.exceeded"],
    async write(turn, { caller, body }) {
      const unit = await createUnit(turn, caller, body)
      return { body: presentUnit(unit), location: `/v1/units/${unit.id}` }
    },
  }),
  listRoute({
    operation: "listUnits",
    summary: "List units",
    description:
      "The organization's units that match all given filters, newest first. The filters `external_id` and `chip_id` match at most one.",
    path: "/v1/units",
    credentials: ["api_key"],
    plural: "units",
    entries: "Units, newest first.",
    item: unitListItem,
    filters: {
      external_id: Type.Optional(externalId),
      collection_id: Type.Optional(collectionId),
      chip_id: Type.Optional(chipId),
      token_status: Type.Optional(oneOf(tokenStatuses, "Whether the token has been issued.")),
      ownership_status: Type.Optional(
        oneOf(ownershipStatuses, "Who has the token: nobody yet, the service, or a person."),
      ),
    },
    read: (context, caller, filters, page) => listUnits(context.db.read, caller, { ...filters, page }),
    present: presentListedUnit,
  }),
  readRoute({
    operation: "getUnit",
    summary: "Get a unit",
    description: "One unit with its collection, its token and its chip.",
    path: "/v1/units/{unit_id}",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key"],
    response: unitResource,
    errors: ["unit.not_found"],
    async read(context, caller, { params }) {
      return { body: presentUnit(await getUnit(context.db.read, caller, params.unit_id)) }
    },
  }),
  writeRoute({
    operation: "updateUnit",
    summary: "Change a unit",
    description: "Changes only the fields that are sent; null clears a field.",
    method: "PATCH",
    path: "/v1/units/{unit_id}",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key"],
    body: updateUnitBody,
    status: 200,
    response: unitResource,
    errors: ["unit.not_found", "unit.already_exists"],
    async write(turn, { caller, params, body }) {
      return { body: presentUnit(await updateUnit(turn, caller, params.unit_id, body)) }
    },
  }),
]
