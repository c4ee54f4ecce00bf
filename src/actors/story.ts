import { asc, desc, eq } from "drizzle-orm"
import type { AnyStateMachine } from "xstate"
import type { AskChain } from "../chain/ask-chain.ts"
import { kindOf } from "../chain/transactions.ts"
import { chartOf } from "../charts/chart.ts"
import type { Queries } from "../db/database.ts"
import {
  actorEvents,
  actors,
  actorTimers,
  chipReplacements,
  claims,
  effects,
  sessionTokens,
  transfers,
  units,
} from "../db/schema.ts"
import { lifecycles, type MachineName } from "./lifecycles.ts"
import { type ActorRow, failureIn, reasonOf, type Work, workOf } from "./waiting.ts"

/** Where an actor is and why, for people: `operator explain` and the console tell the same. Times are ISO texts. */
export type Story = {
  id: string
  machine: MachineName
  organization_id: string | null
  state: string
  since: string
  waits_for: string
  /** What `operator retry` takes, with what it would do. */
  retryable: { id: string; would: string }[]
  journal: StoryEntry[]
  effects: StoryEffect[]
  transactions: StoryTransaction[]
  /** Actors of the same unit. */
  related: { id: string; machine: string; state: string }[]
}

export type StoryEntry = ReturnType<typeof presentEntry>
export type StoryEffect = ReturnType<typeof presentEffect>
export type StoryTransaction = Exclude<ReturnType<typeof presentTransaction>, never[]>

/** Reads an actor's story. Asks the chain only when something waits for it. */
export async function storyOf(
  queries: Queries,
  askChain: AskChain,
  actor: ActorRow,
  now: Date,
): Promise<Story> {
  const work = await workOfActor(queries, actor)
  return {
    id: actor.id,
    machine: actor.machine as MachineName,
    organization_id: actor.organization_id,
    state: actor.state,
    since: actor.updated_at.toISOString(),
    waits_for: await waitsFor(queries, askChain, actor, work, now),
    retryable: retryableOf(actor, work),
    journal: (await journalOf(queries, actor)).map(presentEntry),
    effects: work.map(presentEffect),
    transactions: work.flatMap(presentTransaction),
    related: await relatedOf(queries, actor),
  }
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

async function waitsFor(
  queries: Queries,
  askChain: AskChain,
  actor: ActorRow,
  work: Work[],
  now: Date,
): Promise<string> {
  const open = work.filter(isOpen)
  if (open.length > 0) {
    const troubles = await Promise.all([...new Set(open.map(chainOf))].map((id) => troubleOf(askChain, id)))
    return [...troubles.flat(), ...open.map((each) => reasonOf(each, now))].join("; ")
  }
  const [timer] = await queries
    .select()
    .from(actorTimers)
    .where(eq(actorTimers.actor_id, actor.id))
    .orderBy(asc(actorTimers.due_at))
    .limit(1)
  if (timer) return `its timer at ${timer.due_at.toISOString()}`
  const failure = failureIn(actor)
  if (actor.state === "pending.unpaired") return "a chip to be paired to the unit"
  if (takesRetry(actor))
    return `somebody to find out why it failed and to retry it: ${failure ?? "no failure is noted"}`
  return failure ? `nothing: it failed with ${failure}` : "nothing: all its work is done"
}

async function troubleOf(askChain: AskChain, chainId: number | null): Promise<string[]> {
  const trouble = chainId === null ? null : await askChain(chainId)
  return trouble === null ? [] : [`chain ${chainId} does not answer (${trouble})`]
}

function chainOf({ effect, lane }: Work): number | null {
  const watched = effect.input.chain_id
  return lane?.chain_id ?? (typeof watched === "number" ? watched : null)
}

function isOpen({ effect }: Work): boolean {
  return effect.status === "open"
}

function retryableOf(actor: ActorRow, work: Work[]): Story["retryable"] {
  const open = work.filter(isOpen)
  const closedLanes = open.flatMap(({ lane }) => (lane && lane.status !== "open" ? [lane.id] : []))
  return [
    ...(takesRetry(actor) ? [{ id: actor.id, would: "try again" }] : []),
    ...(open.length > 0 ? [{ id: actor.id, would: "take up the open work now" }] : []),
    ...[...new Set(closedLanes)].map((id) => ({ id, would: `reopen lane ${id}` })),
  ]
}

function takesRetry(actor: ActorRow): boolean {
  const machine: AnyStateMachine = lifecycles[actor.machine as MachineName].machine
  return chartOf(machine).transitions.some(({ source, event }) => source === actor.state && event === "RETRY")
}

/** How many of each kind are shown: a unit rarely has more. */
const mostRelated = 20

async function relatedOf(queries: Queries, actor: ActorRow): Promise<Story["related"]> {
  const unitId = await unitOf(queries, actor)
  if (!unitId) return []
  const [unit] = await queries
    .select({ id: units.id, collection_id: units.collection_id })
    .from(units)
    .where(eq(units.id, unitId))
  const ids = [
    unit?.id,
    unit?.collection_id,
    ...(await newestOf(queries, claims, unitId)),
    ...(await newestOf(queries, transfers, unitId)),
    ...(await newestOf(queries, chipReplacements, unitId)),
  ].filter((id) => id && id !== actor.id)
  const rows = await Promise.all(
    ids.map((id) =>
      queries
        .select({ id: actors.id, machine: actors.machine, state: actors.state })
        .from(actors)
        .where(eq(actors.id, String(id))),
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

/** Without the signed bytes: whoever has them can send them. */
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
