import { lte } from "drizzle-orm"
import { type Context, inTurn } from "../src/context.ts"
import { idempotencyKeys, identityTokenUses } from "../src/db/schema.ts"
import { keptMilliseconds } from "../src/http/idempotency.ts"

/** Deletes what is kept for a time only: answers whose day is over, and uses of identity tokens long expired. */
export async function reapExpired(context: Context): Promise<void> {
  await inTurn(context, null, async ({ tx, at }) => {
    const before = (milliseconds: number) => new Date(at.getTime() - milliseconds)
    await tx.delete(idempotencyKeys).where(lte(idempotencyKeys.created_at, before(keptMilliseconds)))
    await tx.delete(identityTokenUses).where(lte(identityTokenUses.expires_at, before(lateMilliseconds)))
  })
}

/** A token is used a while after it was found valid, maybe on a machine whose clock is behind. */
const lateMilliseconds = 10 * 60_000
