import { and, asc, eq, sql } from "drizzle-orm"
import type { Address } from "viem"
import type { WatchAuthorizationInput } from "../../machines/authorization.ts"
import { type Given, query } from "../../src/db/query.ts"
import { claims, collections, effects, type UnitRow, units } from "../../src/db/schema.ts"
import { isOutdated } from "../../src/engine/actors/owners.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { least } from "../../src/engine/chain/extremes.ts"
import type { Header } from "../../src/engine/chain/headers.ts"
import { ChainUnreachable, unlessReverted } from "../../src/engine/chain/rpc.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { type Asker, readNonce } from "./authorization-outcome.ts"
import { askedBy, type Cursor, holdCursor } from "./chain-cursor.ts"
import { noteSeenOwner, ownerAt } from "./follow-owners.ts"

/**
 * Asks for the owners of claimed units that no longer have one, as after a reorganization undid the claim. A unit whose
 * claim can never come back returns to custody and can be claimed again. If the outcome is unknown, the next round asks
 * again. Throws `ReadByAnother`.
 */
export async function findLostOwners(
  { context, chain, deepest, isAgreed }: Asker,
  cursor: Cursor,
): Promise<void> {
  // What was read and what is asked must be of one fork.
  if (cursor?.owners_block_hash !== deepest.hash) return
  for (const unit of await unitsWithoutOwner(context.db.read, { chain_id: chain.chain_id })) {
    try {
      // Without agreement, the block may be one of the old fork, with owners that only that fork has.
      if (!(await isAgreed())) return
      await findLostOwner(context, chain, cursor, unit, deepest)
    } catch (error) {
      if (!(error instanceof ChainUnreachable)) throw error
    }
  }
}

type LostUnit = Pick<UnitRow, "id" | "claimed" | "owner" | "owner_block"> & {
  address: string
  serial: number
}

async function findLostOwner(
  context: Context,
  chain: ConnectedChain,
  cursor: Cursor,
  unit: LostUnit,
  deepest: Header,
): Promise<void> {
  const owner = await ownerAt(chain, unit.address as Address, unit.serial, deepest)
  const lost = owner === null ? await claimsLostForGood(context, chain, { unit_id: unit.id, deepest }) : []
  const isReturned = await inTurn(context, null, async (turn) => {
    await holdCursor(turn, chain, cursor, askedBy, null)
    const seen = { owner, block_number: Number(deepest.number) }
    const [now] = await unitOfId(turn.tx, { id: unit.id })
    // Another worker may have read later blocks, and a lane reports a claim without its block.
    if (!now || isOutdated(seen, now) || (owner === null && now.owner !== null)) return false
    await noteSeenOwner(turn, { ...unit, ...now }, seen)
    if (lost.length > 0) await sendEvent(turn, unit.id, { type: "RETURNED" })
    return lost.length > 0
  })
  if (!isReturned) return
  context.log.error(
    { unit_id: unit.id, actor_ids: lost },
    "the claim was reported as done, but a reorganization deeper than the confirmation depth undid it for good; the unit can be claimed again: to see whose it is, run: operator explain ID; tell them",
  )
}

/**
 * Phrased like the index in migrations/0020_lost_owners.sql. Units never asked about come first, those asked most
 * recently last; the expression is needed because the engines sort nulls differently.
 */
const unitsWithoutOwner = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db
    .select({
      id: units.id,
      claimed: units.claimed,
      owner: units.owner,
      owner_block: units.owner_block,
      address: collections.address,
      serial: sql<number>`${units.serial}`.mapWith(units.serial),
    })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(and(sql`${units.claimed} and ${units.owner} is null`, eq(collections.chain_id, chain_id)))
    .orderBy(sql`${units.owner_block} is not null`, asc(units.owner_block))
    .limit(mostAtOnce),
)

const mostAtOnce = 20

const unitOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select({ owner: units.owner, owner_block: units.owner_block }).from(units).where(eq(units.id, id)),
)

/**
 * Returns a unit's claims if none of them can come back: wallets sent them, with
 * authorizations that are void or expired.
 */
async function claimsLostForGood(
  { db }: Context,
  chain: ConnectedChain,
  { unit_id, deepest }: { unit_id: string; deepest: Header },
): Promise<string[]> {
  const standing = await standingClaims(db.read, { unit_id })
  const height = least(await chain.headers.finalHeight(), deepest.number)
  for (const { execution, expires_at, input } of standing) {
    // The lane of a relayed claim brings it back.
    if (execution === "service_relay" || expires_at === null) return []
    const final = await chain.headers.at(height)
    if (Number(final.timestamp) * 1_000 > expires_at.getTime()) continue
    const watch = input as WatchAuthorizationInput | null
    if (watch === null) return []
    const nonce = await unlessReverted(() => readNonce(chain.rpc, watch, final), null)
    if (nonce === null || nonce <= watch.authorization_nonce) return []
  }
  return standing.map(({ id }) => id)
}

const standingClaims = query((db, { unit_id }: Given<{ unit_id: string }>) =>
  db
    .select({
      id: claims.id,
      execution: claims.execution,
      expires_at: claims.expires_at,
      input: effects.input,
    })
    .from(claims)
    .leftJoin(effects, and(eq(effects.actor_id, claims.id), eq(effects.src, "watchAuthorization")))
    .where(and(eq(claims.unit_id, unit_id), eq(claims.status, "claimed"))),
)
