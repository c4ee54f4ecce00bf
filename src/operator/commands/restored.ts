import { counted } from "../../platform/counted.ts"
import { inAct } from "../verbs/acts.ts"
import { noteRestored } from "../verbs/restored.ts"
import type { Command } from "./command.ts"

export const restored: Command = {
  name: "restored",
  does: "after restoring a backup: sends nothing new until earlier transactions are final or impossible",
  takes: "",
  about: `Stop every process, restore the backup, run this, then start the processes. If they already run, it can still be run.
Once for each restored backup is enough: each run may use up 16 nonces of each lane with empty transactions, which cost gas.
The runbook at /docs/runbooks/restore-a-back-up says what to do afterwards.`,
  options: {},
  plan:
    () =>
    async ({ context }) => {
      const done = await inAct(context, { act: "restored", subject: "database" }, noteRestored)
      const text = `${counted(done.lane_ids.length, "lane sends", "lanes send")} nothing new until every nonce that may have been used since the backup is final on chain, if need be by an empty transaction: chain status shows them`
      return { document: done, text }
    },
}
