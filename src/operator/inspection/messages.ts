import type { AnyStateMachine } from "xstate"
import type { ActorRow, actorEvents, EffectRow, JournalEvent } from "../../db/schema.ts"
import { lifecycles, type MachineName } from "../../engine/actors/lifecycles.ts"
import { replaySteps } from "../../engine/actors/runtime.ts"
import { newId } from "../../platform/ids.ts"
import { machineNames } from "../charts/machine-charts.ts"

/** What the inspector reads, as `@statelyai/inspect` 0.7 writes it. */
export type InspectionMessage = {
  _version: string
  /** Milliseconds since 1970, as a text. */
  createdAt: string
  id: string
  sessionId: string
  rootId: string
} & (
  | {
      type: "@xstate.actor"
      name: string
      parentId: string | undefined
      definition: string
      snapshot: InspectedSnapshot
    }
  | { type: "@xstate.event"; event: JournalEvent; sourceId: string | undefined }
  | { type: "@xstate.snapshot"; event: JournalEvent; snapshot: InspectedSnapshot }
)

type InspectedSnapshot = { status: string; value?: unknown; context?: unknown }

/** An actor's row, with its journal and effects, each oldest first. */
type RecordedActor = {
  actor: ActorRow
  journal: (typeof actorEvents.$inferSelect)[]
  effects: EffectRow[]
}

/**
 * All messages about an actor, always in the same order: itself, each event with the snapshot after it, and its
 * effects as children. Messages are only ever appended, except for an actor without a journal.
 */
export function messagesOf({ actor, journal, effects }: RecordedActor): InspectionMessage[] {
  const machine = actor.machine as MachineName
  const events = journal.map(({ event }) => event)
  // Events of an older version of the machine are replayed once the actor has been migrated.
  const isOfNow = journal.length > 0 && actor.machine_version === lifecycles[machine].version
  const steps = isOfNow ? replaySteps(machine, events).map((step) => step && inspected(step)) : []
  const current = inspected(actor.snapshot as InspectedSnapshot)
  const at = stampsOf(actor.id, actor.id)
  const started: InspectionMessage = {
    ...at(actor.created_at, "1"),
    type: "@xstate.actor",
    name: machine,
    parentId: undefined,
    definition: definitions.get(machine) ?? "",
    snapshot: steps[0] ?? current,
  }
  const moves = journal.slice(1).flatMap((entry, index): InspectionMessage[] => {
    const event = allowedEvent(entry.event)
    const sourceId = sourceOf(entry.event, effects)
    const snapshot = steps[index + 1] ?? current
    return [
      { ...at(entry.at, `${entry.number}:event`), type: "@xstate.event", event, sourceId },
      { ...at(entry.at, `${entry.number}`), type: "@xstate.snapshot", event, snapshot },
    ]
  })
  const unjournalled: InspectionMessage = {
    ...at(actor.updated_at, `${actor.version}`),
    type: "@xstate.snapshot",
    event: { type: "" },
    snapshot: current,
  }
  return [
    started,
    ...moves,
    ...(journal.length === 0 && actor.version > 1 ? [unjournalled] : []),
    ...effects.flatMap((effect) => effectMessages(actor.id, effect)),
  ]
}

/** An effect is a child of the actor that asked for it. */
function effectMessages(actorId: string, effect: EffectRow): InspectionMessage[] {
  const at = stampsOf(effect.id, actorId)
  const started: InspectionMessage = {
    ...at(effect.created_at, "1"),
    type: "@xstate.actor",
    name: effect.invoke_id,
    parentId: actorId,
    definition: JSON.stringify({ id: effect.src }),
    snapshot: { status: "active" },
  }
  if (!effect.closed_at) return [started]
  const status = { open: "active", done: "done", failed: "error", cancelled: "stopped" }[effect.status]
  return [
    started,
    {
      ...at(effect.closed_at, "2"),
      type: "@xstate.snapshot",
      event: { type: `effect.${effect.status}` },
      snapshot: { status },
    },
  ]
}

/** What an open effect waits for from now on, as a snapshot of the child that it is. */
export function waitMessage({ id, actor_id }: EffectRow, waits_for: string, now: Date): InspectionMessage {
  return {
    ...stampsOf(id, actor_id)(now, newId()),
    type: "@xstate.snapshot",
    event: { type: "effect.waits" },
    snapshot: { status: "active", context: { waits_for: withoutAddresses(waits_for) } },
  }
}

/** Nodes quote wallets and signed bytes; of what they quote, only hashes are shown. */
function withoutAddresses(text: string): string {
  return text.replace(/0x[0-9a-f]{40,}/gi, (quoted) => (quoted.length === 66 ? quoted : "0x…"))
}

/** What every message about one actor or effect begins with. */
function stampsOf(sessionId: string, rootId: string) {
  return (time: Date, what: string) => ({
    _version: "0.7.2",
    createdAt: String(time.getTime()),
    id: `${sessionId}:${what}`,
    sessionId,
    rootId,
  })
}

/** The effect whose result an event is: the last one of that name. */
function sourceOf(event: JournalEvent, effects: EffectRow[]): string | undefined {
  const [, name] = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(event.type) ?? []
  return effects.findLast(({ invoke_id }) => invoke_id === name)?.id
}

function inspected({ status, value, context }: InspectedSnapshot): InspectedSnapshot {
  return { status, value, context: allowed(context) }
}

/** What the inspector may show of contexts, inputs and outputs: no wallets and no authorizations. */
const allowedKeys = new Set([
  ...["collection_id", "unit_id", "lane_id", "chip_id", "previous_chip_id", "bulk_pairing_id", "serial"],
  ...["transaction_hash", "failure", "code", "message", "outcome", "ttl_seconds", "input", "output", "error"],
])

function allowed(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) return value.map(allowed)
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => allowedKeys.has(key))
      .map(([key, inner]) => [key, allowed(inner)]),
  )
}

function allowedEvent(event: JournalEvent): JournalEvent {
  return { ...(allowed(event) as object), type: event.type }
}

/** Each machine's definition without its context, functions replaced by their names. */
const definitions = new Map(machineNames.map((name) => [name, definitionOf(lifecycles[name].machine)]))

function definitionOf(machine: AnyStateMachine): string {
  const { context: _context, ...config } = machine.config as Record<string, unknown>
  return JSON.stringify(config, (_key, value) => (typeof value === "function" ? { type: value.name } : value))
}
