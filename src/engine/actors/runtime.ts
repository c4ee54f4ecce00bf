import type { AnyMachineSnapshot, AnyStateMachine } from "xstate"
import { Outrun, type Queries } from "../../db/database.ts"
import type { ActorRow, JournalEvent } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { newId } from "../../platform/ids.ts"
import { queueOf } from "./effects.ts"
import { type Lifecycle, lifecycles, type MachineName } from "./lifecycles.ts"
import {
  actorOfId,
  cancelEffect,
  closeEffect,
  dueTimerOf,
  insertActor,
  insertEffect,
  insertEvent,
  insertTimer,
  openEffectOfId,
  removeTimer,
  saveActor,
} from "./rows.ts"
import { firstStep, nextStep } from "./steps.ts"
import { currentSnapshot } from "./versions.ts"

type StartActor = {
  id: string
  machine: MachineName
  organization_id: string
  input: Record<string, unknown>
}

type ActorState = { status: string; state: string }

/** Starts an actor. The row that it governs already exists, with the same id and in the machine's first state. */
export async function startActor(turn: Turn, actor: StartActor): Promise<ActorState> {
  const lifecycle: Lifecycle = lifecycles[actor.machine]
  const [snapshot, actions] = firstStep(lifecycle.machine, actor.input)
  await insertActor(turn.tx, firstRow(actor, snapshot, turn.at))
  const stored = { id: actor.id, organization_id: actor.organization_id, version: 1, state: null }
  return await recordStep(turn, lifecycle, stored, { type: initEvent, input: actor.input }, snapshot, actions)
}

function firstRow(actor: StartActor, snapshot: AnyMachineSnapshot, at: Date): ActorRow {
  const { id, machine, organization_id } = actor
  const lifecycle: Lifecycle = lifecycles[machine]
  return {
    id,
    machine,
    machine_version: lifecycle.version,
    organization_id,
    snapshot: lifecycle.machine.getPersistedSnapshot(snapshot),
    status: statusOf(snapshot),
    state: pathOf(snapshot.value),
    version: 1,
    created_at: at,
    updated_at: at,
  }
}

/** Returns an actor as stored or, if it has had no event yet, as its machine starts it. */
export async function findActor(queries: Queries, id: string): Promise<ActorRow | null> {
  const [stored] = await actorOfId(queries, { id })
  if (stored) return stored
  const implied = await impliedActor(queries, id)
  if (!implied) return null
  const { machine }: Lifecycle = lifecycles[implied.machine]
  return firstRow(implied, firstStep(machine, implied.input)[0], implied.started_at)
}

/** Fires an actor's due timers; first stores the actor if it is not stored yet. */
export async function catchUp(turn: Turn, id: string): Promise<void> {
  const [stored] = await actorOfId(turn.tx, { id })
  if (!stored) await storeActor(turn, id)
  await fireDueTimers(turn, id)
}

/** Stores an actor in its initial state; does nothing if no row implies the actor. */
async function storeActor(turn: Turn, id: string): Promise<void> {
  const implied = await impliedActor(turn.tx, id)
  if (implied) await startActor({ ...turn, at: implied.started_at }, implied)
}

type ImpliedActor = StartActor & { started_at: Date }

/** Returns what an actor that is not stored was started with; null if no row implies the actor. */
async function impliedActor(queries: Queries, id: string): Promise<ImpliedActor | null> {
  for (const [machine, lifecycle] of Object.entries(lifecycles) as [MachineName, Lifecycle][]) {
    const start = await lifecycle.startOf?.(queries, id)
    if (start) return { id, machine, ...start }
  }
  return null
}

/**
 * Sends an event to an actor, after firing its due timers. `accepted`: whether the event changed anything; a machine
 * refuses an event by ignoring it.
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
 * Closes an open effect and sends its result to the actor, recorded under the request that caused the effect. Returns
 * false if the effect was already closed or cancelled.
 */
