import { inTurn } from "../../platform/context.ts"
import { adoptSecret } from "../../platform/service-secrets.ts"
import { rewrapAll } from "../verbs/rewrap.ts"
import type { Command } from "./command.ts"
import { showCount } from "./progress.ts"

export const secretCommands: Command[] = [
  {
    name: "secrets rewrap",
    does: "encrypts everything again after a rotation of SERVICE_SECRET",
    takes: "",
    about: `To rotate SERVICE_SECRET: give all processes the new one as SERVICE_SECRET_PREVIOUS, then swap the two, then run
this, then remove SERVICE_SECRET_PREVIOUS. Chip keys, master keys, kept responses, webhook secrets and the key of tap
receipts are encrypted with the new secret while the service runs. If it is interrupted, run it again: it continues where it
stopped.`,
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const done = await rewrapAll(context, showCount)
        const rows = Object.values(done)
        const rewrapped = rows.reduce((sum, each) => sum + each.rewrapped, 0)
        const before = rows.reduce((sum, each) => sum + each.sealed_before, 0)
        const lines = [
          `${rewrapped} were encrypted again, ${before} already had the new secret: SERVICE_SECRET is enough now`,
        ]
        for (const [kind, lost] of Object.entries(lostThings) as [SealedKindName, LostThing][])
          if (done[kind].unreadable.length > 0) lines.push(adviceOn(lost, done[kind].unreadable))
        return { document: done, text: lines.join("\n") }
      },
  },
  {
    name: "secrets adopt",
    does: "gives up a lost SERVICE_SECRET and what it encrypted",
    takes: "",
    about: `Only if an earlier SERVICE_SECRET is lost for good: from now on the service starts with only the present one. Chip keys,
master keys, kept responses, webhook secrets and the key of tap receipts that were encrypted with the lost one can never be
decrypted again. Then run secrets rewrap, which lists them and says what to do about each.`,
    options: {},
    needs: "unchecked world",
    plan:
      () =>
      async ({ context }) => {
        await inTurn(context, null, (turn) => adoptSecret(turn, context.config.service_secret))
        const text =
          "SERVICE_SECRET is adopted: run secrets rewrap, which lists the chips, key sets, webhook endpoints and receipt key whose secrets are lost, and says what to do about each"
        return { document: { adopted: true }, text }
      },
  },
]

type SealedKindName = keyof Awaited<ReturnType<typeof rewrapAll>>

/** What no longer opens, and what to do about it. */
type LostThing = { name: string; advice: string }

const lostThings: Record<SealedKindName, LostThing> = {
  chip_keys: {
    name: "keys of chips",
    advice: "import these chips again; test chips cannot be imported, so use new ones",
  },
  key_set_masters: {
    name: "master keys of key sets",
    advice: "run key-sets rotate for new tags; tags with the lost keys can no longer be verified",
  },
  kept_answers: {
    name: "kept responses",
    advice: "for a day, a retry of their requests with the same Idempotency-Key gets 500",
  },
  webhook_secrets: {
    name: "secrets of webhook endpoints",
    advice: "have the organizations create new ones with POST /v1/webhook-endpoints/{id}/secrets",
  },
  receipt_keys: { name: "keys of receipts", advice: "run receipt-keys rotate" },
}

function adviceOn({ name, advice }: LostThing, places: string[]): string {
  return `${places.length} ${name} can be decrypted with neither secret: ${advice} (${places.slice(0, 20).join(", ")})`
}
