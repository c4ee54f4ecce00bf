import { asc, desc, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import {
  type ActorRow,
  actorEvents,
  actors,
  chipReplacements,
  claims,
  effects,
  sessionTokens,
  transfers,
  units,
} from "../../db/schema.ts"
import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { kindOf } from "../../engine/lanes/attempts.ts"
import { actsOn } from "./acts.ts"
import { namesOf } from "./names.ts"
import { isOpen, type Work, workOf } from "./waiting.ts"
import { type Sources, takesRetry, waitsFor } from "./waits-for.ts"

/** Where an actor is and why, as `operator explain` and the console show it. Times are ISO 8601. */
export type Story = {
  id: string
  machine: MachineName
  /** What people call it. */
  name: string | null
  external_id: string | null
  serial: number | null
  /** Who has the unit, according to the chain. */
  owner: string | null
  /** Who gets it, by a claim or a transfer. */
  recipient: string | null
  organization_id: string | null
  organization: string | null
  state: string
  since: string
  waits_for: string
  /** What `operator retry` accepts, with what it would do. */
  retryable: { id: string; would: string }[]
  /** What `operator cancel` accepts: signed transactions that are in no block yet, and whose results are awaited. */
  cancellable: string[]
  journal: StoryEntry[]
  effects: StoryEffect[]
  transactions: StoryTransaction[]
  /** What operators did to it and to what it waits for, newest first. */
  acts: { at: string; actor: string; act: string; subject: string }[]
  /** Actors of the same unit. */
  related: { id: string; machine: string; state: string }[]
}

export type StoryEntry = ReturnType<typeof presentEntry>
export type StoryEffect = ReturnType<typeof presentEffect>
export type StoryTransaction = Exclude<ReturnType<typeof presentTransaction>, never[]>

/** Reads an actor's story. Asks the chain only if something waits for it. */
export async function storyOf(sources: Sources, actor: ActorRow): Promise<Story> {
  const { queries } = sources
  const work = await workOfActor(queries, actor)
  return {
    id: actor.id,
    machine: actor.machine as MachineName,
    ...(await calledBy(queries, actor)),
    organization_id: actor.organization_id,
    state: actor.state,
    since: actor.updated_at.toISOString(),
    waits_for: await waitsFor(sources, actor, work),
    retryable: retryableOf(actor, work),
    cancellable: work.filter(isCancellable).flatMap(({ transaction }) => transaction?.id ?? []),
    journal: (await journalOf(queries, actor)).map(presentEntry),
    effects: work.map(presentEffect),
    transactions: work.flatMap(presentTransaction),
    acts: (await actsOn(queries, subjectsOf(actor, work))).map(({ at, id: _id, ...act }) => ({
      at: at.toISOString(),
      ...act,
    })),
    related: await relatedOf(queries, actor),
  }
}

async function calledBy(queries: Queries, { id, machine }: ActorRow) {
  const named = (await namesOf(queries, machine as MachineName, [id])).get(id)
  const unknown = {
    name: null,
    external_id: null,
    serial: null,
    owner: null,
    recipient: null,
    organization: null,
  }
  return named ?? unknown
}

/** Every subject that an act on it may name. */
function subjectsOf({ id, organization_id }: ActorRow, work: Work[]): string[] {
  const told = work.flatMap(({ effect, lane, transaction }) => [
    effect.id,
    lane?.id ?? [],
    transaction?.id ?? [],
  ])
  return [...new Set([id, organization_id ?? [], ...told].flat())]
}

async function workOfActor(queries: Queries, actor: ActorRow): Promise<Work[]> {
  const rows = await queries
    .select()
    .from(effects)
    .where(eq(effects.actor_id, actor.id))
    .orderBy(asc(effects.id))
  return await workOf(queries, rows)
}

async function journalOf(queries: Queries, actor: ActorRow) {
  return await queries
    .select()
    .from(actorEvents)
    .where(eq(actorEvents.actor_id, actor.id))
    .orderBy(asc(actorEvents.number))
}

function retryableOf(actor: ActorRow, work: Work[]): Story["retryable"] {
  const open = work.filter(isOpen)
  // A lane sends a transaction again by itself.
  const isWaiting = open.some(({ effect }) => effect.transaction_id === null)
  const closedLanes = open.flatMap(({ lane }) => (lane && lane.status !== "open" ? [lane.id] : []))
  return [
    ...(takesRetry(actor) ? [{ id: actor.id, would: "try again" }] : []),
    ...(isWaiting ? [{ id: actor.id, would: "take up the open work now" }] : []),
    ...[...new Set(closedLanes)].map((id) => ({ id, would: `reopen lane ${id}` })),
  ]
}

function isCancellable({ effect, transaction }: Work): boolean {
  if (!transaction || effect.status !== "open") return false
  return ["signed", "sent"].includes(transaction.status) && transaction.cancel_requested_at === null
}

/** How many of each kind are shown; a unit rarely has more. */
const mostRelated = 20

async function relatedOf(queries: Queries, actor: ActorRow): Promise<Story["related"]> {
  const unitId = await unitOf(queries, actor)
  if (!unitId) return []
  const [unit] = await queries
    .select({ id: units.id, collection_id: units.collection_id })
    .from(units)
    .where(eq(units.id, unitId))
  const ids = [
    ...[unit?.id, unit?.collection_id].flatMap((id) => id ?? []),
    ...(await newestOf(queries, claims, unitId)),
    ...(await newestOf(queries, transfers, unitId)),
    ...(await newestOf(queries, chipReplacements, unitId)),
  ].filter((id) => id !== actor.id)
  const rows = await Promise.all(
    ids.map((id) =>
      queries
        .select({ id: actors.id, machine: actors.machine, state: actors.state })
        .from(actors)
        .where(eq(actors.id, id)),
    ),
  )
  return rows.flat()
}

async function unitOf(queries: Queries, actor: ActorRow): Promise<string | null> {
  if (actor.machine === "unit-token") return actor.id
  if (actor.machine !== "session-token") {
    const { context } = actor.snapshot as { context?: { unit_id?: string } }
    return context?.unit_id ?? null
  }
  const [token] = await queries
    .select({ unit_id: sessionTokens.unit_id })
    .from(sessionTokens)
    .where(eq(sessionTokens.id, actor.id))
  return token?.unit_id ?? null
}

type OfUnits = typeof claims | typeof transfers | typeof chipReplacements

async function newestOf(queries: Queries, table: OfUnits, unitId: string): Promise<string[]> {
  const rows = await queries
    .select({ id: table.id })
    .from(table)
    .where(eq(table.unit_id, unitId))
    .orderBy(desc(table.created_at), desc(table.id))
    .limit(mostRelated)
  return rows.map(({ id }) => id)
}

function presentEntry(entry: typeof actorEvents.$inferSelect) {
  return {
    number: entry.number,
    at: entry.at.toISOString(),
    event: entry.event,
    from_state: entry.from_state,
    to_state: entry.to_state,
    request_id: entry.request_id,
  }
}

function presentEffect({ effect }: Work) {
  return {
    id: effect.id,
    src: effect.src,
    status: effect.status,
    queue: effect.queue,
    attempts: effect.attempts,
    due_at: effect.due_at.toISOString(),
    last_error: effect.last_error,
    transaction_id: effect.transaction_id,
    request_id: effect.request_id,
    created_at: effect.created_at.toISOString(),
    closed_at: effect.closed_at?.toISOString() ?? null,
  }
}

/** Without the signed bytes, which anybody could send. */
function presentTransaction({ transaction, attempts }: Work) {
  if (!transaction) return []
  return {
    id: transaction.id,
    lane_id: transaction.lane_id,
    kind: transaction.kind,
    nonce: transaction.nonce,
    status: transaction.status,
    hash: transaction.hash,
    block_number: transaction.block_number,
    attempts: attempts.map((attempt) => ({
      hash: attempt.hash,
      kind: kindOf(attempt),
      max_fee_per_gas: attempt.max_fee_per_gas,
      send_count: attempt.send_count,
      last_error: attempt.last_error,
    })),
  }
}
