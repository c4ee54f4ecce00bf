import { listRoute } from "../../http/list.ts"
import type { Route } from "../../http/route.ts"
import { inTurn } from "../../platform/context.ts"
import { publishableKeyResource } from "./model.ts"
import { presentPublishableKey } from "./present.ts"
import { ensurePublishableKey, hasPublishableKey, listPublishableKeys } from "./service.ts"

export const publishableKeyRoutes: Route[] = [
  listRoute({
    operation: "listPublishableKeys",
    summary: "List publishable keys",
    description:
      "The organization's active publishable keys, newest first. They are safe in browser code. If the organization has none, one is created.",
    path: "/v1/publishable-keys",
    credentials: ["api_key"],
    plural: "publishable_keys",
    entries: "Publishable keys, newest first.",
    item: publishableKeyResource,
    async ensure(context, caller, requestId) {
      if (!(await hasPublishableKey(context.db.read, caller, context.clock())))
        await inTurn(context, requestId, (turn) => ensurePublishableKey(turn, caller))
    },
    read: (context, caller, _filters, page) =>
      listPublishableKeys(context.db.read, caller, { page, at: context.clock() }),
    present: presentPublishableKey,
  }),
]
