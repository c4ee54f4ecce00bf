import { jsonb, pgTable, text } from "drizzle-orm/pg-core"
import { absent, count, instant } from "./columns.ts"

/** The keys that sign tap receipts, in order of creation; the last one signs. */
export const receiptKeys = pgTable("receipt_keys", {
  number: count().primaryKey(),
  kid: text().notNull(),
  public_jwk: jsonb().$type<PublicReceiptJwk>().notNull(),
  /** Null once a newer key signs: this one never signs again. */
  sealed_key: text().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type ReceiptKeyRow = typeof receiptKeys.$inferSelect

/** The public part of a key (RFC 7517, RFC 7518 §6.2.1). */
export type PublicReceiptJwk = {
  kty: "EC"
  crv: "P-256"
  x: string
  y: string
  kid: string
  alg: "ES256"
  use: "sig"
}
