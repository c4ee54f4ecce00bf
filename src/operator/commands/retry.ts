import { inAct } from "../verbs/acts.ts"
import { retryById } from "../verbs/retry.ts"
import type { Command } from "./command.ts"

export const retry: Command = {
  name: "retry",
  does: "retries what failed, or reopens a halted lane",
  takes: "ID  (of a unit, a collection, a claim, a transfer, a chip replacement, an effect or a lane)",
  argument: "ID",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context }) => {
      const retried = await inAct(context, { act: "retry", subject: argument }, retryById)
      return { document: retried, text: retried.done }
    },
}
