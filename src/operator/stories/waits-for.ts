import { and, asc, count, eq, isNull, lt } from "drizzle-orm"
import type { AnyStateMachine, AnyStateNode } from "xstate"
import type { Queries } from "../../db/database.ts"
import { type ActorRow, actorTimers, effects, organizations } from "../../db/schema.ts"
import { lifecycles, type MachineName } from "../../engine/actors/lifecycles.ts"
import type { KeyFault } from "../../platform/context.ts"
import { counted } from "../../platform/counted.ts"
import type { AskChain } from "../ask-chain.ts"
import { failureIn, isOpen, reasonOf, type Work } from "./waiting.ts"
import { webhookStates } from "./webhook-states.ts"

/** What an actor waits for, in words, and whether its organization is suspended. */
export async function waitsFor(sources: Sources, actor: ActorRow, work: Work[]): Promise<string> {
  const waits = await waitedFor(sources, actor, work.filter(isOpen))
  return [waits, ...(await suspension(sources.queries, actor))].join("; ")
}

/** What a story is read from. */
export type Sources = {
  queries: Queries
  askChain: AskChain
  keyFaults: readonly KeyFault[]
  now: Date
}

async function waitedFor(sources: Sources, actor: ActorRow, open: Work[]): Promise<string> {
  const { queries, now } = sources
  if (open.length > 0) return await openWork(sources, open)
  const [timer] = await queries
    .select()
    .from(actorTimers)
    .where(eq(actorTimers.actor_id, actor.id))
    .orderBy(asc(actorTimers.due_at))
    .limit(1)
  if (timer) {
    const isLate = now.getTime() - timer.due_at.getTime() > lateMilliseconds
    return `its timer at ${timer.due_at.toISOString()}${isLate ? ", which has passed: is a worker running?" : ""}`
  }
  if (actor.machine === "webhook-endpoint") return await deliveryOf(queries, actor)
  const failure = failureIn(actor)
  if (actor.state === "pending.unpaired") return "a chip to be paired to the unit"
  if (takesRetry(actor))
    return `somebody to find out why it failed and to retry it: ${failure ?? "no failure is recorded"}`
  return failure ? `nothing: it failed with ${failure}` : "nothing: all its work is done"
}

const lateMilliseconds = 60_000

/** Whether an operator's retry moves it. */
export function takesRetry(actor: ActorRow): boolean {
  const machine: AnyStateMachine = lifecycles[actor.machine as MachineName].machine
  const state = actor.state
    .split(".")
    .reduce<AnyStateNode | undefined>((node, key) => node?.states[key], machine.root)
  return state?.transitions.has("RETRY") ?? false
}

/** What is in the way of all its work, then why each of it is not done. */
async function openWork({ queries, askChain, keyFaults, now }: Sources, open: Work[]): Promise<string> {
  const troubles = await Promise.all([...new Set(open.map(chainOf))].map((id) => troubleOf(askChain, id)))
  const faults = keyFaults.filter((fault) => open.some((each) => isHeldUpBy(each, fault)))
  const turns = await Promise.all(open.map((each) => placeInTurn(queries, each)))
  const reasons = open.map((each, index) => `${reasonOf(each, now)}${turns[index] ?? ""}`)
  return [...troubles.flat(), ...faults.map(({ text }) => text), ...reasons].join("; ")
}

/** Wallets get no authorization that the chain would refuse because the authorizer lacks its role. */
function isHeldUpBy(work: Work, { chain_id, variable }: KeyFault): boolean {
  return (
    variable === "AUTHORIZER_KEY" && work.effect.src === "watchAuthorization" && chainOf(work) === chain_id
  )
}

/** How much work of its kind and organization is before it in its lane, where organizations take turns. */
async function placeInTurn(queries: Queries, { effect, transaction }: Work): Promise<string> {
  const { queue, src, organization_id, id } = effect
  if (transaction || src === "watchAuthorization") return ""
  const isOfSameOwner = organization_id
    ? eq(effects.organization_id, organization_id)
    : isNull(effects.organization_id)
  const isBefore = and(isOfSameOwner, eq(effects.src, src), lt(effects.id, id))
  const [before] = await queries
    .select({ effects: count() })
    .from(effects)
    .where(
      and(eq(effects.queue, queue), eq(effects.status, "open"), isNull(effects.transaction_id), isBefore),
    )
  const number = Number(before?.effects ?? 0)
  if (number === 0) return ""
  const [what, are] = number === 1 ? ["effect", "is"] : ["effects", "are"]
  return `; ${number} ${what} of its kind and organization ${are} ahead of it there`
}

async function deliveryOf(queries: Queries, actor: ActorRow): Promise<string> {
  const [state] = await webhookStates(queries, actor.organization_id, actor.id)
  const why = failureIn(actor) ?? state?.last_refusals[0]?.error
  const because = why ? `; last error: ${why}` : ""
  if (actor.state === "paused")
    return `somebody to enable it${because}; ${counted(state?.waiting ?? 0, "event waits", "events wait")}`
  if (!state?.waiting_since) return "nothing: all events are delivered"
  return `its receiver to accept ${counted(state.waiting, "event", "events")}, the oldest of which has waited since ${state.waiting_since}${because}`
}

/** A suspended organization's things cannot be acted on. */
async function suspension(queries: Queries, { organization_id }: ActorRow): Promise<string[]> {
  if (organization_id === null) return []
  const [organization] = await queries
    .select({ suspended_at: organizations.suspended_at })
    .from(organizations)
    .where(eq(organizations.id, organization_id))
  if (!organization?.suspended_at) return []
  return [`its organization has been suspended since ${organization.suspended_at.toISOString()}`]
}

async function troubleOf(askChain: AskChain, chainId: number | null): Promise<string[]> {
  const trouble = chainId === null ? null : await askChain(chainId)
  return trouble === null ? [] : [`chain ${chainId} ${trouble}`]
}

function chainOf({ effect, lane }: Work): number | null {
  const watched = effect.input.chain_id
  return lane?.chain_id ?? (typeof watched === "number" ? watched : null)
}
