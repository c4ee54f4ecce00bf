import { sql } from "drizzle-orm"
import { openDatabase } from "../../src/db/open.ts"
import type { Turn } from "../../src/db/turn.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { newId } from "../../src/platform/ids.ts"

/** A process of `order.test.ts`: writers that commit one event or several, at once, late, or not at all. */
const { url, organization_id, writers, events, at_once } = JSON.parse(process.argv[2] ?? "{}") as {
  url: string
  organization_id: string
  writers: number
  /** How many events each writer records. Every thirteenth database transaction is rolled back. */
  events: number
  at_once: number
}
const db = openDatabase(url)
// Clocks of machines differ: this process's clock is somewhat ahead or behind.
const skew = Math.round((Math.random() - 0.5) * 4_000)

async function write(unit_id: string): Promise<void> {
  for (let first = 0, number = 0; first < events; first += at_once, number++) {
    const isUndone = number % 13 === 5
    await db
      .transaction(async (tx) => {
        const turn = turnOf(tx)
        for (let number = first; number < Math.min(first + at_once, events); number++)
          await recordEvent(turn, {
            type: "unit.created",
            organization_id,
            unit_id,
            collection_id: null,
            is_test: false,
            data: { number },
            endpoint_id: null,
          })
        // Gives others time to commit.
        if (number % 7 === 3 && db.engine === "postgres") await tx.execute(sql`select pg_sleep(0.03)`)
        if (isUndone) throw new Error("undone")
      })
      .catch((error: Error) => {
        if (error.message !== "undone") throw error
      })
  }
}

function turnOf(tx: Turn["tx"]): Turn {
  const at = new Date(Date.now() + skew)
  return { tx, engine: db.engine, at, request_id: null, wake: () => {}, tell: async () => {} }
}

await Promise.all(Array.from({ length: writers }, () => write(newId())))
await db.close()
