import type { Context } from "../context.ts"
import { organizations } from "../db/schema.ts"
import { type OperatorPage, textAnswer } from "./page.ts"

/** Is the process alive, and can it work? */
export function probePages(context: Context, isStopping: () => boolean): OperatorPage[] {
  return [
    { method: "GET", path: "/livez", access: "probe", answer: () => textAnswer("alive") },
    {
      method: "GET",
      path: "/readyz",
      access: "probe",
      async answer() {
        if (isStopping()) return textAnswer("the process is stopping", 503)
        const isReady = await context.db.read
          .select({ id: organizations.id })
          .from(organizations)
          .limit(1)
          .then(
            () => true,
            () => false,
          )
        return isReady ? textAnswer("ready") : textAnswer("the database does not answer", 503)
      },
    },
  ]
}
