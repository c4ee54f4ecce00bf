import { randomBytes } from "node:crypto"
import type { TapRow } from "../../db/schema.ts"
import { chipDigest, type ReceiptKey, signReceipt } from "../../engine/receipts/receipt.ts"
import type { UnitView } from "../units/service.ts"

const SALT_BYTES = 16

/** Signs the receipt of a recorded tap with `key` on behalf of `issuer`. It names neither owner nor customer. */
export function receiptOf(
  key: ReceiptKey,
  issuer: string,
  { tap, unit }: { tap: TapRow; unit: UnitView },
): string {
  const salt = randomBytes(SALT_BYTES).toString("base64url")
  const { collection, serial } = unit
  const isIssued = collection !== null && serial !== null
  return signReceipt(key, {
    iss: issuer,
    jti: tap.id,
    iat: Math.floor(tap.created_at.getTime() / 1_000),
    chain_id: isIssued ? collection.chain_id : null,
    contract: isIssued ? collection.address : null,
    serial,
    counter: tap.counter,
    is_test: tap.is_test,
    chip_salt: salt,
    chip_digest: chipDigest(salt, tap.chip_id),
  })
}
