import { eq } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type ChipRow, chips, type UnitRow, units } from "../../src/db/schema.ts"

/** Reads the chip that is paired to a unit. */
export async function chipRowOf(queries: Queries, unitId: string): Promise<ChipRow> {
  const [row] = await queries.select().from(chips).where(eq(chips.unit_id, unitId))
  if (!row) throw new Error(`unit ${unitId} has no chip`)
  return row
}

export async function unitRowOf(queries: Queries, id: string): Promise<UnitRow> {
  const [row] = await queries.select().from(units).where(eq(units.id, id))
  if (!row) throw new Error(`there is no unit ${id}`)
  return row
}
