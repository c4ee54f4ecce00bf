import { and, asc, eq, lte } from "drizzle-orm"
import { type AnyMachineSnapshot, initialTransition, transition } from "xstate"
import { actorEvents, actors, actorTimers, effects, type JournalEvent } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { newId } from "../ids.ts"
import { type Lifecycle, lifecycles, type MachineName } from "./lifecycles.ts"

export type StartActor = {
  id: string
  machine: MachineName
  organization_id: string
  input: Record<string, unknown>
}

export type ActorState = { status: string; state: string }

/** Starts an actor; the row it governs exists already and has the same id. */
export async function startActor(turn: Turn, actor: StartActor): Promise<ActorState> {
  const lifecycle: Lifecycle = lifecycles[actor.machine]
  const [snapshot, actions] = initialTransition(lifecycle.machine, actor.input)
  await turn.tx.insert(actors).values({
    id: actor.id,
    machine: actor.machine,
    machine_version: lifecycle.version,
    organization_id: actor.organization_id,
    snapshot: lifecycle.machine.getPersistedSnapshot(snapshot),
    status: statusOf(snapshot),
    state: pathOf(snapshot.value),
    version: 1,
    created_at: turn.at,
    updated_at: turn.at,
  })
  const stored = { id: actor.id, version: 1, state: null }
  return await recordStep(turn, lifecycle, stored, { type: initEvent, input: actor.input }, snapshot, actions)
}

/**
 * Gives one event to an actor, after any of its timers that are due. Answers whether the event changed
 * anything: a machine refuses what its state does not allow by ignoring it.
 */
export async function sendEvent(
  turn: Turn,
  actorId: string,
  event: JournalEvent,
): Promise<ActorState & { accepted: boolean }> {
  await fireDueTimers(turn, actorId)
  return await applyEvent(turn, actorId, event)
}

/**
 * Closes an open effect and gives its result to the actor, as a consequence of the request that caused the effect.
 * False when it was closed or cancelled before.
 */
export async function settleEffect(turn: Turn, effectId: string, result: EffectResult): Promise<boolean> {
  const isOpen = and(eq(effects.id, effectId), eq(effects.status, "open"))
  const [owner] = await turn.tx.select({ actor_id: effects.actor_id }).from(effects).where(isOpen)
  if (!owner) return false
  // A timer that is due may leave the state that waits for this result, which cancels the effect.
  await fireDueTimers(turn, owner.actor_id)
  const [effect] = await turn.tx
    .update(effects)
    .set(
      "output" in result
        ? { status: "done", closed_at: turn.at, last_error: null }
        : { status: "failed", closed_at: turn.at, last_error: result.error.message },
    )
    .where(isOpen)
    .returning({
      actor_id: effects.actor_id,
      invoke_id: effects.invoke_id,
      request_id: effects.request_id,
    })
  if (!effect) return false
  const type = `xstate.${"output" in result ? "done" : "error"}.actor.${effect.invoke_id}`
  const caused = { ...turn, request_id: turn.request_id ?? effect.request_id }
  await applyEvent(caused, effect.actor_id, { type, ...result, actorId: effect.invoke_id })
  return true
}

export type EffectResult = { output: Record<string, unknown> } | { error: { code: string; message: string } }

/** Gives an actor the timer events whose time has come, earliest first. */
export async function fireDueTimers(turn: Turn, actorId: string): Promise<number> {
  for (let fired = 0; ; fired++) {
    const [timer] = await turn.tx
      .select({ send_id: actorTimers.send_id, event: actorTimers.event })
      .from(actorTimers)
      .where(and(eq(actorTimers.actor_id, actorId), lte(actorTimers.due_at, turn.at)))
      .orderBy(asc(actorTimers.due_at), asc(actorTimers.send_id))
      .limit(1)
    if (!timer) return fired
    await removeTimer(turn, actorId, timer.send_id)
    await applyEvent(turn, actorId, timer.event)
  }
}

/** The journal's first entry, from which `replay` starts. */
export const initEvent = "xstate.init"

/** Runs a journal through its machine again and answers the snapshot that must be the stored one. */
export function replay(machineName: MachineName, journal: JournalEvent[]): unknown {
  const { machine }: Lifecycle = lifecycles[machineName]
  const last = replaySteps(machineName, journal).at(-1)
  return last && JSON.parse(JSON.stringify(machine.getPersistedSnapshot(last)))
}

/** The same, with the snapshot after each of the journal's entries. */
export function replaySteps(machineName: MachineName, journal: JournalEvent[]): AnyMachineSnapshot[] {
  const { machine }: Lifecycle = lifecycles[machineName]
  const [init, ...events] = journal
  if (init?.type !== initEvent) throw new Error(`a journal begins with ${initEvent}`)
  let [snapshot] = initialTransition(machine, init.input)
  const steps = [snapshot]
  for (const event of events) {
    const [next] = transition(machine, restore(machine, machine.getPersistedSnapshot(snapshot)), event)
    snapshot = next
    steps.push(snapshot)
  }
  return steps
}

