import { and, asc, eq } from "drizzle-orm"
import type { Queries } from "../db/database.ts"
import { actorEvents, actorTimers, chips, effects, type JournalEvent } from "../db/schema.ts"
import { ApiError } from "../errors.ts"
import { parseId } from "../ids.ts"
import type { Command } from "./command.ts"
import { fields, table } from "./text.ts"
import { type ActorRow, failureIn, findActor, reasonOf, stateOf, type Work, workOf } from "./waiting.ts"

export const explain: Command = {
  name: "explain",
  takes: "ID  (as for retry, or a chip id)",
  argument: "ID",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context }) => {
      const queries = context.db.read
      const actor = await requireActor(queries, argument)
      const work = await workOfActor(queries, actor)
      const explanation = {
        id: actor.id,
        machine: actor.machine,
        organization_id: actor.organization_id,
        state: stateOf(actor),
        waits_for: await waitsFor(queries, actor, work, context.clock()),
        journal: (await journalOf(queries, actor)).map(presentEntry),
        effects: work.map(presentEffect),
        transactions: work.flatMap(presentTransaction),
      }
      return { document: explanation, text: textOf(explanation) }
    },
}

/** The actor with this id, that of an effect, or that of the unit a chip is paired to. */
async function requireActor(queries: Queries, text: string): Promise<ActorRow> {
  const actorId = parseId(text) ?? (await unitOfChip(queries, text))
  const found = actorId && ((await findActor(queries, actorId)) ?? (await actorOfEffect(queries, actorId)))
  if (!found) throw new ApiError("not_found.resource", `Nothing has the id ${text}.`)
  return found
}

async function unitOfChip(queries: Queries, chipId: string): Promise<string | null> {
  const [chip] = await queries
    .select({ unit_id: chips.unit_id })
    .from(chips)
    .where(eq(chips.chip_id, chipId.toUpperCase()))
  if (chip && !chip.unit_id) throw new ApiError("unit.not_found", `Chip ${chipId} is not paired to a unit.`)
  return chip?.unit_id ?? null
}

async function actorOfEffect(queries: Queries, effectId: string): Promise<ActorRow | null> {
  const [effect] = await queries
    .select({ actor_id: effects.actor_id })
    .from(effects)
    .where(eq(effects.id, effectId))
  return effect ? await findActor(queries, effect.actor_id) : null
}

async function workOfActor(queries: Queries, actor: ActorRow): Promise<Work[]> {
  const rows = await queries
    .select()
    .from(effects)
    .where(eq(effects.actor_id, actor.id))
    .orderBy(asc(effects.created_at), asc(effects.id))
  return await workOf(queries, rows)
}

async function journalOf(queries: Queries, actor: ActorRow) {
  return await queries
    .select()
    .from(actorEvents)
    .where(eq(actorEvents.actor_id, actor.id))
    .orderBy(asc(actorEvents.number))
}

async function waitsFor(queries: Queries, actor: ActorRow, work: Work[], now: Date): Promise<string> {
  const open = work.filter(({ effect }) => effect.status === "open")
  if (open.length > 0) return open.map((each) => reasonOf(each, now)).join("; ")
  const [timer] = await queries
    .select()
    .from(actorTimers)
    .where(and(eq(actorTimers.actor_id, actor.id)))
    .orderBy(asc(actorTimers.due_at))
    .limit(1)
  if (timer) return `its timer at ${timer.due_at.toISOString()}`
  const state = stateOf(actor)
  const failure = failureIn(actor)
  if (state === "pending.unpaired") return "a chip to be paired to the unit"
  if (state === "pending.stopped" || (state === "failed" && actor.machine === "collection-contract"))
    return `somebody to find out why it failed and to retry it: ${failure ?? "no failure is noted"}`
  return failure ? `nothing: it failed with ${failure}` : "nothing: all its work is done"
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
    attempts: attempts.map(({ hash, kind, max_fee_per_gas, send_count, last_error }) => ({
      hash,
      kind,
      max_fee_per_gas,
      send_count,
      last_error,
    })),
  }
}

type Explanation = {
  id: string
  machine: string
  organization_id: string | null
  state: string
  waits_for: string
  journal: ReturnType<typeof presentEntry>[]
  effects: ReturnType<typeof presentEffect>[]
  transactions: Exclude<ReturnType<typeof presentTransaction>, never[]>[]
}

function textOf(explanation: Explanation): string {
  const { id, machine, organization_id, state, waits_for } = explanation
  const journal = table(
    ["NO", "AT", "EVENT", "FROM", "TO", "REQUEST"],
    explanation.journal.map((entry) => [
      entry.number,
      entry.at,
      summaryOf(entry.event),
      entry.from_state,
      entry.to_state,
      entry.request_id,
    ]),
  )
  const work = table(
    ["EFFECT", "WHAT", "STATUS", "ATTEMPTS", "DUE", "LAST ERROR"],
    explanation.effects.map((effect) => [
      effect.id,
      effect.src,
      effect.status,
      effect.attempts,
      effect.due_at,
      effect.last_error,
    ]),
  )
  const sent = table(
    ["TRANSACTION", "LANE", "NONCE", "STATUS", "BLOCK", "HASHES"],
    explanation.transactions.map((each) => [
      each.id,
      each.lane_id,
      each.nonce,
      each.status,
      each.block_number,
      each.attempts.map(({ hash }) => hash).join(", "),
    ]),
  )
  return [
    fields({ id, machine, organization: organization_id, state, "waits for": waits_for }),
    `journal\n${journal}`,
    `effects\n${work}`,
    `transactions\n${sent}`,
  ].join("\n\n")
}

/** `PAIRED`, or for the end of an effect its name and outcome. */
function summaryOf(event: JournalEvent): string {
  const [, outcome, name] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(event.type) ?? []
  return outcome ? `${name} ${outcome}` : event.type
}
