import { Value } from "@sinclair/typebox/value"
import { and, asc, desc, eq, isNull } from "drizzle-orm"
import { newCredential } from "../credentials.ts"
import type { Queries } from "../db/database.ts"
import { apiKeys, chips, type IdentitySettings, organizations, products } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError, fieldError } from "../errors.ts"
import { canonicalRedirect, name as nameSchema } from "../fields.ts"
import { newId, parseId } from "../ids.ts"

// What an operator does for an organization. There is no caller here: whoever runs these holds the database.

export type OrganizationRow = typeof organizations.$inferSelect
export type ApiKeyRow = typeof apiKeys.$inferSelect
export type ProductRow = typeof products.$inferSelect
export type ChipRow = typeof chips.$inferSelect

/** The default network is always among the allowed ones. Throws `validation.failed`. */
export async function createOrganization(
  turn: Turn,
  input: { name: string; default_chain_id: number | null; allowed_chain_ids: number[] },
): Promise<OrganizationRow> {
  requireText("name", input.name)
  const { default_chain_id } = input
  const [organization] = await turn.tx
    .insert(organizations)
    .values({
      id: newId(),
      name: input.name,
      default_chain_id,
      allowed_chain_ids: [
        ...new Set([...(default_chain_id === null ? [] : [default_chain_id]), ...input.allowed_chain_ids]),
      ],
      cors_origins: [],
      created_at: turn.at,
    })
    .returning()
  return inserted(organization)
}

/** Oldest first. */
export async function listOrganizations(queries: Queries): Promise<OrganizationRow[]> {
  return await queries
    .select()
    .from(organizations)
    .orderBy(asc(organizations.created_at), asc(organizations.id))
}

/** A new API key. `key` is the secret itself, which nobody can show again. */
export async function issueApiKey(
  turn: Turn,
  input: { organization_id: string; name: string | null },
): Promise<{ id: string; key: string; row: ApiKeyRow }> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  if (input.name !== null) requireText("name", input.name)
  const { token, hash, hint } = newCredential("api_key")
  const [row] = await turn.tx
    .insert(apiKeys)
    .values({
      id: newId(),
      organization_id: organization.id,
      name: input.name,
      hash,
      hint,
      created_at: turn.at,
    })
    .returning()
  return { id: inserted(row).id, key: token, row: inserted(row) }
}

/** Oldest first, the revoked ones too. */
export async function listApiKeys(queries: Queries, organizationId: string): Promise<ApiKeyRow[]> {
  const organization = await requireOrganization(queries, organizationId)
  return await queries
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.organization_id, organization.id))
    .orderBy(asc(apiKeys.created_at), asc(apiKeys.id))
}

/** Ends an API key. Ending it again changes nothing. Throws `not_found.resource`. */
export async function revokeApiKey(turn: Turn, apiKeyId: string): Promise<ApiKeyRow> {
  const id = parseId(apiKeyId)
  if (!id) throw noApiKey(apiKeyId)
  await turn.tx
    .update(apiKeys)
    .set({ revoked_at: turn.at })
    .where(and(eq(apiKeys.id, id), isNull(apiKeys.revoked_at)))
  const [row] = await turn.tx.select().from(apiKeys).where(eq(apiKeys.id, id))
  if (!row) throw noApiKey(apiKeyId)
  return row
}

/** Throws `validation.failed` on a name, external_id or redirect_url that is not allowed or taken. */
export async function createProduct(
  turn: Turn,
  input: { organization_id: string; name: string; external_id: string | null; redirect_url: string | null },
): Promise<ProductRow> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  requireText("name", input.name)
  if (input.external_id !== null) requireText("external_id", input.external_id)
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

/** Newest first. */
export async function listProducts(queries: Queries, organizationId: string): Promise<ProductRow[]> {
  const organization = await requireOrganization(queries, organizationId)
  return await queries
    .select()
    .from(products)
    .where(eq(products.organization_id, organization.id))
    .orderBy(desc(products.created_at), desc(products.id))
}

/** What may be set of quotas: a whole number, or null for unlimited. Quotas that are left out stay as they are. */
export type Quotas = {
  quota_units?: number | null
  quota_collections?: number | null
  quota_chips?: number | null
  quota_taps_per_month?: number | null
}

export async function setQuotas(
  turn: Turn,
  organizationId: string,
  quotas: Quotas,
): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, quotas)
}

/** How the organization's own sign-in names its customers; `requireIdentitySettings` has checked it. */
export async function setIdentity(
  turn: Turn,
  organizationId: string,
  identity: IdentitySettings,
): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, { identity })
}

/** Newest first. */
export async function listChipsOfOrganization(queries: Queries, organizationId: string): Promise<ChipRow[]> {
  const organization = await requireOrganization(queries, organizationId)
  return await queries
    .select()
    .from(chips)
    .where(eq(chips.organization_id, organization.id))
    .orderBy(desc(chips.created_at), asc(chips.chip_id))
}

/** Takes an unpaired chip out of use for good; once more changes nothing. Throws `chip.not_found` and why not. */
export async function retireChip(
  turn: Turn,
  input: { organization_id: string; chip_id: string },
): Promise<ChipRow> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  const ofChip = and(
    eq(chips.chip_id, input.chip_id.toUpperCase()),
    eq(chips.organization_id, organization.id),
  )
  const [retired] = await turn.tx
    .update(chips)
    .set({ retired_at: turn.at })
    .where(and(ofChip, isNull(chips.unit_id), isNull(chips.reserved_for), isNull(chips.retired_at)))
    .returning()
  if (retired) return retired
  const [chip] = await turn.tx.select().from(chips).where(ofChip)
  if (!chip) throw new ApiError("chip.not_found")
  if (chip.unit_id)
    throw new ApiError(
      "chip.already_paired",
      `The chip is paired with unit ${chip.unit_id}: give that unit another chip with a chip replacement.`,
    )
  if (chip.reserved_for)
    throw new ApiError(
      "chip_replacement.in_progress",
      `Chip replacement ${chip.reserved_for} has reserved the chip.`,
    )
  return chip
}

/** The organization, or `not_found.resource`. */
export async function requireOrganization(
  queries: Queries,
  organizationId: string,
): Promise<OrganizationRow> {
  const id = parseId(organizationId)
  const [organization] = id ? await queries.select().from(organizations).where(eq(organizations.id, id)) : []
  if (!organization)
    throw new ApiError(
      "not_found.resource",
      `There is no organization ${organizationId}: see organizations list.`,
    )
  return organization
}

async function changeOrganization(
  turn: Turn,
  organizationId: string,
  changes: Partial<OrganizationRow>,
): Promise<OrganizationRow> {
  const organization = await requireOrganization(turn.tx, organizationId)
  const [changed] = await turn.tx
    .update(organizations)
    .set(changes)
    .where(eq(organizations.id, organization.id))
    .returning()
  return inserted(changed)
}

function requireText(field: string, text: string): void {
  if (!Value.Check(nameSchema, text))
    throw fieldError(field, "must have 1 to 256 characters, without control characters")
}

function noApiKey(apiKeyId: string): ApiError {
  return new ApiError("not_found.resource", `There is no API key ${apiKeyId}: revoke by the id of keys list.`)
}

function inserted<Row>(row: Row | undefined): Row {
  if (!row) throw new Error("the database stored a row and did not return it")
  return row
}
