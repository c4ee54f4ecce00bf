import { and, asc, count, eq, isNotNull, isNull, ne } from "drizzle-orm"
import { alias } from "drizzle-orm/pg-core"
import { foundOwners, foundSerials } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { chips, collections, units } from "../../db/schema.ts"

/** Serials found on chain after a restore whose chip is not paired again yet, by collection. */
export async function unaskedSerials(queries: Queries) {
  const { collection_id, serial, chip_id } = foundSerials
  const ofSerial = alias(units, "of_serial")
  const ofChip = alias(units, "of_chip")
  const rows = await queries
    .select({ collection_id, serials: count() })
    .from(foundSerials)
    .leftJoin(ofSerial, and(eq(ofSerial.collection_id, collection_id), eq(ofSerial.serial, serial)))
    .leftJoin(chips, eq(chips.chip_id, chip_id))
    .leftJoin(ofChip, and(eq(ofChip.id, chips.unit_id), eq(ofChip.collection_id, collection_id)))
    .where(and(isNull(ofSerial.id), isNull(ofChip.serial)))
    .groupBy(foundSerials.collection_id)
    .orderBy(asc(foundSerials.collection_id))
  return rows.map(({ collection_id, serials }) => ({ collection_id, serials: Number(serials) }))
}

/** Serials that no unit will get because their chip's unit has another, and who owns them on chain. */
export async function doubledSerials(queries: Queries) {
  const { collection_id, serial, chip_id } = foundSerials
  const ofSerial = alias(units, "of_serial")
  const ofChip = alias(units, "of_chip")
  return await queries
    .select({
      collection_id,
      serial,
      chip_id,
      owner: foundOwners.owner,
      unit_id: ofChip.id,
      unit_serial: ofChip.serial,
    })
    .from(foundSerials)
    .innerJoin(chips, eq(chips.chip_id, chip_id))
    .innerJoin(ofChip, and(eq(ofChip.id, chips.unit_id), eq(ofChip.collection_id, collection_id)))
    .leftJoin(ofSerial, and(eq(ofSerial.collection_id, collection_id), eq(ofSerial.serial, serial)))
    .innerJoin(collections, eq(collections.id, collection_id))
    .leftJoin(
      foundOwners,
      and(
        eq(foundOwners.collection_id, collection_id),
        eq(foundOwners.serial, serial),
        // In custody, the contract itself is the owner.
        ne(foundOwners.owner, collections.address),
      ),
    )
    .where(and(isNull(ofSerial.id), isNotNull(ofChip.serial)))
    .orderBy(asc(collection_id), asc(serial))
    .limit(mostDoubled)
}

const mostDoubled = 100

type DoubledSerial = Awaited<ReturnType<typeof doubledSerials>>[number]

/** What is wrong with a doubled serial, and what to do, in one line. */
export function describeDoubled(doubled: DoubledSerial): string {
  const { chip_id, serial, unit_serial, collection_id, unit_id, owner } = doubled
  const next =
    owner === null
      ? `leave ${serial} in custody, where nobody can claim it`
      : `${serial} belongs to ${owner}: have unit ${unit_id} claimed for the same owner, if it can still be claimed`
  return `chip ${chip_id} is bound to serials ${unit_serial} and ${serial} of collection ${collection_id}, and its unit has ${unit_serial}: ${next}`
}
