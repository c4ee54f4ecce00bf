import { sql } from "drizzle-orm"
import { chipRefusals } from "../../db/chip-refusal-schema.ts"
import { type Given, query } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import type { CountedRefusals } from "../../http/route.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import type { ApiError } from "../../platform/errors.ts"
import { ValueRefused } from "./proof.ts"

/** Counts rejected values of `e` against their chip. */
export const refusedValues: CountedRefusals = {
  against: (refusal) => (refusal instanceof ValueRefused ? refusal.chip_id : null),
  note: noteRefusal,
}

/** Counts a rejected value in a database transaction of its own, since the request's is rolled back. */
async function noteRefusal(context: Context, refusal: ApiError, requestId: string): Promise<void> {
  if (!(refusal instanceof ValueRefused)) return
  const { chip_id } = refusal
  const count = ({ tx, at }: Turn) => countRefusal(tx, { chip_id, refused_count: 1, last_refused_at: at })
  await inTurn(context, requestId, count, "read committed")
}

const countRefusal = query((db, row: Given<typeof chipRefusals.$inferSelect>) =>
  db
    .insert(chipRefusals)
    .values(row)
    .onConflictDoUpdate({
      target: chipRefusals.chip_id,
      set: {
        refused_count: sql`${chipRefusals.refused_count} + 1`,
        last_refused_at: row.last_refused_at,
      },
    }),
)
