import { eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type OrganizationRow, organizations } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Caller } from "../../platform/caller.ts"
import { canonicalRedirect } from "../../platform/fields.ts"
import { canonicalCorsOrigins } from "./cors-entry.ts"
import type { ReplaceCorsOriginsBody, UpdateSettingsBody } from "./model.ts"

export type Settings = Pick<
  OrganizationRow,
  "default_redirect_url" | "default_chain_id" | "allowed_chain_ids"
>

/** Returns the caller's organization. Organizations are never deleted. */
export async function organizationOf(queries: Queries, caller: Caller): Promise<OrganizationRow> {
  const [organization] = await organizationById(queries, { id: caller.organization_id })
  return existing(organization)
}

const organizationById = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(organizations).where(eq(organizations.id, id)),
)

export async function getSettings(queries: Queries, caller: Caller): Promise<Settings> {
  return await organizationOf(queries, caller)
}

/** Sets the default redirect. Throws `validation.failed` on `default_redirect_url`. */
export async function updateSettings(
  turn: Turn,
  caller: Caller,
  body: UpdateSettingsBody,
): Promise<Settings> {
  const [settings] = await turn.tx
    .update(organizations)
    .set({ default_redirect_url: canonicalRedirect(body.default_redirect_url, "default_redirect_url") })
    .where(own(caller))
    .returning(settingsColumns)
  return existing(settings)
}

export async function getCorsOrigins(queries: Queries, caller: Caller): Promise<string[]> {
  return (await organizationOf(queries, caller)).cors_origins
}

/** Replaces the whole list and returns it as stored. Throws `validation.failed` on `cors_origins`. */
export async function replaceCorsOrigins(
  turn: Turn,
  caller: Caller,
  body: ReplaceCorsOriginsBody,
): Promise<string[]> {
  const cors_origins = canonicalCorsOrigins(body.cors_origins)
  const [organization] = await turn.tx
    .update(organizations)
    .set({ cors_origins })
    .where(own(caller))
    .returning({ cors_origins: organizations.cors_origins })
  return existing(organization).cors_origins
}

/** Returns all non-empty lists by organization id. */
export async function listAllCorsOrigins(queries: Queries): Promise<Map<string, string[]>> {
  const rows = await corsLists(queries, {})
  return new Map(
    rows.filter(({ cors_origins }) => cors_origins.length > 0).map((row) => [row.id, row.cors_origins]),
  )
}

const corsLists = query((db) =>
  db.select({ id: organizations.id, cors_origins: organizations.cors_origins }).from(organizations),
)

const settingsColumns = {
  default_redirect_url: organizations.default_redirect_url,
  default_chain_id: organizations.default_chain_id,
  allowed_chain_ids: organizations.allowed_chain_ids,
}

function own(caller: Caller) {
  return eq(organizations.id, caller.organization_id)
}

function existing<Row>(organization: Row | undefined): Row {
  if (!organization) throw new Error("a credential names an organization that does not exist")
  return organization
}
