import { and, eq, gt, inArray, sql } from "drizzle-orm"
import type { AnyStateMachine, ContextFrom, StateValueFrom } from "xstate"
import { chipReplacementMachine } from "../../../machines/chip-replacement.ts"
import { claimMachine } from "../../../machines/claim.ts"
import { collectionContractMachine } from "../../../machines/collection-contract.ts"
import { metadataRefreshMachine } from "../../../machines/metadata-refresh.ts"
import type { Migration } from "../../../machines/migration.ts"
import type { Outcome } from "../../../machines/outcome.ts"
import { sessionTokenMachine } from "../../../machines/session-token.ts"
import { transferMachine } from "../../../machines/transfer.ts"
import { unitTokenMachine } from "../../../machines/unit-token.ts"
import { webhookEndpointMachine } from "../../../machines/webhook-endpoint.ts"
import { type MetadataRefreshRow, metadataRefreshes } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { webhookEndpoints } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import {
  type ChipReplacementRow,
  type ClaimRow,
  type CollectionRow,
  chipReplacements,
  chips,
  claims,
  collections,
  type JournalEvent,
  type SessionTokenRow,
  sessionTokens,
  type TransferRow,
  transfers,
  type UnitRow,
  units,
} from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { usageCounts } from "../../db/usage-schema.ts"
import { noteClaimed } from "./owners.ts"

/** The machines, with what the runtime must know about each. An actor and the row it governs have the same id. */
export const lifecycles = {
  "unit-token": lifecycle({ machine: unitTokenMachine, journalled: true, project: projectUnitToken }),
  "collection-contract": lifecycle({
    machine: collectionContractMachine,
    journalled: true,
    project: projectCollectionContract,
  }),
  claim: lifecycle({ machine: claimMachine, journalled: true, project: projectClaim }),
  transfer: lifecycle({ machine: transferMachine, journalled: true, project: projectTransfer }),
  "chip-replacement": lifecycle({
    machine: chipReplacementMachine,
    journalled: true,
    project: projectChipReplacement,
  }),
  "metadata-refresh": lifecycle({
    machine: metadataRefreshMachine,
    journalled: true,
    project: projectMetadataRefresh,
  }),
  "webhook-endpoint": lifecycle({
    machine: webhookEndpointMachine,
    journalled: true,
    project: projectWebhookEndpoint,
  }),
  // Sessions are many and short-lived, so they have no journal.
  "session-token": lifecycle({
    machine: sessionTokenMachine,
    journalled: false,
    startOf: startOfSessionToken,
    project: projectSessionToken,
  }),
} as const

export type MachineName = keyof typeof lifecycles

export type Lifecycle<Machine extends AnyStateMachine = AnyStateMachine> = Definition<Machine> & {
  readonly migrations: readonly Migration[]
  /** The version of the snapshots that this machine stores: the number of its migrations plus one. */
  readonly version: number
}

type Definition<Machine extends AnyStateMachine> = {
  readonly machine: Machine
  /** Migrations for stored snapshots that no longer fit the machine, one for each step between versions. */
  readonly migrations?: readonly Migration[]
  readonly journalled: boolean
  /**
   * Reads from the governed row what an actor was started with; null if there is no such row. Actors of such a machine
   * are stored only on their first event; until then their state is computed from this.
   */
  startOf?(queries: Queries, id: string): Promise<Start | null>
  /** Writes a new state into the rows that the API reads, in the same database transaction. */
  project(turn: Turn, actor: ProjectedActor<Machine>, send: SendEvent): Promise<void>
}

type Start = { organization_id: string; input: Record<string, unknown>; started_at: Date }

export function lifecycle<Machine extends AnyStateMachine>(
  definition: Definition<Machine>,
): Lifecycle<Machine> {
  const { migrations = [] } = definition
  return { ...definition, migrations, version: migrations.length + 1 }
}