async function applyEvent(turn: Turn, actorId: string, event: JournalEvent) {
  const [row] = await turn.tx.select().from(actors).where(eq(actors.id, actorId))
  if (!row) throw new Error(`there is no actor ${actorId} for ${event.type}`)
  const lifecycle: Lifecycle = lifecycles[row.machine as MachineName]
  const current = restore(lifecycle.machine, row.snapshot)
  const state = pathOf(current.value)
  // XState would still take an event that the root of a finished machine has a transition for.
  if (current.status !== "active") return { status: row.status, state, accepted: false }
  const [next, actions] = transition(lifecycle.machine, current, event)
  if (next === current && actions.length === 0) return { status: row.status, state, accepted: false }
  if (next.status === "error") throw new Error(`${row.machine} ${actorId} has no answer to ${event.type}`)

  const saved = await turn.tx
    .update(actors)
    .set({
      snapshot: lifecycle.machine.getPersistedSnapshot(next),
      status: statusOf(next),
      state: pathOf(next.value),
      version: row.version + 1,
      updated_at: turn.at,
    })
    .where(and(eq(actors.id, actorId), eq(actors.version, row.version)))
    .returning({ id: actors.id })
  if (saved.length === 0) throw new Error(`actor ${actorId} was changed by somebody else at the same time`)
  const stored = { id: actorId, version: row.version + 1, state }
  return { ...(await recordStep(turn, lifecycle, stored, event, next, actions)), accepted: true }
}

type StoredActor = { id: string; version: number; state: string | null }

async function recordStep(
  turn: Turn,
  lifecycle: Lifecycle,
  actor: StoredActor,
  event: JournalEvent,
  snapshot: AnyMachineSnapshot,
  actions: readonly RequestedAction[],
): Promise<ActorState> {
  const status = statusOf(snapshot)
  const state = pathOf(snapshot.value)
  if (lifecycle.journalled)
    await turn.tx.insert(actorEvents).values({
      actor_id: actor.id,
      number: actor.version,
      event,
      from_state: actor.state,
      to_state: state,
      request_id: turn.request_id,
      at: turn.at,
    })
  for (const action of actions) await performAction(turn, actor.id, action)
  await lifecycle.project(turn, { id: actor.id, status, state, context: snapshot.context }, sendEvent)
  return { status, state }
}

type RequestedAction = { type: string; params?: unknown }

/** What an idiomatic machine can ask of the outside, each turned into rows. */
async function performAction(turn: Turn, actorId: string, action: RequestedAction): Promise<void> {
  const params = action.params as Record<string, unknown>
  switch (action.type) {
    case "xstate.spawnChild":
      return await insertEffect(turn, actorId, params)
    case "xstate.stopChild":
      return await cancelEffect(turn, actorId, params)
    case "xstate.raise":
      return await insertTimer(turn, actorId, params)
    case "xstate.cancel":
      return await removeTimer(turn, actorId, String(params.sendId))
    default:
      throw new Error(`a machine asked for ${action.type}, which the runtime does not know`)
  }
}

async function insertEffect(turn: Turn, actorId: string, params: Record<string, unknown>): Promise<void> {
  const src = String(params.src)
  const input = params.input as Record<string, unknown>
  const queue = queueOf(src, input)
  await turn.tx.insert(effects).values({
    id: newId(),
    actor_id: actorId,
    invoke_id: String(params.id),
    src,
    input,
    status: "open",
    queue,
    attempts: 0,
    due_at: turn.at,
    request_id: turn.request_id,
    created_at: turn.at,
  })
  turn.wake(queue)
}

/** Work for a lane waits in that lane's queue, watching a chain in the chain's, anything else under its name. */
function queueOf(src: string, input: Record<string, unknown>): string {
  if (typeof input.lane_id === "string") return `lane:${input.lane_id}`
  if (typeof input.chain_id === "number") return `chain:${input.chain_id}`
  return src
}

async function cancelEffect(turn: Turn, actorId: string, child: Record<string, unknown>): Promise<void> {
  await turn.tx
    .update(effects)
    .set({ status: "cancelled", closed_at: turn.at })
    .where(
      and(eq(effects.actor_id, actorId), eq(effects.invoke_id, String(child.id)), eq(effects.status, "open")),
    )
}

async function insertTimer(turn: Turn, actorId: string, params: Record<string, unknown>): Promise<void> {
  if (typeof params.delay !== "number") throw new Error("a machine raised an event without a delay")
  await turn.tx.insert(actorTimers).values({
    actor_id: actorId,
    send_id: String(params.id),
    event: params.event as JournalEvent,
    due_at: new Date(turn.at.getTime() + params.delay),
  })
}

async function removeTimer(turn: Turn, actorId: string, sendId: string): Promise<void> {
  await turn.tx
    .delete(actorTimers)
    .where(and(eq(actorTimers.actor_id, actorId), eq(actorTimers.send_id, sendId)))
}

function restore(machine: Lifecycle["machine"], persisted: unknown): AnyMachineSnapshot {
  const plain = JSON.parse(JSON.stringify(persisted))
  return machine.restoreSnapshot(plain, {} as never) as AnyMachineSnapshot
}

function statusOf(snapshot: AnyMachineSnapshot): string {
  return typeof snapshot.value === "string" ? snapshot.value : (Object.keys(snapshot.value)[0] ?? "")
}

/** `pending.issuing` for `{ pending: "issuing" }`. */
export function pathOf(value: unknown): string {
  if (typeof value === "string") return value
  return Object.entries(value as Record<string, unknown>)
    .map(([key, inner]) => `${key}.${pathOf(inner)}`)
    .join(" & ")
}
