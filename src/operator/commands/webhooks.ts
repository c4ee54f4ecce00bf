import { parseId } from "../../platform/ids.ts"
import { statusWords, webhookStates } from "../stories/webhook-states.ts"
import { type Command, UsageError } from "./command.ts"
import { table } from "./text.ts"

export const webhooks: Command = {
  name: "webhooks",
  does: "each webhook endpoint and what waits for it",
  takes: "[--organization ID]",
  options: { organization: false },
  plan(values) {
    const text = values.option("organization")
    const organizationId = text === null ? null : parseId(text)
    if (text !== null && organizationId === null) throw new UsageError("--organization takes an id")
    return async ({ context }) => {
      const states = await webhookStates(context.db.read, organizationId)
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
