import { actsOn } from "../stories/acts.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const acts: Command = {
  name: "acts",
  does: "lists who retried, cancelled, suspended, resumed, revoked or rotated what, the last 200 acts, newest first",
  takes: "[--subject ID]",
  options: { subject: false },
  plan:
    (values) =>
    async ({ context }) => {
      const subject = values.option("subject")
      const rows = await actsOn(context.db.read, subject === null ? null : [subject])
      const shown = rows.map(({ at, ...row }) => ({ at: at.toISOString(), ...row }))
      return {
        document: { acts: shown },
        text: table(shown, { AT: "at", WHO: "actor", DID: "act", TO: "subject" }),
      }
    },
}
