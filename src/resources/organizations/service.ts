import { asc, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type IdentitySettings, type OrganizationRow, organizations } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Chains } from "../../platform/chain.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { requireName } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { forgetUsage } from "../quotas/service.ts"

// What operators do for an organization. There is no caller: whoever runs these has access to the database.

/** Throws `validation.failed` for a default chain that the service is not configured for. */
export function requireConfiguredChain(chains: Chains, chainId: number | null): void {
  if (chainId === null || chains.has(chainId)) return
  const known = [...chains.keys()].join(", ") || "none"
  throw fieldError("default_chain_id", `network ${chainId} is not configured; CHAINS has: ${known}`)
}

/** Creates an organization, whose default chain is always among the allowed ones. Throws `validation.failed`. */
export async function createOrganization(
  turn: Turn,
  input: { name: string; default_chain_id: number | null; allowed_chain_ids: number[] },
): Promise<OrganizationRow> {
  requireName("name", input.name)
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

/** Returns all organizations, oldest first. */
export async function listOrganizations(queries: Queries): Promise<OrganizationRow[]> {
  return await queries
    .select()
    .from(organizations)
    .orderBy(asc(organizations.created_at), asc(organizations.id))
}

/**
 * Changes only the given fields; a default chain also becomes an allowed one. Throws `validation.failed`,
 * `not_found.resource`.
 */
export async function updateOrganization(
  turn: Turn,
  organizationId: string,
  changes: { name?: string; default_chain_id?: number; allowed_chain_ids?: number[] },
): Promise<OrganizationRow> {
  if (changes.name !== undefined) requireName("name", changes.name)
  const { default_chain_id, allowed_chain_ids } = await requireOrganization(turn.tx, organizationId)
  const first = changes.default_chain_id ?? default_chain_id
  const others = changes.allowed_chain_ids ?? allowed_chain_ids
  return await changeOrganization(turn, organizationId, {
    ...changes,
    allowed_chain_ids: [...new Set([...(first === null ? [] : [first]), ...others])],
  })
}

/** Rejects every credential of the organization until `resumeOrganization`. Work in progress continues. */
export async function suspendOrganization(turn: Turn, organizationId: string): Promise<OrganizationRow> {
  const organization = await requireOrganization(turn.tx, organizationId)
  if (organization.suspended_at) return organization
  return await changeOrganization(turn, organizationId, { suspended_at: turn.at })
}

/** Accepts the credentials of a suspended organization again. */
export async function resumeOrganization(turn: Turn, organizationId: string): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, { suspended_at: null })
}

/** A whole number per quota, or null for unlimited. Omitted quotas stay as they are. */
export type Quotas = {
  quota_units?: number | null
  quota_collections?: number | null
  quota_chips?: number | null
  quota_taps_per_month?: number | null
}

/** Sets quotas. What already exists counts towards the new limits. Throws `not_found.resource`. */
export async function setQuotas(
  turn: Turn,
  organizationId: string,
  quotas: Quotas,
): Promise<OrganizationRow> {
  await forgetUsage(turn, organizationId)
  return await changeQuotas(turn, organizationId, quotas)
}

/** Changes quotas, but not what is counted towards them. Throws `not_found.resource`. */
export async function changeQuotas(
  turn: Turn,
  organizationId: string,
  quotas: Quotas,
): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, quotas)
}

/** Sets the sign-in that identifies the organization's customers. `requireIdentitySettings` must have accepted it. */
export async function setIdentity(
  turn: Turn,
  organizationId: string,
  identity: IdentitySettings,
): Promise<OrganizationRow> {
  return await changeOrganization(turn, organizationId, { identity })
}

/** Returns the organization. Throws `not_found.resource`. */
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

function inserted<Row>(row: Row | undefined): Row {
  if (!row) throw new Error("the database stored a row and did not return it")
  return row
}
