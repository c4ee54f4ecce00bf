import { desc, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type OperatorActRow, operatorActs } from "../../db/operator-schema.ts"
import { type Given, query } from "../../db/query.ts"

/** What operators did to any of these subjects, or to anything; newest first. */
export async function actsOn(queries: Queries, subjects: string[] | null): Promise<OperatorActRow[]> {
  const newest = queries.select().from(operatorActs).orderBy(desc(operatorActs.id)).limit(mostShown)
  if (subjects === null) return await newest
  // Each separately, because only then does an index give the order.
  const lists = await Promise.all(subjects.map((subject) => actsOnOne(queries, { subject })))
  return lists
    .flat()
    .sort((one, other) => (one.id > other.id ? -1 : 1))
    .slice(0, mostShown)
}

const mostShown = 200

const actsOnOne = query((db, { subject }: Given<{ subject: string }>) =>
  db
    .select()
    .from(operatorActs)
    .where(eq(operatorActs.subject, subject))
    .orderBy(desc(operatorActs.id))
    .limit(mostShown),
)
