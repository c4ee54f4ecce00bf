import { inAct } from "../verbs/acts.ts"
import { noteRestored } from "../verbs/restored.ts"
import type { Command } from "./command.ts"

export const restored: Command = {
  name: "restored",
  does: "after restoring a back-up: sends nothing new until forgotten transactions are done or impossible",
  takes: "",
  options: {},
  plan:
    () =>
    async ({ context }) => {
      const done = await inAct(context, { act: "restored", subject: "database" }, noteRestored)
      const text = `${done.lane_ids.length} lanes send nothing new before all that they may have sent since the back-up is mined, or used up by nothing, and final: chain status shows them`
      return { document: done, text }
    },
}
