import { inTurn } from "../../platform/context.ts"
import { adoptSecret } from "../../platform/service-secrets.ts"
import { rewrapAll } from "../verbs/rewrap.ts"
import type { Command } from "./command.ts"

export const secretCommands: Command[] = [
  {
    name: "secrets rewrap",
    does: "seals everything anew after a rotation of SERVICE_SECRET",
    takes: "",
    about: `To rotate SERVICE_SECRET: give all processes the new one as SERVICE_SECRET_PREVIOUS, then exchange the two, then run
this, then take SERVICE_SECRET_PREVIOUS away. Chip keys, masters of key sets, kept answers, webhook secrets and the key
of receipts are sealed anew while the service runs. Cut short, run it again: it goes on where it stopped.`,
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const done = await rewrapAll(context, showProgress)
        const rows = Object.values(done)
        const rewrapped = rows.reduce((sum, each) => sum + each.rewrapped, 0)
        const before = rows.reduce((sum, each) => sum + each.sealed_before, 0)
        const lost = done.chip_keys.unreadable
        const lines = [`${rewrapped} are sealed anew, ${before} were so before: SERVICE_SECRET is enough now`]
        if (lost.length > 0)
          lines.push(
            `the keys of ${lost.length} chips open under neither secret, import these chips again: ${lost.slice(0, 20).join(", ")}`,
          )
        if (done.receipt_keys.unreadable.length > 0)
          lines.push("the key of receipts opens under neither secret: run receipt-keys rotate")
        return { document: done, text: lines.join("\n") }
      },
  },
  {
    name: "secrets adopt",
    does: "gives up a lost SERVICE_SECRET and what it sealed",
    takes: "",
    about: `Only when an earlier SERVICE_SECRET is lost for good: a start asks for the present one alone from now on. What the
lost one sealed never opens again: import the chips again, which replaces keys that do not open, and run
receipt-keys rotate.`,
    options: {},
    needs: "unchecked world",
    plan:
      () =>
      async ({ context }) => {
        await inTurn(context, null, (turn) => adoptSecret(turn, context.config.service_secret))
        const text =
          "SERVICE_SECRET is adopted: import the chips again whose keys the lost one sealed, and run receipt-keys rotate"
        return { document: { adopted: true }, text }
      },
  },
]

/** On a terminal only: one line that is written over. */
function showProgress(kind: string, done: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${kind.replaceAll("_", " ")}: ${done}`)
}
