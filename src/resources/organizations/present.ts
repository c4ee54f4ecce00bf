import type { ApiKeyRow, ChipRow, OrganizationRow, ProductRow } from "../../db/schema.ts"
import type { ChipSignals } from "../chips/signals.ts"

// What the operator CLI shows of an organization's rows: no hash and no chip key.

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

/** Null is unlimited. */
export function presentQuotas(organization: OrganizationRow) {
  return {
    units: organization.quota_units,
    collections: organization.quota_collections,
    chips: organization.quota_chips,
    taps_per_month: organization.quota_taps_per_month,
  }
}

export function presentApiKey(apiKey: ApiKeyRow) {
  return {
    id: apiKey.id,
    organization_id: apiKey.organization_id,
    name: apiKey.name,
    hint: apiKey.hint,
    created_at: apiKey.created_at.toISOString(),
    expires_at: apiKey.expires_at?.toISOString() ?? null,
    revoked_at: apiKey.revoked_at?.toISOString() ?? null,
  }
}

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

export function presentStockChip(chip: ChipRow & ChipSignals) {
  return {
    chip_id: chip.chip_id,
    organization_id: chip.organization_id,
    is_test: chip.is_test,
    unit_id: chip.unit_id,
    reserved_for: chip.reserved_for,
    counter: chip.counter,
    scan_count: chip.scan_count,
    skipped_count: chip.skipped_count,
    refused_count: chip.refused_count,
    last_refused_at: chip.last_refused_at?.toISOString() ?? null,
    created_at: chip.created_at.toISOString(),
    paired_at: chip.paired_at?.toISOString() ?? null,
    retired_at: chip.retired_at?.toISOString() ?? null,
  }
}
