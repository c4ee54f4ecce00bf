import { failure } from "../../../machines/failures.ts"
import { type EventType, eventTypes } from "../../engine/events/types.ts"
import { examples } from "../openapi/examples.ts"

/** What each type of event tells, with an example, as Markdown. */
export function eventTypesMarkdown(): string {
  return eventTypes
    .map(
      (type) =>
        `### ${type}\n\n${told[type].when}\n\n\`\`\`json\n${JSON.stringify(exampleOf(type), null, 2)}\n\`\`\``,
    )
    .join("\n\n")
}

/** An event of this type, from the one story that all examples tell. */
export function exampleOf(type: EventType) {
  const { data, about = "unit", is_test = about === "unit" } = told[type]
  const { unit_id, collection_id } = examples.getEvent.response
  return {
    ...examples.getEvent.response,
    type,
    unit_id: about === "unit" ? unit_id : null,
    collection_id: about === "nothing" ? null : collection_id,
    is_test,
    data,
  }
}

type Told = { when: string; data: object; about?: "collection" | "nothing"; is_test?: boolean }

const collection = examples.getCollection.response
const pairedChip = { ...examples.getChip.response, ...examples.pairChip.response }
const claim = examples.getClaim.response
const transfer = examples.getTransfer.response
const replacement = examples.getChipReplacement.response

/** What a wallet's authorization shows after the 30 minutes in which it was not sent. */
const unsent = {
  status: "expired",
  transaction: transfer.transaction,
  transaction_hash: null,
  created_at: "2026-09-12T17:01:00.000Z",
  expires_at: "2026-09-12T17:31:00.000Z",
  updated_at: examples.getEvent.response.created_at,
}

const told: Record<EventType, Told> = {
  "collection.active": {
    when: "The contract of a collection was deployed: chips can be paired to its units.",
    data: collection,
    about: "collection",
  },
  "collection.failed": {
    when: "The deployment of a collection's contract failed.",
    data: {
      ...collection,
      contract: { ...collection.contract, status: "failed" },
      failure: failure("collection.deployment_reverted"),
    },
    about: "collection",
  },
  "unit.created": {
    when: "A unit was created. It has no chip yet, so `is_test` is false.",
    data: examples.createUnit.response,
    is_test: false,
  },
  "unit.issued": {
    when: "The token of a unit was issued on chain.",
    data: {
      ...examples.getUnit.response,
      ownership: { status: "custody", owner: null, updated_at: examples.getEvent.response.created_at },
    },
  },
  "chip.paired": { when: "A chip was paired to a unit.", data: pairedChip },
  "chip.tampered": {
    when: "The tamper wire of a chip was reported open for the first time: `tamper` is `opened` from now on.",
    data: { ...pairedChip, tamper: "opened" },
  },
  "tap.recorded": {
    when: "A tap was verified and recorded.",
    data: examples.listTaps.response.taps[0] ?? {},
  },
  "claim.created": { when: "A claim of a unit was created.", data: examples.createClaim.response },
  "claim.claimed": { when: "The chain has confirmed the claim.", data: claim },
  "claim.expired": {
    when: "The wallet did not send the claim in time.",
    data: { ...claim, ...unsent, execution: "client_broadcast" },
  },
  "claim.failed": {
    when: "A claim can no longer succeed.",
    data: { ...claim, status: "failed", failure: failure("claim.superseded") },
  },
  "transfer.created": {
    when: "A transfer was created, for the owner's wallet to send.",
    data: examples.createTransfer.response,
  },
  "transfer.confirmed": { when: "The chain has confirmed the transfer.", data: transfer },
  "transfer.expired": {
    when: "The wallet did not send the transfer in time.",
    data: { ...transfer, ...unsent },
  },
  "transfer.failed": {
    when: "A transfer can no longer succeed.",
    data: { ...transfer, status: "failed", failure: failure("transfer.superseded") },
  },
  "chip_replacement.created": {
    when: "A chip replacement of a unit was created.",
    data: examples.createChipReplacement.response,
  },
  "chip_replacement.confirmed": {
    when: "The chain has confirmed the chip replacement: the unit has the new chip.",
    data: replacement,
  },
  "chip_replacement.failed": {
    when: "A chip replacement failed: the unit keeps its chip.",
    data: { ...replacement, status: "failed", failure: failure("chip_replacement.locked") },
  },
  "ownership.changed": {
    when: "The owner of a unit changed on chain: by a claim, a transfer, or anything else that moved its token.",
    data: examples.getUnit.response,
  },
  "webhook_endpoint.paused": {
    when: "A webhook endpoint was paused, by you or after ten failed attempts at one event.",
    data: { ...examples.getWebhookEndpoint.response, status: "paused" },
    about: "nothing",
  },
  "webhook_endpoint.test": {
    when: "You asked for a test. It is sent only to that endpoint.",
    data: examples.getWebhookEndpoint.response,
    about: "nothing",
    is_test: true,
  },
}
