import { requireOrganization } from "../../resources/organizations/service.ts"
import { statusWords, webhookStates } from "../stories/webhook-states.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const webhooks: Command = {
  name: "webhooks",
  does: "lists webhook endpoints and what waits for each",
  takes: "[--organization ID]",
  options: { organization: false },
  plan(values) {
    const named = values.option("organization")
    return async ({ context }) => {
      const organization = named === null ? null : await requireOrganization(context.db.read, named)
      const states = await webhookStates(context.db.read, organization?.id ?? null)
      return {
        document: { webhook_endpoints: states },
        text: table(
          ["ID", "ORGANIZATION", "STATUS", "WAITING", "SINCE", "LAST REFUSAL", "URL"],
          states.map((each) => [
            each.id,
            each.organization_id,
            statusWords(each),
            each.waiting,
            each.waiting_since,
            each.last_refusals[0]?.error,
            each.url,
          ]),
        ),
      }
    }
  },
}