type ProjectedActor<Machine extends AnyStateMachine> = {
  id: string
  status: StatusOf<Machine>
  /** The full state path, such as `pending.issuing`. */
  state: string
  context: ContextFrom<Machine>
}

/** The machine's top-level states, which the API shows as `status`. */
type StatusOf<Machine extends AnyStateMachine> = TopLevel<StateValueFrom<Machine>>
type TopLevel<Value> = Value extends string ? Value : keyof Value & string

type SendEvent = (turn: Turn, actorId: string, event: JournalEvent) => Promise<unknown>

async function projectUnitToken(
  turn: Turn,
  { id, status, state, context }: ProjectedActor<typeof unitTokenMachine>,
): Promise<void> {
  // The row was created in this state and needs no change before issuance.
  if (status === "pending") return
  const { serial } = context
  const claimed = state === "active.claimed"
  const change = { id, token_status: status, serial, claimed }
  await updateUnit(turn.tx, { ...change, issued_at: turn.at })
}

type UnitChange = Pick<UnitRow, "id" | "token_status" | "serial" | "claimed"> & { issued_at: Date }

/** Issuance puts the token into custody, which dates its ownership unless an owner is already known. */
const updateUnit = query((db, { id, issued_at, ...changed }: Given<UnitChange>) =>
  db
    .update(units)
    .set({
      ...changed,
      ownership_updated_at: sql`coalesce(${units.ownership_updated_at}, ${issued_at})`,
    })
    .where(eq(units.id, id)),
)

async function projectCollectionContract(
  turn: Turn,
  { id, status, context: { failure } }: ProjectedActor<typeof collectionContractMachine>,
): Promise<void> {
  await updateCollection(turn.tx, { id, status, failure })
}

const updateCollection = query(
  (db, { id, ...changed }: Given<Pick<CollectionRow, "id" | "status" | "failure">>) =>
    db.update(collections).set(changed).where(eq(collections.id, id)),
)

async function projectClaim(
  turn: Turn,
  { id, status, context }: ProjectedActor<typeof claimMachine>,
  send: SendEvent,
): Promise<void> {
  await updateClaim(turn.tx, { id, status, ...outcomeOf(turn, context) })
  if (status !== "claimed") return
  await send(turn, context.unit_id, { type: "CLAIMED" })
  await noteClaimed(turn, context.unit_id, context.recipient)
}

const updateClaim = query((db, { id, ...changed }: Given<Ended<ClaimRow>>) =>
  db.update(claims).set(changed).where(eq(claims.id, id)),
)

async function projectTransfer(
  turn: Turn,
  { id, status, context }: ProjectedActor<typeof transferMachine>,
): Promise<void> {
  await updateTransfer(turn.tx, { id, status, ...outcomeOf(turn, context) })
}

const updateTransfer = query((db, { id, ...changed }: Given<Ended<TransferRow>>) =>
  db.update(transfers).set(changed).where(eq(transfers.id, id)),
)

async function projectChipReplacement(
  turn: Turn,
  { id, status, context }: ProjectedActor<typeof chipReplacementMachine>,
  send: SendEvent,
): Promise<void> {
  await updateReplacement(turn.tx, { id, status, ...outcomeOf(turn, context) })
  const { unit_id, previous_chip_id, chip_id } = context
  const reserved = { chip_id, seen_for: id, reserved_for: null }
  if (status === "failed" && (await releaseChip(turn.tx, reserved)).length > 0)
    await giveBackChip(turn.tx, { unit_id })
  if (status !== "confirmed") return
  await retireChip(turn.tx, { chip_id: previous_chip_id, unit_id, at: turn.at })
  await releaseChip(turn.tx, { ...reserved, unit_id, paired_at: turn.at })
  await send(turn, unit_id, { type: "CHIP_REPLACED", chip_id })
}

