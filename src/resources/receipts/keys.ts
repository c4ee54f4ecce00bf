import { desc, lt } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { query } from "../../db/query.ts"
import { type PublicReceiptJwk, type ReceiptKeyRow, receiptKeys } from "../../db/receipt-key-schema.ts"
import type { Turn } from "../../db/turn.ts"
import { createReceiptKey, type ReceiptKey } from "../../engine/receipts/receipt.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { reseal, type Secret, seal, unseal } from "../../platform/sealing.ts"

// If several processes create the next key at once, the constraint on `number` lets only one succeed.

/** Returns the key that signs now, and creates it if there is none. Throws `SealBroken`. */
export async function signingKey(turn: Turn, secret: Secret): Promise<ReceiptKey> {
  const [newest] = await newestKey(turn.tx, {})
  if (!newest) await insertKey(turn, secret, 1)
  return newest ? opened(secret, newest) : await currentKey(turn.tx, secret)
}

/** Returns the existing key that signs now. Throws `SealBroken`. */
export async function currentKey(queries: Queries, secret: Secret): Promise<ReceiptKey> {
  const [newest] = await newestKey(queries, {})
  if (!newest) throw new Error("no receipt key was made yet")
  return opened(secret, newest)
}

/** Creates the first key unless there is one. */
export async function ensureReceiptKey(context: Context): Promise<void> {
  const [newest] = await newestKey(context.db.read, {})
  if (!newest) await inTurn(context, null, (turn) => insertKey(turn, context.config.service_secret, 1))
}

/** Returns every key that ever signed, newest first, and creates the first if there is none. */
export async function publishedKeys(context: Context): Promise<PublicReceiptJwk[]> {
  const known = await listReceiptKeys(context.db.read)
  if (known.length === 0) await ensureReceiptKey(context)
  const keys = known.length > 0 ? known : await listReceiptKeys(context.db.read)
  return keys.map(({ public_jwk }) => public_jwk)
}

export async function listReceiptKeys(queries: Queries): Promise<ReceiptKeyRow[]> {
  return await everyKey(queries, {})
}

/**
 * Creates the key that signs after `current`, and deletes the private halves of the earlier ones, which stay published.
 * If another process has rotated `current` meanwhile, returns its key; `is_mine` says whose it is.
 */
export async function rotateReceiptKey(
  turn: Turn,
  secret: Secret,
  current: ReceiptKeyRow | undefined,
): Promise<{ key: ReceiptKeyRow; is_mine: boolean }> {
  const number = (current?.number ?? 0) + 1
  const made = await insertKey(turn, secret, number)
  await turn.tx.update(receiptKeys).set({ sealed_key: null }).where(lt(receiptKeys.number, number))
  const [key] = made ? [made] : await newestKey(turn.tx, {})
  if (!key) throw new Error("a rotation left no receipt key")
  return { key, is_mine: made !== null }
}

/** Reseals a key with the current secret; returns null if it already is. Throws `SealBroken`. */
export function resealReceiptKey(secret: Secret, kid: string, sealed: string): string | null {
  return reseal(secret, PURPOSE, kid, sealed)
}

const PURPOSE = "receipt key"

function opened(secret: Secret, { kid, public_jwk, sealed_key }: ReceiptKeyRow): ReceiptKey {
  if (sealed_key === null) throw new Error(`the newest receipt key, ${kid}, has nothing to sign with`)
  return { public_jwk, d: unseal(secret, PURPOSE, kid, sealed_key) }
}

/** Returns null if another process has created this key. */
async function insertKey(turn: Turn, secret: Secret, number: number): Promise<ReceiptKeyRow | null> {
  const { public_jwk, d } = createReceiptKey()
  const { kid } = public_jwk
  const row = { number, kid, public_jwk, sealed_key: seal(secret, PURPOSE, kid, d), created_at: turn.at }
  const [inserted] = await turn.tx.insert(receiptKeys).values(row).onConflictDoNothing().returning()
  return inserted ?? null
}

const newestKey = query((db) => db.select().from(receiptKeys).orderBy(desc(receiptKeys.number)).limit(1))

const everyKey = query((db) => db.select().from(receiptKeys).orderBy(desc(receiptKeys.number)))
