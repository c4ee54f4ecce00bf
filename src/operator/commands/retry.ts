import type { World } from "../../engine/world.ts"
import { chainOfQueue } from "../../platform/queues.ts"
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
    async ({ context, chains }) => {
      const { queues, ...retried } = await inAct(context, { act: "retry", subject: argument }, retryById)
      const done = `${retried.done}${lackOf(chains, queues)}`
      return { document: { ...retried, done }, text: done }
    },
}

/** Which chain must be configured again before anything happens. */
function lackOf(chains: World["chains"], queues: string[]): string {
  const lacking = queues.map(chainOfQueue).find((id) => id !== null && !chains.has(id))
  return lacking == null
    ? ""
    : `, but chain ${lacking} is not in CHAINS: its work waits until it is there again`
}
