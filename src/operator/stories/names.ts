import { eq, inArray } from "drizzle-orm"
import { metadataRefreshes } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { webhookEndpoints } from "../../db/event-schema.ts"
import {
  chipReplacements,
  claims,
  collections,
  organizations,
  sessionTokens,
  transfers,
  units,
} from "../../db/schema.ts"
import type { MachineName } from "../../engine/actors/lifecycles.ts"

/** What people call the thing an actor is about, and whose it is. */
export type Named = {
  name: string | null
  external_id: string | null
  /** The unit's serial, if it is about an issued unit. */
  serial: number | null
  /** Who has the unit, according to the chain. */
  owner: string | null
  /** Who gets the unit, by a claim or a transfer. */
  recipient: string | null
  organization: string
}

/** The names of one machine's actors, by their ids. */
export async function namesOf(
  queries: Queries,
  machine: MachineName,
  ids: string[],
): Promise<Map<string, Named>> {
  if (ids.length === 0) return new Map()
  const rows = await namedRows(queries, machine, ids)
  return new Map(
    rows.map(({ id, ...named }) => [id, { serial: null, owner: null, recipient: null, ...named }]),
  )
}

type NamedRow = Omit<Named, "serial" | "owner" | "recipient"> & Partial<Named> & { id: string }

async function namedRows(queries: Queries, machine: MachineName, ids: string[]): Promise<NamedRow[]> {
  switch (machine) {
    case "unit-token":
      return await queries
        .select({ id: units.id, ...ofUnit })
        .from(units)
        .innerJoin(organizations, eq(organizations.id, units.organization_id))
        .where(inArray(units.id, ids))
    case "collection-contract":
      return await queries
        .select({ id: collections.id, ...ofCollection })
        .from(collections)
        .innerJoin(organizations, eq(organizations.id, collections.organization_id))
        .where(inArray(collections.id, ids))
    case "metadata-refresh":
      return await queries
        .select({ id: metadataRefreshes.id, ...ofCollection })
        .from(metadataRefreshes)
        .innerJoin(collections, eq(collections.id, metadataRefreshes.collection_id))
        .innerJoin(organizations, eq(organizations.id, metadataRefreshes.organization_id))
        .where(inArray(metadataRefreshes.id, ids))
    case "webhook-endpoint":
      return await queries
        .select({
          id: webhookEndpoints.id,
          name: webhookEndpoints.description,
          external_id: webhookEndpoints.url,
          organization: organizations.name,
        })
        .from(webhookEndpoints)
        .innerJoin(organizations, eq(organizations.id, webhookEndpoints.organization_id))
        .where(inArray(webhookEndpoints.id, ids))
    case "claim":
    case "transfer": {
      const table = machine === "claim" ? claims : transfers
      return await queries
        .select({ id: table.id, recipient: table.recipient, ...ofUnit })
        .from(table)
        .innerJoin(units, eq(units.id, table.unit_id))
        .innerJoin(organizations, eq(organizations.id, table.organization_id))
        .where(inArray(table.id, ids))
    }
    case "chip-replacement":
    case "session-token": {
      const table = machine === "chip-replacement" ? chipReplacements : sessionTokens
      return await queries
        .select({ id: table.id, ...ofUnit })
        .from(table)
        .innerJoin(units, eq(units.id, table.unit_id))
        .innerJoin(organizations, eq(organizations.id, table.organization_id))
        .where(inArray(table.id, ids))
    }
  }
}

const ofCollection = {
  name: collections.name,
  external_id: collections.external_id,
  organization: organizations.name,
}

const ofUnit = {
  name: units.name,
  external_id: units.external_id,
  serial: units.serial,
  owner: units.owner,
  organization: organizations.name,
}
