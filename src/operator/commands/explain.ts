import { wordsOf } from "../charts/chart.ts"
import type { Story } from "../stories/story.ts"
import { readKeyFaults } from "../verbs/chain-status.ts"
import { findStory } from "../verbs/explain.ts"
import type { Command } from "./command.ts"
import { fields, table } from "./text.ts"

export const explain: Command = {
  name: "explain",
  does: "tells the whole story of one thing, and what it waits for",
  takes: "WHAT  (an id, a chip, a name, an external id, a serial, a wallet, a transaction, a req_…)",
  argument: "WHAT",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context, chains }) => {
      const faults = await readKeyFaults(chains)
      const found = await findStory({ ...context, keyFaults: () => faults }, argument)
      if (!Array.isArray(found)) return { document: found, text: textOf(found) }
      const rows = found.map((hit) => [hit.id, hit.machine, hit.state, hit.by])
      return { document: { found }, text: table(["ID", "MACHINE", "STATE", "BY ITS"], rows) }
    },
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
    ["TRANSACTION", "LANE", "NONCE", "STATUS", "BLOCK", "HASHES", "THE NODE SAID"],
    story.transactions.map((each) => [
      each.id,
      each.lane_id,
      each.nonce,
      each.status,
      each.block_number,
      each.attempts.map(({ hash }) => hash).join(", "),
      each.attempts.at(-1)?.last_error ?? null,
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
