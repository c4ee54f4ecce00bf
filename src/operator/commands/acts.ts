import { actsOn } from "../stories/acts.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const acts: Command = {
  name: "acts",
  takes: "[--subject ID]",
  about:
    "Who did what, by this CLI and on the console, the newest first: retry, cancel, suspend, resume, revoke, rotate.",
  options: { subject: false },
  plan:
    (values) =>
    async ({ context }) => {
      const subject = values.option("subject")
      const rows = await actsOn(context.db.read, subject === null ? null : [subject])
      const shown = rows.map(({ at, ...row }) => ({ at: at.toISOString(), ...row }))
      return {
        document: { acts: shown },
        text: table(
          ["AT", "WHO", "DID", "TO"],
          shown.map(({ at, actor, act, subject }) => [at, actor, act, subject]),
        ),
      }
    },
}
