import type { OrganizationRow } from "../../db/schema.ts"

/** Returns an organization as the operator CLI shows it. */
export function presentOrganization(organization: OrganizationRow) {
  return {
    id: organization.id,
    name: organization.name,
    default_chain_id: organization.default_chain_id,
    allowed_chain_ids: organization.allowed_chain_ids,
    quotas: presentQuotas(organization),
    identity: organization.identity,
    suspended_at: organization.suspended_at?.toISOString() ?? null,
    created_at: organization.created_at.toISOString(),
  }
}

/** Returns the quotas; null is unlimited. */
export function presentQuotas(organization: OrganizationRow) {
  return {
    units: organization.quota_units,
    collections: organization.quota_collections,
    chips: organization.quota_chips,
    taps_per_month: organization.quota_taps_per_month,
  }
}
