import { Value } from "@sinclair/typebox/value"
import { and, asc, desc, eq, isNull } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import {
  type ApiKeyRow,
  apiKeys,
  type ChipRow,
  chips,
  type IdentitySettings,
  type OrganizationRow,
  organizations,
  type ProductRow,
  products,
} from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Chains } from "../../platform/chain.ts"
import { newCredential } from "../../platform/credentials.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { canonicalRedirect, name as nameSchema } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { isFree } from "../chips/encoded-chip.ts"
import { forgetUsage } from "../quotas/service.ts"

// What an operator does for an organization. There is no caller here: whoever runs these holds the database.

/** Throws `validation.failed` for a default network that the service is not configured for. */
export function requireConfiguredChain(chains: Chains, chainId: number | null): void {
  if (chainId === null || chains.has(chainId)) return
  const known = [...chains.keys()].join(", ") || "none"
  throw fieldError("default_chain_id", `network ${chainId} is not configured; CHAINS has: ${known}`)
}

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

/** What is given is changed; a default network becomes an allowed one. Throws `validation.failed`. */
export async function updateOrganization(
  turn: Turn,
  organizationId: string,
  changes: { name?: string; default_chain_id?: number; allowed_chain_ids?: number[] },
): Promise<OrganizationRow> {
  if (changes.name !== undefined) requireText("name", changes.name)
  const { default_chain_id, allowed_chain_ids } = await requireOrganization(turn.tx, organizationId)
  const first = changes.default_chain_id ?? default_chain_id
  const others = changes.allowed_chain_ids ?? allowed_chain_ids
  return await changeOrganization(turn, organizationId, {
    ...changes,
    allowed_chain_ids: [...new Set([...(first === null ? [] : [first]), ...others])],
  })
}

/** Refuses every credential of the organization until `resumeOrganization`; what is on its way goes on. */
export async function suspendOrganization(turn: Turn, organizationId: string): Promise<OrganizationRow> {
  const organization = await requireOrganization(turn.tx, organizationId)
  if (organization.suspended_at) return organization
  return await changeOrganization(turn, organizationId, { suspended_at: turn.at })
}

/** Takes the credentials of a suspended organization again. */
export async function resumeOrganization(turn: Turn, organizationId: string): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, { suspended_at: null })
}

/** A new API key. `key` is the secret itself, which nobody can show again. */
export async function issueApiKey(
  turn: Turn,
  input: { organization_id: string; name: string | null; expires_at?: Date | null },
): Promise<{ id: string; key: string; row: ApiKeyRow }> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  if (input.name !== null) requireText("name", input.name)
  const expires_at = input.expires_at ?? null
  if (expires_at && expires_at <= turn.at) throw fieldError("expires", "must be a time to come")
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
      expires_at,
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

/** The key that has this hash; null when there is none, or it was revoked or has expired. */
export async function findActiveApiKey(queries: Queries, hash: string, at: Date): Promise<HeldKey | null> {
  const [key] = await activeApiKey(queries, { hash })
  return key && !isOver(key, at) ? key : null
}

/** A key that was found, and since when its organization is suspended. */
export type HeldKey = {
  id: string
  organization_id: string
  expires_at: Date | null
  suspended_at: Date | null
}

/** Whether the time of a key that has an end is over. */
export function isOver({ expires_at }: { expires_at: Date | null }, at: Date): boolean {
  return expires_at !== null && expires_at <= at
}

const activeApiKey = query((db, { hash }: Given<{ hash: string }>) =>
  db
    .select({
      id: apiKeys.id,
      organization_id: apiKeys.organization_id,
      expires_at: apiKeys.expires_at,
      suspended_at: organizations.suspended_at,
    })
    .from(apiKeys)
    .innerJoin(organizations, eq(organizations.id, apiKeys.organization_id))
    .where(and(eq(apiKeys.hash, hash), isNull(apiKeys.revoked_at))),
)

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

/** What is there already counts against the new limits. */
export async function setQuotas(
  turn: Turn,
  organizationId: string,
  quotas: Quotas,
): Promise<OrganizationRow> {
  await forgetUsage(turn, organizationId)
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
    .where(and(ofChip, isFree))
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
