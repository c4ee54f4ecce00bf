import { findStuck } from "../verbs/stuck.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const stuck: Command = {
  name: "stuck",
  does: "lists all work that is stuck, and why",
  takes: "",
  options: {},
  plan:
    () =>
    async ({ context }) => {
      const found = await findStuck(context.db.read, context.clock())
      return {
        document: { stuck: found },
        text: table(found, {
          ID: "id",
          MACHINE: "machine",
          STATE: "state",
          SINCE: "since",
          REASON: "reason",
        }),
      }
    },
}
