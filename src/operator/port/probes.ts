import { Hono } from "hono"
import { organizations } from "../../db/schema.ts"
import type { Context } from "../../platform/context.ts"

/** Is the process alive, and can it work? */
export function probePages(context: Context, isStopping: () => boolean): Hono {
  return new Hono()
    .get("/livez", (c) => c.text("alive\n"))
    .get("/readyz", async (c) => {
      if (isStopping()) return c.text("the process is stopping\n", 503)
      const isReady = await context.db.read
        .select({ id: organizations.id })
        .from(organizations)
        .limit(1)
        .then(
          () => true,
          () => false,
        )
      const faults = context.keyFaults().map(({ text }) => `${text}\n`)
      return isReady ? c.text(["ready\n", ...faults].join("")) : c.text("the database does not answer\n", 503)
    })
}