const updateReplacement = query((db, { id, ...changed }: Given<Ended<ChipReplacementRow>>) =>
  db.update(chipReplacements).set(changed).where(eq(chipReplacements.id, id)),
)

type Released = {
  chip_id: string
  seen_for: string
  reserved_for: null
  unit_id?: string
  paired_at?: Date
}

const releaseChip = query((db, { chip_id, seen_for, ...changed }: Given<Released>) =>
  db
    .update(chips)
    .set(changed)
    .where(and(eq(chips.chip_id, chip_id), eq(chips.reserved_for, seen_for)))
    .returning({ chip_id: chips.chip_id }),
)

const retireChip = query((db, given: Given<{ chip_id: string; unit_id: string; at: Date }>) =>
  db
    .update(chips)
    .set({ unit_id: null, retired_at: given.at })
    .where(and(eq(chips.chip_id, given.chip_id), eq(chips.unit_id, given.unit_id))),
)

/** Returns to the organization's quota, if chips are counted, the chip that a failed replacement had reserved. */
const giveBackChip = query((db, { unit_id }: Given<{ unit_id: string }>) =>
  db
    .update(usageCounts)
    .set({ used: sql`${usageCounts.used} - 1` })
    .where(
      and(
        inArray(
          usageCounts.organization_id,
          db.select({ id: units.organization_id }).from(units).where(eq(units.id, unit_id)),
        ),
        eq(usageCounts.quota, "chips"),
        gt(usageCounts.used, 0),
      ),
    ),
)

async function projectMetadataRefresh(
  turn: Turn,
  { id, status, context }: ProjectedActor<typeof metadataRefreshMachine>,
): Promise<void> {
  await updateRefresh(turn.tx, { id, status, ...outcomeOf(turn, context) })
}

const updateRefresh = query((db, { id, ...changed }: Given<Ended<MetadataRefreshRow>>) =>
  db.update(metadataRefreshes).set(changed).where(eq(metadataRefreshes.id, id)),
)

async function projectWebhookEndpoint(
  turn: Turn,
  { id, status, context }: ProjectedActor<typeof webhookEndpointMachine>,
): Promise<void> {
  const { failure } = context
  const changed = status === "deleted" ? { ...deleted, deleted_at: turn.at } : { status, failure }
  await turn.tx.update(webhookEndpoints).set(changed).where(eq(webhookEndpoints.id, id))
}

/** Also paused, so that neither this release nor the previous one queues or sends anything more. */
const deleted = {
  status: "paused",
  failure: null,
  replay_from: null,
  replay_until: null,
  replay_since: null,
  retry_from: null,
} as const

async function startOfSessionToken(queries: Queries, id: string): Promise<Start | null> {
  const [session] = await sessionTokenOfId(queries, { id })
  if (!session) return null
  const { organization_id, created_at, expires_at } = session
  const ttl_seconds = (expires_at.getTime() - created_at.getTime()) / 1000
  return { organization_id, input: { ttl_seconds }, started_at: created_at }
}

const sessionTokenOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(sessionTokens).where(eq(sessionTokens.id, id)),
)

async function projectSessionToken(
  turn: Turn,
  { id, status }: ProjectedActor<typeof sessionTokenMachine>,
): Promise<void> {
  await updateSessionToken(turn.tx, { id, status })
}

const updateSessionToken = query((db, { id, status }: Given<Pick<SessionTokenRow, "id" | "status">>) =>
  db.update(sessionTokens).set({ status }).where(eq(sessionTokens.id, id)),
)

/** The columns that a result changes in the row of a claim, transfer, chip replacement or metadata refresh. */
type Ended<Row extends ClaimRow | TransferRow | ChipReplacementRow | MetadataRefreshRow> = Pick<
  Row,
  "id" | "status" | "transaction_hash" | "failure" | "updated_at"
>

function outcomeOf({ at }: Turn, { transaction_hash, failure }: Outcome) {
  return { transaction_hash, failure, updated_at: at }
}
