import type { ProductRow } from "../../db/schema.ts"

/** Returns a product as the operator CLI shows it. */
export function presentProduct(product: ProductRow) {
  return {
    id: product.id,
    organization_id: product.organization_id,
    external_id: product.external_id,
    name: product.name,
    redirect_url: product.redirect_url,
    created_at: product.created_at.toISOString(),
  }
}
