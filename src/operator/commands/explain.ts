import { wordsOf } from "../charts/chart.ts"
import type { Story } from "../stories/story.ts"
import { readKeyFaults } from "../verbs/chain-status.ts"
import { findStory } from "../verbs/explain.ts"
import type { Command } from "./command.ts"
import { fields, table } from "./text.ts"

export const explain: Command = {
  name: "explain",
  does: "tells the whole story of one thing, and what it waits for",
  takes: "WHAT  (an id, a paired chip, a name, an external id, a serial, a wallet, a transaction, a req_…)",
  about: `An id is that of a unit, a collection, a claim, a transfer, a chip replacement, a metadata refresh, a
webhook endpoint, an effect, a transaction or an organization. If WHAT leads to several things, these are listed: explain one of them by its id.`,
  argument: "WHAT",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context, chains }) => {
      const found = await findStory(context, argument, await readKeyFaults(chains))
      if (!Array.isArray(found)) return { document: found, text: textOf(found) }
      const text = table(found, { ID: "id", MACHINE: "machine", STATE: "state", "BY ITS": "by" })
      return { document: { found }, text }
    },
}

function textOf(story: Story): string {
  const { id, machine, organization_id, state, waits_for } = story
  const summary = fields({
    id,
    machine,
    organization: organization_id,
    state,
    since: story.since,
    "waits for": waits_for,
    retry: story.retryable.map(({ id: retried, would }) => `${retried} to ${would}`).join("; "),
  })
  const journal = table(story.journal, {
    NO: "number",
    AT: "at",
    EVENT: ({ event }) => wordsOf(event.type),
    FROM: "from_state",
    TO: "to_state",
    REQUEST: "request_id",
  })
  const work = table(story.effects, {
    EFFECT: "id",
    WHAT: "src",
    STATUS: "status",
    ATTEMPTS: "attempts",
    DUE: "due_at",
    "LAST ERROR": "last_error",
    REQUEST: "request_id",
  })
  const sent = table(story.transactions, {
    TRANSACTION: "id",
    LANE: "lane_id",
    NONCE: "nonce",
    STATUS: "status",
    BLOCK: "block_number",
    HASHES: ({ attempts }) => attempts.map(({ hash }) => hash).join(", "),
    "THE NODE SAID": ({ attempts }) => attempts.at(-1)?.last_error,
  })
  const others = table(story.related, { ID: "id", MACHINE: "machine", STATE: "state" })
  return [
    summary,
    `journal\n${journal}`,
    `effects\n${work}`,
    `transactions\n${sent}`,
    `same unit\n${others}`,
  ].join("\n\n")
}
