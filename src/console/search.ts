import { eq, inArray } from "drizzle-orm"
import { getAddress, isAddress } from "viem"
import { findActor } from "../actors/waiting.ts"
import type { Queries } from "../db/database.ts"
import {
  actors,
  chipReplacements,
  chips,
  claims,
  collections,
  effects,
  transactionAttempts,
  transfers,
  units,
} from "../db/schema.ts"
import { parseId } from "../ids.ts"

/** An actor that a search found, and by what. */
export type Found = { id: string; machine: string; state: string; by: string }

/** What was found of each kind is shown up to here. */
const mostOfEach = 50

/**
 * Finds actors of every organization by what people have in hand: an id, an external id, a chip, a serial, the hash of
 * a transaction, a contract's address. Each way goes through an index of its own.
 */
export async function search(queries: Queries, text: string): Promise<Found[]> {
  const words = text.trim()
  if (words === "") return []
  const ways = [byId, byExternalId, byChip, bySerial, byTransaction, byContract]
  const hits = (await Promise.all(ways.map((way) => way(queries, words)))).flat()
  const first = new Map(hits.map((hit) => [hit.id, hit]).reverse() as [string, Hit][])
  const found = await Promise.all([...first.values()].reverse().map((hit) => actorOf(queries, hit)))
  return found.flat()
}

type Hit = { id: string; by: string }

async function actorOf(queries: Queries, { id, by }: Hit): Promise<Found[]> {
  const rows = await queries
    .select({ id: actors.id, machine: actors.machine, state: actors.state })
    .from(actors)
    .where(eq(actors.id, id))
  return rows.map((row) => ({ ...row, by }))
}

async function byId(queries: Queries, text: string): Promise<Hit[]> {
  const id = parseId(text)
  if (!id) return []
  const actor = await findActor(queries, id)
  const owners = await queries.select({ id: effects.actor_id }).from(effects).where(eq(effects.id, id))
  return [
    ...(actor ? [{ id: actor.id, by: "id" }] : []),
    ...owners.map((owner) => ({ id: owner.id, by: "effect" })),
  ]
}

async function byExternalId(queries: Queries, text: string): Promise<Hit[]> {
  const lists = await Promise.all(
    [units, collections].map((table) =>
      queries.select({ id: table.id }).from(table).where(eq(table.external_id, text)).limit(mostOfEach),
    ),
  )
  return lists.flat().map(({ id }) => ({ id, by: "external id" }))
}

/** By a chip's id or UID: the unit it is paired to, and the replacements that it was part of. */
async function byChip(queries: Queries, text: string): Promise<Hit[]> {
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

async function bySerial(queries: Queries, text: string): Promise<Hit[]> {
  if (!/^\d{1,15}$/.test(text)) return []
  const rows = await queries
    .select({ id: units.id })
    .from(units)
    .where(eq(units.serial, Number(text)))
    .limit(mostOfEach)
  return rows.map(({ id }) => ({ id, by: "serial" }))
}

/** By a hash that a lane sent, or one that somebody's own wallet sent. */
async function byTransaction(queries: Queries, text: string): Promise<Hit[]> {
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

async function byContract(queries: Queries, text: string): Promise<Hit[]> {
  if (!isAddress(text, { strict: false })) return []
  const rows = await queries
    .select({ id: collections.id })
    .from(collections)
    .where(eq(collections.address, getAddress(text)))
    .limit(mostOfEach)
  return rows.map(({ id }) => ({ id, by: "contract" }))
}
