import { and, eq, isNull } from "drizzle-orm"
import { type Given, query } from "../../db/query.ts"
import { type UnitRow, units } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"

/** A token's owner according to the chain, null while in the service's custody, and the block that it was read from. */
export type SeenOwner = { owner: string | null; block_number: number }

type OwnedUnit = Pick<UnitRow, "id" | "owner" | "owner_block">

/** Returns whether the unit's known owner comes from a later block. */
export function isOutdated(
  { block_number }: SeenOwner,
  { owner_block }: Pick<OwnedUnit, "owner_block">,
): boolean {
  return owner_block !== null && block_number < owner_block
}

/** Stores the owner unless one from a later block is known. Returns whether the owner changed. */
export async function noteOwner(turn: Turn, unit: OwnedUnit, seen: SeenOwner): Promise<boolean> {
  if (isOutdated(seen, unit)) return false
  const { id, owner: known } = unit
  const { owner, block_number } = seen
  const isNew = owner !== known
  await updateOwner(turn.tx, {
    id,
    owner,
    owner_block: block_number,
    ...(isNew && { ownership_updated_at: turn.at }),
  })
  if (isNew) await turn.tell(turn, { new_owner_of: id })
  return isNew
}

/**
 * Stores the recipient of a claim as the owner, only while the unit is in custody: an owner read
 * from a block is never overwritten.
 */
export async function noteClaimed(turn: Turn, unitId: string, recipient: string): Promise<void> {
  const change = { id: unitId, owner: recipient, ownership_updated_at: turn.at }
  const [changed] = await claimUnit(turn.tx, change)
  if (changed) await turn.tell(turn, { new_owner_of: unitId })
}

type ChangedOwner = Pick<UnitRow, "id" | "owner"> & { ownership_updated_at: Date }

const updateOwner = query(
  (db, { id, ...changed }: Given<OwnedUnit & { owner_block: number; ownership_updated_at?: Date }>) =>
    db.update(units).set(changed).where(eq(units.id, id)),
)

const claimUnit = query((db, { id, ...changed }: Given<ChangedOwner>) =>
  db
    .update(units)
    .set(changed)
    .where(and(eq(units.id, id), isNull(units.owner)))
    .returning({ id: units.id }),
)
