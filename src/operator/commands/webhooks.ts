import { requireOrganization } from "../../resources/organizations/service.ts"
import { statusWords, webhookStates } from "../stories/webhook-states.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const webhooks: Command = {
  name: "webhooks",
  does: "lists webhook endpoints and what waits for each, at most the 200 that wait longest",
  takes: "[--organization ID]",
  options: { organization: false },
  plan(values) {
    const named = values.option("organization")
    return async ({ context }) => {
      const organization = named === null ? null : await requireOrganization(context.db.read, named)
      const states = await webhookStates(context.db.read, organization?.id ?? null)
      return {
        document: { webhook_endpoints: states },
        text: table(states, {
          ID: "id",
          ORGANIZATION: "organization_id",
          STATUS: statusWords,
          WAITING: "waiting",
          SINCE: "waiting_since",
          "LAST REFUSAL": ({ last_refusals }) => last_refusals[0]?.error,
          URL: "url",
        }),
      }
    }
  },
}
