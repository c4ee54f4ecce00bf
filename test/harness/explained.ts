import type { Database } from "../../src/db/database.ts"
import { withHiddenParameters } from "../../src/db/sqlite.ts"
import type { Watched } from "./watched-database.ts"

/** A statement's query plan: a line per table or index that it reads, with the condition used. */
export async function explained(
  db: Database,
  { text, params }: Pick<Watched, "text" | "params">,
): Promise<string[]> {
  if (db.engine === "sqlite") {
    const steps = await db.read.ask({ text: `explain query plan ${withHiddenParameters(text)}` }, params)
    return steps.map(([_id, _parent, _unused, detail]) => String(detail))
  }
  const [row] = await db.read.ask({ text: `explain (format json) ${text}` }, params)
  return readsOf(JSON.parse(String(row?.[0]))[0].Plan)
}

/** The part of a Postgres plan that is read here. */
export type Plan = {
  "Node Type": string
  "Relation Name"?: string
  "Index Name"?: string
  "Index Cond"?: string
  Plans?: Plan[]
}

function readsOf(plan: Plan): string[] {
  const name = plan["Index Name"] ?? plan["Relation Name"]
  const own = name ? [`${plan["Node Type"]} ${name} ${plan["Index Cond"] ?? ""}`] : []
  return [...own, ...(plan.Plans ?? []).flatMap(readsOf)]
}

/** How many rows a statement reads from one index; null if the engine does not count them. */
export async function rowsRead(
  db: Database,
  { text, params }: Pick<Watched, "text" | "params">,
  index: string,
): Promise<number | null> {
  if (db.engine === "sqlite") return null
  const [row] = await db.read.ask({ text: `explain (analyze, format json) ${text}` }, params)
  return rowsOf(JSON.parse(String(row?.[0]))[0].Plan, index)
}

type Counted = {
  "Index Name"?: string
  "Actual Rows": number
  "Actual Loops": number
  "Rows Removed by Filter"?: number
  Plans?: Counted[]
}

function rowsOf(plan: Counted, index: string): number {
  const each = plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)
  const own = plan["Index Name"] === index ? each * plan["Actual Loops"] : 0
  return (plan.Plans ?? []).reduce((sum, part) => sum + rowsOf(part, index), own)
}
