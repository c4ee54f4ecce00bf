import { eq } from "drizzle-orm"
import { type EventRow, webhookEndpoints } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import { chipReplacements, claims, collections, transfers } from "../../db/schema.ts"
import type { News, StepNews, TamperNews, TapNews, Turn } from "../../db/turn.ts"
import { recordEvent } from "../../engine/events/record.ts"
import type { EventType } from "../../engine/events/types.ts"
import { presentChipReplacement } from "../chip-replacements/present.ts"
import { presentObservedChip } from "../chips/present.ts"
import { chipOfUnit, getChip, type ObservedChip } from "../chips/service.ts"
import { presentClaim } from "../claims/present.ts"
import { presentCollection } from "../collections/present.ts"
import { presentTapRecord } from "../taps/present.ts"
import { presentTransfer } from "../transfers/present.ts"
import { presentUnit } from "../units/present.ts"
import { type UnitView, unitOfId } from "../units/service.ts"
import { presentWebhookEndpoint } from "../webhook-endpoints/present.ts"

/** Records what happened in the event feed, in the same database transaction. Some status changes have no event. */
export async function tell(turn: Turn, news: News): Promise<void> {
  if ("tap" in news) return await tellTap(turn, news)
  if ("new_owner_of" in news) return await tellOfUnit(turn, news.new_owner_of, "ownership.changed")
  if ("opened" in news) return await tellOpened(turn, news)
  await tellers[news.machine]?.(turn, news)
}

type TellStep = (turn: Turn, step: StepNews) => Promise<void>

const tellers: Record<string, TellStep> = {
  "collection-contract": tellCollection,
  "unit-token": tellUnit,
  claim: tellClaim,
  transfer: tellTransfer,
  "chip-replacement": tellChipReplacement,
  "webhook-endpoint": tellWebhookEndpoint,
}

async function tellTap(turn: Turn, { tap, collection_id }: TapNews): Promise<void> {
  const { organization_id, unit_id, is_test } = tap
  await recordEvent(turn, {
    type: "tap.recorded",
    organization_id,
    unit_id,
    collection_id,
    is_test,
    data: presentTapRecord(tap),
    endpoint_id: null,
  })
}

/** Records an event with the chip as its data: `tamper` is `opened`, and `unit` is null if it is not paired yet. */
async function tellOpened(turn: Turn, { opened: { chip_id, organization_id } }: TamperNews): Promise<void> {
  await tellOfChip(turn, "chip.tampered", await getChip(turn.tx, { organization_id }, chip_id))
}

const collectionTypes: Types = { active: "collection.active", failed: "collection.failed" }

async function tellCollection(turn: Turn, { id, to }: StepNews): Promise<void> {
  const type = collectionTypes[to]
  if (!type) return
  const [row] = await turn.tx.select().from(collections).where(eq(collections.id, id))
  const { organization_id } = there(row)
  await recordEvent(turn, {
    type,
    organization_id,
    unit_id: null,
    collection_id: id,
    is_test: false,
    data: presentCollection(there(row)),
    endpoint_id: null,
  })
}

async function tellUnit(turn: Turn, { id, from, to }: StepNews): Promise<void> {
  if (from === null) return await tellOfUnit(turn, id, "unit.created")
  if (from === "pending.unpaired") return await tellPairing(turn, id)
  if (from.startsWith("pending.") && to.startsWith("active")) await tellOfUnit(turn, id, "unit.issued")
}

async function tellPairing(turn: Turn, unitId: string): Promise<void> {
  await tellOfChip(turn, "chip.paired", there(await chipOfUnit(turn.tx, unitId)))
}

async function tellOfChip(turn: Turn, type: EventType, chip: ObservedChip): Promise<void> {
  const { organization_id, is_test, unit } = chip
  await recordEvent(turn, {
    type,
    organization_id,
    unit_id: unit?.id ?? null,
    collection_id: unit?.collection_id ?? null,
    is_test,
    data: presentObservedChip(chip),
    endpoint_id: null,
  })
}

/** Records an event whose data is the unit itself. */
async function tellOfUnit(turn: Turn, unitId: string, type: EventType): Promise<void> {
  const unit = await findUnit(turn, unitId)
  await recordEvent(turn, { ...placeOf(unit), type, data: presentUnit(unit), endpoint_id: null })
}

async function tellClaim(turn: Turn, { id, from, to }: StepNews): Promise<void> {
  const type = from === null ? "claim.created" : claimTypes[to]
  if (!type) return
  const [claim] = await claimOfId(turn.tx, { id })
  await tellAboutUnit(turn, type, there(claim).unit_id, presentClaim(there(claim)))
}

const claimOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(claims).where(eq(claims.id, id)),
)

const claimTypes: Types = { claimed: "claim.claimed", expired: "claim.expired", failed: "claim.failed" }

async function tellTransfer(turn: Turn, { id, from, to }: StepNews): Promise<void> {
  const type = from === null ? "transfer.created" : transferTypes[to]
  if (!type) return
  const [transfer] = await transferOfId(turn.tx, { id })
  await tellAboutUnit(turn, type, there(transfer).unit_id, presentTransfer(there(transfer)))
}

const transferOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(transfers).where(eq(transfers.id, id)),
)

const transferTypes: Types = {
  confirmed: "transfer.confirmed",
  expired: "transfer.expired",
  failed: "transfer.failed",
}

async function tellChipReplacement(turn: Turn, { id, from, to }: StepNews): Promise<void> {
  const type = from === null ? "chip_replacement.created" : chipReplacementTypes[to]
  if (!type) return
  const [row] = await replacementOfId(turn.tx, { id })
  await tellAboutUnit(turn, type, there(row).unit_id, presentChipReplacement(there(row)))
}

const replacementOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(chipReplacements).where(eq(chipReplacements.id, id)),
)

const chipReplacementTypes: Types = {
  confirmed: "chip_replacement.confirmed",
  failed: "chip_replacement.failed",
}

async function tellWebhookEndpoint(turn: Turn, { id, to }: StepNews): Promise<void> {
  if (to !== "paused") return
  const [row] = await turn.tx.select().from(webhookEndpoints).where(eq(webhookEndpoints.id, id))
  const { organization_id } = there(row)
  await recordEvent(turn, {
    type: "webhook_endpoint.paused",
    organization_id,
    unit_id: null,
    collection_id: null,
    is_test: false,
    data: presentWebhookEndpoint(there(row)),
    endpoint_id: null,
  })
}

type Types = Record<string, EventType | undefined>

async function tellAboutUnit(
  turn: Turn,
  type: EventType,
  unitId: string,
  data: Record<string, unknown>,
): Promise<void> {
  const place = placeOf(await findUnit(turn, unitId))
  await recordEvent(turn, { ...place, type, data, endpoint_id: null })
}

async function findUnit(turn: Turn, unitId: string): Promise<UnitView> {
  return there(await unitOfId(turn.tx, unitId))
}

type Place = Pick<EventRow, "organization_id" | "unit_id" | "collection_id" | "is_test">

function placeOf({ organization_id, id: unit_id, collection_id, is_test }: UnitView): Place {
  return { organization_id, unit_id, collection_id, is_test }
}

function there<Row>(row: Row | null | undefined): Row {
  if (!row) throw new Error("what an event is to tell of does not exist")
  return row
}
