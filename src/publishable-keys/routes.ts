import { inTurn } from "../context.ts"
import { listRoute } from "../http/list.ts"
import type { Route } from "../http/route.ts"
import * as examples from "../openapi/examples.ts"
import { presentPublishableKey, publishableKeyResource } from "./model.ts"
import { ensurePublishableKey, hasPublishableKey, listPublishableKeys } from "./service.ts"

export const publishableKeyRoutes: Route[] = [
  listRoute({
    operation: "listPublishableKeys",
    summary: "List publishable keys; the first call makes one",
    description:
      "Publishable keys are safe in browser code. When the organization has no active key, one is made.",
    path: "/v1/publishable-keys",
    credentials: ["api_key"],
    plural: "publishable_keys",
    item: publishableKeyResource,
    example: { response: examples.listedPublishableKeys },
    async read(context, caller, _filters, page) {
      if (!(await hasPublishableKey(context.db.read, caller)))
        await inTurn(context, null, (turn) => ensurePublishableKey(turn, caller))
      return await listPublishableKeys(context.db.read, caller, { page })
    },
    present: presentPublishableKey,
  }),
]
