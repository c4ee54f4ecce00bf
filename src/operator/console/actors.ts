import { and, asc, count, eq, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { actors } from "../../db/schema.ts"
import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { innermostStates } from "../charts/machine-charts.ts"
import { shareAnswer } from "./shared-answer.ts"

/** How many actors are in each state, by machine and state; empty states are left out. */
export type Counts = Record<string, Record<string, number>>

/** Counts every actor. Scans a whole index, so its answer is shared: see `createCounts`. */
async function countActors(queries: Queries): Promise<Counts> {
  const rows = await queries
    .select({ machine: actors.machine, state: actors.state, actors: count() })
    .from(actors)
    .groupBy(actors.machine, actors.state)
  const counts: Counts = {}
  for (const { machine, state, actors: number } of rows) {
    const ofMachine = counts[machine] ?? {}
    ofMachine[state] = Number(number)
    counts[machine] = ofMachine
  }
  return counts
}

/** Counts at most once a second for all viewers, and never for more than a twentieth of the time. */
export function createCounts(queries: Queries): () => Promise<Counts> {
  return shareAnswer(
    () => countActors(queries),
    (took) => Math.max(1_000, 20 * took),
  )
}

type ListedActor = { id: string; state: string; organization_id: string | null; updated_at: Date }

/** Where a list continues that is ordered by the time in the state, longest first. */
export type Mark = { updated_at: Date; id: string }

export type ListedActors = { rows: ListedActor[]; next: Mark | null }

/** The actors that have been in a state, or in one inside it, the longest. */
export async function oldestActors(
  queries: Queries,
  machine: MachineName,
  state: string,
  { after, limit }: { after: Mark | null; limit: number },
): Promise<ListedActors> {
  const lists = await Promise.all(
    innermostStates(machine, state).map((each) => oldestIn(queries, machine, each, after, limit + 1)),
  )
  const rows = lists.flat().sort(byAge)
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    rows: shown,
    next: last && rows.length > limit ? { updated_at: last.updated_at, id: last.id } : null,
  }
}

/** Each innermost state separately, because only then does an index give the order. */
async function oldestIn(
  queries: Queries,
  machine: MachineName,
  state: string,
  after: Mark | null,
  limit: number,
): Promise<ListedActor[]> {
  const follows = after
    ? sql`(${actors.updated_at}, ${actors.id}) > (${sql.param(after.updated_at, actors.updated_at)}, ${sql.param(after.id, actors.id)})`
    : undefined
  return await queries
    .select({
      id: actors.id,
      state: actors.state,
      organization_id: actors.organization_id,
      updated_at: actors.updated_at,
    })
    .from(actors)
    .where(and(eq(actors.machine, machine), eq(actors.state, state), follows))
    .orderBy(asc(actors.updated_at), asc(actors.id))
    .limit(limit)
}

function byAge(one: ListedActor, other: ListedActor): number {
  return one.updated_at.getTime() - other.updated_at.getTime() || (one.id < other.id ? -1 : 1)
}