export async function settleEffect(turn: Turn, effectId: string, result: EffectResult): Promise<boolean> {
  const [owner] = await openEffectOfId(turn.tx, { id: effectId })
  if (!owner) return false
  // A due timer may leave the state that waits for this result, which cancels the effect.
  await fireDueTimers(turn, owner.actor_id)
  const [effect] = await closeEffect(turn.tx, {
    id: effectId,
    closed_at: turn.at,
    ...("output" in result
      ? { status: "done", last_error: null }
      : { status: "failed", last_error: result.error.message }),
  })
  if (!effect) return false
  const type = `xstate.${"output" in result ? "done" : "error"}.actor.${effect.invoke_id}`
  const caused = { ...turn, request_id: turn.request_id ?? effect.request_id }
  const told = "output" in result ? { output: result.output } : { error: result.error }
  await applyEvent(caused, effect.actor_id, { type, ...told, actorId: effect.invoke_id })
  return true
}

type EffectResult = { output: Record<string, unknown> } | { error: { code: string; message: string } }

/** Fires an actor's due timers, earliest first. Returns how many were fired. */
export async function fireDueTimers(turn: Turn, actorId: string): Promise<number> {
  for (let fired = 0; ; fired++) {
    const [timer] = await dueTimerOf(turn.tx, { actor_id: actorId, at: turn.at })
    if (!timer) return fired
    await removeTimer(turn.tx, { actor_id: actorId, send_id: timer.send_id })
    await applyEvent(turn, actorId, timer.event)
  }
}

/** The type of a journal's first entry, from which `replay` starts. */
const initEvent = "xstate.init"

/** The type of the journal entry that holds a snapshot migrated from an older version of the machine. */
const migrateEvent = "xstate.migrate"

/** Replays a journal through its machine. The result must equal the stored snapshot. */
export function replay(machineName: MachineName, journal: JournalEvent[]): unknown {
  const { machine }: Lifecycle = lifecycles[machineName]
  const last = replaySteps(machineName, journal).at(-1)
  return last && JSON.parse(JSON.stringify(machine.getPersistedSnapshot(last)))
}

/** Replays a journal and returns the snapshot after each entry; null for entries before the last migration. */
export function replaySteps(
  machineName: MachineName,
  journal: JournalEvent[],
): (AnyMachineSnapshot | null)[] {
  const { machine }: Lifecycle = lifecycles[machineName]
  if (journal[0]?.type !== initEvent) throw new Error(`a journal must begin with ${initEvent}`)
  const begin = Math.max(
    journal.findLastIndex(({ type }) => type === migrateEvent),
    0,
  )
  let snapshot = firstSnapshot(machine, journal[begin])
  const steps: (AnyMachineSnapshot | null)[] = [...journal.slice(0, begin).map(() => null), snapshot]
  for (const event of journal.slice(begin + 1)) {
    const [next] = nextStep(machine, restore(machine, machine.getPersistedSnapshot(snapshot)), event)
    snapshot = next
    steps.push(snapshot)
  }
  return steps
}

function firstSnapshot(machine: AnyStateMachine, entry: JournalEvent | undefined): AnyMachineSnapshot {
  if (entry?.type === migrateEvent) return restore(machine, entry.snapshot)
  return firstStep(machine, entry?.input)[0]
}

async function applyEvent(turn: Turn, actorId: string, event: JournalEvent) {
  let [row] = await actorOfId(turn.tx, { id: actorId })
  if (!row) {
    await catchUp(turn, actorId)
    row = (await actorOfId(turn.tx, { id: actorId }))[0]
  }
  if (!row) throw new Error(`there is no actor ${actorId} for ${event.type}`)
  const lifecycle: Lifecycle = lifecycles[row.machine as MachineName]
  const { machine, version: machine_version } = lifecycle
  const stored = currentSnapshot(lifecycle, row)
  const current = restore(machine, stored)
  const state = pathOf(current.value)
  // XState would still take a transition at the root of a machine that is done.
  if (current.status !== "active") return { status: statusOf(current), state, accepted: false }
  const [next, actions] = nextStep(machine, current, event)
  if (next === current && actions.length === 0) return { status: statusOf(current), state, accepted: false }
  if (next.status === "error")
    throw new Error(`${row.machine} ${actorId} has no transition for ${event.type}`)

  const isMigrated = row.machine_version < machine_version
  const version = row.version + (isMigrated ? 2 : 1)
  const saved = await saveActor(turn.tx, {
    id: actorId,
    seen_version: row.version,
    machine_version,
    snapshot: machine.getPersistedSnapshot(next),
    status: statusOf(next),
    state: pathOf(next.value),
    version,
    updated_at: turn.at,
  })
  if (saved.length === 0) throw new Outrun(`actor ${actorId} was changed concurrently`)
  if (isMigrated) {
    const migrated = { ...row, version: row.version + 1 }
    await journal(turn, lifecycle, migrated, { type: migrateEvent, machine_version, snapshot: stored }, state)
  }
  const actor = { id: actorId, organization_id: row.organization_id, version, state }
  return { ...(await recordStep(turn, lifecycle, actor, event, next, actions)), accepted: true }
}

