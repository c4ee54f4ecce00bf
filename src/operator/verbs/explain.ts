import { eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ActorRow, chips, effects } from "../../db/schema.ts"
import { findActor } from "../../engine/actors/runtime.ts"
import type { Context } from "../../platform/context.ts"
import { parseId } from "../../platform/ids.ts"
import { createAskChain } from "../ask-chain.ts"
import { type Hit, search } from "../stories/search.ts"
import { type Story, storyOf } from "../stories/story.ts"
import { OperatorRefusal } from "./refusal.ts"

/**
 * The story of the actor that an id, an effect, a paired chip or a search leads to; if a search finds several, these.
 * Throws `OperatorRefusal`.
 */
export async function findStory(
  context: Context,
  text: string,
  keyFaults = context.keyFaults(),
): Promise<Story | Hit[]> {
  const queries = context.db.read
  const known = await namedActor(queries, text)
  const hits = known ? [] : await search(queries, text)
  const [only, another] = hits
  if (another) return hits
  const actor = known ?? (only ? await findActor(queries, only.id) : null)
  if (actor) {
    const sources = { queries, askChain: createAskChain(context), keyFaults, now: context.clock() }
    return await storyOf(sources, actor)
  }
  const isRequest = /^req_/.test(text)
  throw new OperatorRefusal(
    "not_found.resource",
    isRequest
      ? `Request ${text} has started nothing: if it was refused, its line in the log says why.`
      : `Nothing that can be explained has the id ${text}, or is otherwise known by it: see explain --help.`,
  )
}

async function namedActor(queries: Queries, text: string): Promise<ActorRow | null> {
  const actorId = parseId(text) ?? (await unitOfChip(queries, text))
  if (!actorId) return null
  return (await findActor(queries, actorId)) ?? (await actorOfEffect(queries, actorId))
}

async function unitOfChip(queries: Queries, chipId: string): Promise<string | null> {
  const [chip] = await queries
    .select({ unit_id: chips.unit_id })
    .from(chips)
    .where(eq(chips.chip_id, chipId.toUpperCase()))
  if (chip && !chip.unit_id)
    throw new OperatorRefusal("chip.not_paired", `Chip ${chipId} is not paired to a unit.`)
  return chip?.unit_id ?? null
}

async function actorOfEffect(queries: Queries, effectId: string): Promise<ActorRow | null> {
  const [effect] = await queries
    .select({ actor_id: effects.actor_id })
    .from(effects)
    .where(eq(effects.id, effectId))
  return effect ? await findActor(queries, effect.actor_id) : null
}
