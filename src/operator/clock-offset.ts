import type { Context } from "../platform/context.ts"

/**
 * This process's clock minus that of Postgres, in seconds; null on SQLite. The smallest possible: a slow response must
 * not make a clock look wrong.
 */
export async function clockOffset({ db, clock }: Context): Promise<number | null> {
  if (db.engine === "sqlite") return null
  const asked = clock().getTime()
  const [row] = await db.read.ask({ text: "select extract(epoch from clock_timestamp())" }, [])
  const answered = clock().getTime()
  const theirs = Number(row?.[0]) * 1000
  return (Math.min(Math.max(theirs, asked), answered) - theirs) / 1000
}