type StoredActor = Pick<ActorRow, "id" | "organization_id" | "version"> & { state: string | null }

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
  await journal(turn, lifecycle, actor, event, state)
  for (const action of actions) await performAction(turn, lifecycle.machine, actor, action)
  // At the start there is nothing to project: the row was created in the machine's first state.
  if (actor.state !== null)
    await lifecycle.project(turn, { id: actor.id, status, state, context: snapshot.context }, sendEvent)
  if (state !== actor.state)
    await turn.tell(turn, { machine: lifecycle.machine.id, id: actor.id, from: actor.state, to: state })
  return { status, state }
}

async function journal(
  turn: Turn,
  { journalled }: Lifecycle,
  actor: StoredActor,
  event: JournalEvent,
  to_state: string,
): Promise<void> {
  if (!journalled) return
  await insertEvent(turn.tx, {
    actor_id: actor.id,
    number: actor.version,
    event,
    from_state: actor.state,
    to_state,
    request_id: turn.request_id,
    at: turn.at,
  })
}

type RequestedAction = { type: string; params?: unknown }

/** Stores what a machine asked for as rows: effects and timers. */
async function performAction(
  turn: Turn,
  machine: AnyStateMachine,
  actor: StoredActor,
  action: RequestedAction,
): Promise<void> {
  const params = action.params as Record<string, unknown>
  switch (action.type) {
    case "xstate.spawnChild":
      return await openEffect(turn, machine, actor, params)
    case "xstate.stopChild":
      await cancelEffect(turn.tx, { actor_id: actor.id, invoke_id: String(params.id), at: turn.at })
      return
    case "xstate.raise":
      return await startTimer(turn, actor.id, params)
    case "xstate.cancel":
      await removeTimer(turn.tx, { actor_id: actor.id, send_id: String(params.sendId) })
      return
    default:
      throw new Error(`a machine requested ${action.type}, which the runtime does not support`)
  }
}

async function openEffect(
  turn: Turn,
  machine: AnyStateMachine,
  actor: StoredActor,
  params: Record<string, unknown>,
): Promise<void> {
  const src = String(params.src)
  const input = params.input as Record<string, unknown>
  const queue = queueOf(machine, src, input)
  await insertEffect(turn.tx, {
    id: newId(),
    actor_id: actor.id,
    organization_id: actor.organization_id,
    invoke_id: String(params.id),
    src,
    input,
    status: "open",
    queue,
    transaction_id: null,
    attempts: 0,
    due_at: turn.at,
    last_error: null,
    request_id: turn.request_id,
    created_at: turn.at,
    closed_at: null,
  })
  turn.wake(queue)
}

async function startTimer(turn: Turn, actorId: string, params: Record<string, unknown>): Promise<void> {
  if (typeof params.delay !== "number") throw new Error("a machine raised an event without a delay")
  await insertTimer(turn.tx, {
    actor_id: actorId,
    send_id: String(params.id),
    event: params.event as JournalEvent,
    due_at: new Date(turn.at.getTime() + params.delay),
  })
}

function restore(machine: AnyStateMachine, persisted: unknown): AnyMachineSnapshot {
  const plain = JSON.parse(JSON.stringify(persisted))
  return machine.restoreSnapshot(plain, {} as never) as AnyMachineSnapshot
}

function statusOf(snapshot: AnyMachineSnapshot): string {
  return typeof snapshot.value === "string" ? snapshot.value : (Object.keys(snapshot.value)[0] ?? "")
}

/** Returns the path of a state value, such as `pending.issuing` for `{ pending: "issuing" }`. */
export function pathOf(value: unknown): string {
  if (typeof value === "string") return value
  return Object.entries(value as Record<string, unknown>)
    .map(([key, inner]) => `${key}.${pathOf(inner)}`)
    .join(" & ")
}
