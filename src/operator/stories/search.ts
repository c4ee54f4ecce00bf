import { desc, eq, inArray } from "drizzle-orm"
import { getAddress, isAddress } from "viem"
import type { Queries } from "../../db/database.ts"
import {
  actorEvents,
  chipReplacements,
  chips,
  claims,
  collections,
  effects,
  organizations,
  transactionAttempts,
  transfers,
  units,
} from "../../db/schema.ts"
import { findActor } from "../../engine/actors/runtime.ts"
import { parseId } from "../../platform/ids.ts"

/** An actor that a search found, and by what. */
export type Hit = { id: string; machine: string; state: string; by: string }

/** How many hits of each kind are shown. */
const mostOfEach = 50

/**
 * Finds actors of any organization by what people have at hand: any id, a name, a chip, a serial, a transaction,
 * or the address of a contract or wallet. Each way has its own index.
 */
export async function search(queries: Queries, text: string): Promise<Hit[]> {
  const words = text.trim()
  // Postgres accepts no NUL in text.
  if (words === "" || words.includes("\0")) return []
  const ways = [
    byId,
    byExternalId,
    byChip,
    bySerial,
    byTransactionId,
    byTransaction,
    byContract,
    byWallet,
    byRequest,
    byName,
    byOrganization,
  ]
  const leads = (await Promise.all(ways.map((way) => way(queries, words)))).flat()
  const first = new Map<string, Lead>()
  for (const lead of leads) if (!first.has(lead.id)) first.set(lead.id, lead)
  const found = await Promise.all([...first.values()].map((lead) => actorOf(queries, lead)))
  return found.flat()
}

/** An actor's id, and how it was found. */
type Lead = { id: string; by: string }

async function actorOf(queries: Queries, { id, by }: Lead): Promise<Hit[]> {
  const actor = await findActor(queries, id)
  return actor ? [{ id, machine: actor.machine, state: actor.state, by }] : []
}

async function byId(queries: Queries, text: string): Promise<Lead[]> {
  const id = parseId(text)
  if (!id) return []
  const actor = await findActor(queries, id)
  const owners = await queries.select({ id: effects.actor_id }).from(effects).where(eq(effects.id, id))
  return [
    ...(actor ? [{ id: actor.id, by: "id" }] : []),
    ...owners.map((owner) => ({ id: owner.id, by: "effect" })),
  ]
}

async function byExternalId(queries: Queries, text: string): Promise<Lead[]> {
  const lists = await Promise.all(
    [units, collections].map((table) =>
      queries.select({ id: table.id }).from(table).where(eq(table.external_id, text)).limit(mostOfEach),
    ),
  )
  return lists.flat().map(({ id }) => ({ id, by: "external id" }))
}

/** By a chip's id or UID: the unit it is paired to, and the chip replacements it was part of. */
async function byChip(queries: Queries, text: string): Promise<Lead[]> {
  const name = text.toUpperCase()
  if (!/^([0-9A-F]{10}|[0-9A-F]{14})$/.test(name)) return []
  const [chip] = await queries
    .select({ chip_id: chips.chip_id, unit_id: chips.unit_id, reserved_for: chips.reserved_for })
    .from(chips)
    .where(name.length === 10 ? eq(chips.chip_id, name) : inArray(chips.uid, [name, name.toLowerCase()]))
  if (!chip) return []
  const replacements = await queries
    .select({ id: chipReplacements.id, unit_id: chipReplacements.unit_id })
    .from(chipReplacements)
    .where(eq(chipReplacements.previous_chip_id, chip.chip_id))
    .limit(mostOfEach)
  return [
    ...[chip.unit_id, chip.reserved_for].flatMap((id) => (id ? [{ id, by: "chip" }] : [])),
    ...replacements.flatMap(({ id, unit_id }) => [
      { id: unit_id, by: "former chip" },
      { id, by: "former chip" },
    ]),
  ]
}

async function bySerial(queries: Queries, text: string): Promise<Lead[]> {
  if (!/^\d{1,15}$/.test(text)) return []
  const rows = await queries
    .select({ id: units.id })
    .from(units)
    .where(eq(units.serial, Number(text)))
    .limit(mostOfEach)
  return rows.map(({ id }) => ({ id, by: "serial" }))
}

