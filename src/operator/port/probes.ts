import { sql } from "drizzle-orm"
import { Hono } from "hono"
import { DatabaseUnavailable } from "../../db/database.ts"
import { organizations } from "../../db/schema.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { within } from "../../platform/deadline.ts"

/** Is the process alive, and can it work? */
export function probePages(context: Context, isStopping: () => boolean): Hono {
  return new Hono()
    .get("/livez", (c) => c.text("alive\n"))
    .get("/readyz", async (c) => {
      if (isStopping()) return c.text("the process is stopping\n", 503)
      const trouble = await within(writeNothing(context), patienceMilliseconds, notInTime).then(
        () => null,
        (error) => (error instanceof DatabaseUnavailable ? error.message : notInTime),
      )
      if (trouble !== null) return c.text(`${trouble}\n`, 503)
      return c.text(["ready\n", ...context.keyFaults().map(({ text }) => `${text}\n`)].join(""))
    })
}

const patienceMilliseconds = 5_000
const notInTime = "the database does not answer"

/** An update of no row, which a read-only database refuses. */
async function writeNothing(context: Context): Promise<void> {
  await inTurn(
    context,
    null,
    ({ tx }) => tx.update(organizations).set({ name: "" }).where(sql`false`),
    "read committed",
  )
}
