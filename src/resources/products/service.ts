import { desc, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ProductRow, products } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { fieldError } from "../../platform/errors.ts"
import { canonicalRedirect, requireName } from "../../platform/fields.ts"
import { newId } from "../../platform/ids.ts"
import { requireOrganization } from "../organizations/service.ts"

/**
 * Creates a product. Throws `validation.failed` on `name`, `external_id` or `redirect_url`, and `not_found.resource`.
 */
export async function createProduct(
  turn: Turn,
  input: { organization_id: string; name: string; external_id: string | null; redirect_url: string | null },
): Promise<ProductRow> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  requireName("name", input.name)
  if (input.external_id !== null) requireName("external_id", input.external_id)
  const redirect_url = canonicalRedirect(input.redirect_url)
  const [product] = await turn.tx
    .insert(products)
    .values({
      id: newId(),
      organization_id: organization.id,
      external_id: input.external_id,
      name: input.name,
      redirect_url,
      created_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!product) throw fieldError("external_id", "another product of the organization has it already")
  return product
}

/** Returns an organization's products, newest first. Throws `not_found.resource`. */
export async function listProducts(queries: Queries, organizationId: string): Promise<ProductRow[]> {
  const organization = await requireOrganization(queries, organizationId)
  return await queries
    .select()
    .from(products)
    .where(eq(products.organization_id, organization.id))
    .orderBy(desc(products.created_at), desc(products.id))
}