/** By the id of a lane's transaction: all that it is for. */
async function byTransactionId(queries: Queries, text: string): Promise<Lead[]> {
  const id = parseId(text)
  if (!id) return []
  const rows = await queries
    .select({ id: effects.actor_id })
    .from(effects)
    .where(eq(effects.transaction_id, id))
    .limit(mostOfEach)
  return rows.map(({ id }) => ({ id, by: "transaction" }))
}

/** By the hash of a transaction that a lane or somebody's own wallet sent. */
async function byTransaction(queries: Queries, text: string): Promise<Lead[]> {
  const hash = text.toLowerCase()
  if (!/^0x[0-9a-f]{64}$/.test(hash)) return []
  const lists = await Promise.all([
    queries
      .select({ id: effects.actor_id })
      .from(transactionAttempts)
      .innerJoin(effects, eq(effects.transaction_id, transactionAttempts.transaction_id))
      .where(eq(transactionAttempts.hash, hash))
      .limit(mostOfEach),
    ...[claims, transfers].map((table) =>
      queries.select({ id: table.id }).from(table).where(eq(table.transaction_hash, hash)).limit(mostOfEach),
    ),
  ])
  return lists.flat().map(({ id }) => ({ id, by: "transaction" }))
}

async function byContract(queries: Queries, text: string): Promise<Lead[]> {
  if (!isAddress(text, { strict: false })) return []
  const rows = await queries
    .select({ id: collections.id })
    .from(collections)
    .where(eq(collections.address, getAddress(text)))
    .limit(mostOfEach)
  return rows.map(({ id }) => ({ id, by: "contract" }))
}

/** Claims and transfers to or from a wallet. */
async function byWallet(queries: Queries, text: string): Promise<Lead[]> {
  if (!isAddress(text, { strict: false })) return []
  const wallet = getAddress(text)
  const lists = await Promise.all([
    queries.select({ id: claims.id }).from(claims).where(eq(claims.recipient, wallet)).limit(mostOfEach),
    ...[transfers.recipient, transfers.sender].map((column) =>
      queries.select({ id: transfers.id }).from(transfers).where(eq(column, wallet)).limit(mostOfEach),
    ),
  ])
  return lists.flat().map(({ id }) => ({ id, by: "wallet" }))
}

/** Whatever a request triggered, at once or later. */
async function byRequest(queries: Queries, text: string): Promise<Lead[]> {
  if (!/^[a-z]+_[0-9a-f-]{36}$/.test(text)) return []
  const lists = await Promise.all([
    queries
      .selectDistinct({ id: actorEvents.actor_id })
      .from(actorEvents)
      .where(eq(actorEvents.request_id, text))
      .limit(mostOfEach),
    queries
      .selectDistinct({ id: effects.actor_id })
      .from(effects)
      .where(eq(effects.request_id, text))
      .limit(mostOfEach),
  ])
  return lists.flat().map(({ id }) => ({ id, by: "request" }))
}

async function byName(queries: Queries, text: string): Promise<Lead[]> {
  const lists = await Promise.all(
    [units, collections].map((table) =>
      queries.select({ id: table.id }).from(table).where(eq(table.name, text)).limit(mostOfEach),
    ),
  )
  return lists.flat().map(({ id }) => ({ id, by: "name" }))
}

/**
 * By an organization's id or name: its newest collections and units. There are few organizations, so no index is
 * needed.
 */
async function byOrganization(queries: Queries, text: string): Promise<Lead[]> {
  const id = parseId(text)
  const named = await queries
    .select({ id: organizations.id })
    .from(organizations)
    .where(id ? eq(organizations.id, id) : eq(organizations.name, text))
    .limit(mostOfEach)
  const ids = named.map((organization) => organization.id)
  if (ids.length === 0) return []
  const lists = await Promise.all(
    [collections, units].map((table) =>
      queries
        .select({ id: table.id })
        .from(table)
        .where(inArray(table.organization_id, ids))
        .orderBy(desc(table.created_at), desc(table.id))
        .limit(mostOfEach),
    ),
  )
  return lists.flat().map((row) => ({ id: row.id, by: "organization" }))
}
