import { inTurn } from "../../platform/context.ts"
import { adoptSecret } from "../../platform/service-secrets.ts"
import { rewrapAll } from "../verbs/rewrap.ts"
import type { Command } from "./command.ts"

export const secretCommands: Command[] = [
  {
    name: "secrets rewrap",
    does: "reseals everything after a rotation of SERVICE_SECRET",
    takes: "",
    about: `To rotate SERVICE_SECRET: give all processes the new one as SERVICE_SECRET_PREVIOUS, then swap the two, then run
this, then remove SERVICE_SECRET_PREVIOUS. Chip keys, masters of key sets, kept answers, webhook secrets and the key of
receipts are resealed while the service runs. If it is interrupted, run it again: it continues where it stopped.`,
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const done = await rewrapAll(context, showProgress)
        const rows = Object.values(done)
        const rewrapped = rows.reduce((sum, each) => sum + each.rewrapped, 0)
        const before = rows.reduce((sum, each) => sum + each.sealed_before, 0)
        const lines = [`${rewrapped} are sealed anew, ${before} were so before: SERVICE_SECRET is enough now`]
        for (const [kind, lost] of Object.entries(lostThings) as [SealedKindName, LostThing][])
          if (done[kind].unreadable.length > 0) lines.push(adviceOn(lost, done[kind].unreadable))
        return { document: done, text: lines.join("\n") }
      },
  },
  {
    name: "secrets adopt",
    does: "gives up a lost SERVICE_SECRET and what it sealed",
    takes: "",
    about: `Only if an earlier SERVICE_SECRET is lost for good: from now on a start needs only the present one. Chip keys,
masters of key sets, kept answers, webhook secrets and the key of receipts that the lost one sealed can never be opened
again. Then run secrets rewrap, which names them, and what to do about each.`,
    options: {},
    needs: "unchecked world",
    plan:
      () =>
      async ({ context }) => {
        await inTurn(context, null, (turn) => adoptSecret(turn, context.config.service_secret))
        const text =
          "SERVICE_SECRET is adopted: run secrets rewrap, which names the chips, key sets, webhook endpoints and receipt key whose secrets are lost, and what to do about each"
        return { document: { adopted: true }, text }
      },
  },
]

type SealedKindName = keyof Awaited<ReturnType<typeof rewrapAll>>

/** What no longer opens, and what to do about it. */
type LostThing = { name: string; advice: string }

const lostThings: Record<SealedKindName, LostThing> = {
  chip_keys: { name: "keys of chips", advice: "import these chips again" },
  key_set_masters: {
    name: "masters of key sets",
    advice: "run key-sets rotate for new tags; those that are out there cannot be verified any more",
  },
  kept_answers: {
    name: "kept answers",
    advice: "their requests are answered 500 when they are sent again, for a day",
  },
  webhook_secrets: {
    name: "webhook endpoints' secrets",
    advice: "have the organizations give these endpoints new ones (createWebhookSecret)",
  },
  receipt_keys: { name: "keys of receipts", advice: "run receipt-keys rotate" },
}

function adviceOn({ name, advice }: LostThing, places: string[]): string {
  return `${places.length} ${name} open under neither secret: ${advice} (${places.slice(0, 20).join(", ")})`
}

/** On a terminal only: one line that is overwritten. */
function showProgress(kind: string, done: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${kind.replaceAll("_", " ")}: ${done}`)
}
