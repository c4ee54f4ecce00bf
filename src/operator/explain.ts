import { eq } from "drizzle-orm"
import { type Story, storyOf } from "../actors/story.ts"
import { type ActorRow, findActor } from "../actors/waiting.ts"
import { createAskChain } from "../chain/ask-chain.ts"
import { wordsOf } from "../charts/chart.ts"
import type { Queries } from "../db/database.ts"
import { chips, effects } from "../db/schema.ts"
import { ApiError } from "../errors.ts"
import { parseId } from "../ids.ts"
import type { Command } from "./command.ts"
import { fields, table } from "./text.ts"

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
      const story = await storyOf(queries, createAskChain(context), actor, context.clock())
      return { document: story, text: textOf(story) }
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

function textOf(story: Story): string {
  const { id, machine, organization_id, state, waits_for } = story
  const journal = table(
    ["NO", "AT", "EVENT", "FROM", "TO", "REQUEST"],
    story.journal.map((entry) => [
      entry.number,
      entry.at,
      wordsOf(entry.event.type),
      entry.from_state,
      entry.to_state,
      entry.request_id,
    ]),
  )
  const work = table(
    ["EFFECT", "WHAT", "STATUS", "ATTEMPTS", "DUE", "LAST ERROR", "REQUEST"],
    story.effects.map((effect) => [
      effect.id,
      effect.src,
      effect.status,
      effect.attempts,
      effect.due_at,
      effect.last_error,
      effect.request_id,
    ]),
  )
  const sent = table(
    ["TRANSACTION", "LANE", "NONCE", "STATUS", "BLOCK", "HASHES"],
    story.transactions.map((each) => [
      each.id,
      each.lane_id,
      each.nonce,
      each.status,
      each.block_number,
      each.attempts.map(({ hash }) => hash).join(", "),
    ]),
  )
  const others = table(
    ["ID", "MACHINE", "STATE"],
    story.related.map((each) => [each.id, each.machine, each.state]),
  )
  return [
    fields({
      ...{ id, machine, organization: organization_id, state, since: story.since, "waits for": waits_for },
      retry: story.retryable.map(({ id: retried, would }) => `${retried} to ${would}`).join("; "),
    }),
    `journal\n${journal}`,
    `effects\n${work}`,
    `transactions\n${sent}`,
    `same unit\n${others}`,
  ].join("\n\n")
}
