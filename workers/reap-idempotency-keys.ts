import { lte } from "drizzle-orm"
import { type Context, inTurn } from "../src/context.ts"
import { idempotencyKeys } from "../src/db/schema.ts"
import { keptMilliseconds } from "../src/http/idempotency.ts"

/** Deletes the kept answers whose day is over. Until then they are given again; after that nobody finds them. */
export async function reapIdempotencyKeys(context: Context): Promise<void> {
  await inTurn(context, null, async ({ tx, at }) => {
    const over = new Date(at.getTime() - keptMilliseconds)
    await tx.delete(idempotencyKeys).where(lte(idempotencyKeys.created_at, over))
  })
}
