import type { ReceiptKeyRow } from "../../db/receipt-key-schema.ts"
import { listReceiptKeys, rotateReceiptKey } from "../../resources/receipts/keys.ts"
import { inAct } from "../verbs/acts.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const receiptKeyCommands: Command[] = [
  {
    name: "receipt-keys list",
    does: "lists the keys of tap receipts, newest first",
    takes: "",
    about: "The first key is created with the first receipt.",
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const receipt_keys = (await listReceiptKeys(context.db.read)).map(presentReceiptKey)
        return {
          document: { receipt_keys },
          text: table(receipt_keys, { KID: "kid", STATUS: "status", CREATED: "created_at" }),
        }
      },
  },
  {
    name: "receipt-keys rotate",
    does: "rotates the key of tap receipts",
    takes: "",
    about: `Creates a new key, which signs receipts from now on. The previous private key is deleted; its public key stays at
/.well-known/jwks.json, so receipts that it signed stay valid. No restart is needed.`,
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const { db, config } = context
        const [current] = await listReceiptKeys(db.read)
        const act = { act: "rotate receipt key", subject: "receipts" }
        const { key, is_mine } = await inAct(context, act, (turn) =>
          rotateReceiptKey(turn, config.service_secret, current),
        )
        const whose = is_mine ? "" : "; somebody else created it at the same time"
        return { document: presentReceiptKey(key), text: `receipts are now signed by ${key.kid}${whose}` }
      },
  },
]

function presentReceiptKey({ number, kid, sealed_key, created_at }: ReceiptKeyRow) {
  const status = sealed_key === null ? "verifies" : "signs"
  return { id: kid, kid, number, status, created_at: created_at.toISOString() }
}
