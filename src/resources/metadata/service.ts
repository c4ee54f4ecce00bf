import { and, eq } from "drizzle-orm"
import { type Address, getAddress } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type CollectionRow, collections, type UnitRow, units } from "../../db/schema.ts"
import { ApiError } from "../../platform/errors.ts"

/** What is public about a collection, and nothing more. */
export type PublicCollection = Pick<
  CollectionRow,
  "name" | "description" | "image_url" | "symbol" | "chain_id" | "address"
>

/** What is public about a unit, and nothing more. */
export type PublicToken = Pick<UnitRow, "name" | "description" | "image_url" | "metadata"> & {
  serial: number
  collection: PublicCollection
}

/** The parts of a metadata URL as sent. */
export type TokenAddress = { chain_id: string; address: string; serial: string }

/** Returns the collection of a deployed contract. Throws `not_found.resource`. */
export async function publicCollection(
  queries: Queries,
  asked: Omit<TokenAddress, "serial">,
): Promise<PublicCollection> {
  return (await contractAt(queries, asked)).collection
}

/** Returns an issued token. Throws `not_found.resource`. */
export async function publicToken(queries: Queries, asked: TokenAddress): Promise<PublicToken> {
  if (!isNumber(asked.serial)) throw nothingThere()
  const { id, collection } = await contractAt(queries, asked)
  const [unit] = await unitOfSerial(queries, { collection_id: id, serial: Number(asked.serial) })
  if (unit?.serial == null) throw nothingThere()
  return { ...unit, serial: unit.serial, collection }
}

async function contractAt(
  queries: Queries,
  { chain_id, address }: Omit<TokenAddress, "serial">,
): Promise<{ id: string; collection: PublicCollection }> {
  if (!isNumber(chain_id) || !/^0x[0-9a-f]{40}$/i.test(address)) throw nothingThere()
  const place = { chain_id: Number(chain_id), address: getAddress(address.toLowerCase() as Address) }
  const [found] = await activeCollectionAt(queries, place)
  if (!found) throw nothingThere()
  const { id, ...collection } = found
  return { id, collection }
}

function nothingThere(): ApiError {
  return new ApiError("not_found.resource")
}

/** Returns whether a number is written as the contract does: decimal, without leading zeros. */
function isNumber(text: string): boolean {
  return /^[1-9]\d{0,14}$/.test(text)
}

const activeCollectionAt = query((db, given: Given<{ chain_id: number; address: string }>) =>
  db
    .select({
      id: collections.id,
      name: collections.name,
      description: collections.description,
      image_url: collections.image_url,
      symbol: collections.symbol,
      chain_id: collections.chain_id,
      address: collections.address,
    })
    .from(collections)
    .where(
      and(
        eq(collections.address, given.address),
        eq(collections.chain_id, given.chain_id),
        eq(collections.status, "active"),
      ),
    ),
)

const unitOfSerial = query((db, given: Given<{ collection_id: string; serial: number }>) =>
  db
    .select({
      name: units.name,
      description: units.description,
      image_url: units.image_url,
      metadata: units.metadata,
      serial: units.serial,
    })
    .from(units)
    .where(and(eq(units.serial, given.serial), eq(units.collection_id, given.collection_id))),
)
