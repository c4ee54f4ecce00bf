import type { Database } from "../../src/db/database.ts"

class RunAgain extends Error {
  override name = "RunAgain"
}

/**
 * A database that runs some transactions twice and rolls the first run back, as happens on Postgres after a
 * serialization failure.
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
