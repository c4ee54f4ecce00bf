import { jsonb, pgTable, text } from "drizzle-orm/pg-core"
import { absent, count, instant } from "./columns.ts"

/** The keys that sign tap receipts, in the order in which they were made: the last one signs. */
export const receiptKeys = pgTable("receipt_keys", {
  number: count().primaryKey(),
  kid: text().notNull(),
  public_jwk: jsonb().$type<PublicReceiptJwk>().notNull(),
  /** Null once another key signs: with this one nothing is ever signed again. */
  sealed_key: text().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type ReceiptKeyRow = typeof receiptKeys.$inferSelect

/** What anybody may know of a key (RFC 7517, RFC 7518 §6.2.1). */
export type PublicReceiptJwk = {
  kty: "EC"
  crv: "P-256"
  x: string
  y: string
  kid: string
  alg: "ES256"
  use: "sig"
}
