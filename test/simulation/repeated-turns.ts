import type { Database } from "../../src/db/database.ts"

class RunAgain extends Error {
  override name = "RunAgain"
}

/**
 * A database that runs some database transactions twice, the first time for nothing, as Postgres does when others
 * were quicker.
 */
export function repeatingTurns(db: Database, isRepeated: () => boolean): Database {
  return {
    ...db,
    async transaction(work) {
      if (isRepeated()) {
        try {
          await db.transaction(async (tx) => {
            await work(tx)
            throw new RunAgain("others were quicker")
          })
        } catch (error) {
          if (!(error instanceof RunAgain)) throw error
        }
      }
      return await db.transaction(work)
    },
  }
}
