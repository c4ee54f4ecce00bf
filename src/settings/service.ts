import { eq } from "drizzle-orm"
import type { Caller } from "../caller.ts"
import type { Queries } from "../db/database.ts"
import { organizations } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { canonicalRedirect } from "../fields.ts"
import { canonicalCorsOrigins } from "./cors-entry.ts"
import type { ReplaceCorsOriginsBody, UpdateSettingsBody } from "./model.ts"

export type Settings = Pick<
  typeof organizations.$inferSelect,
  "default_redirect_url" | "default_chain_id" | "allowed_chain_ids"
>

export async function getSettings(queries: Queries, caller: Caller): Promise<Settings> {
  const [settings] = await queries.select(settingsColumns).from(organizations).where(own(caller))
  return existing(settings)
}

/** Throws `validation.failed` on `default_redirect_url`. */
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
  const [organization] = await queries
    .select({ cors_origins: organizations.cors_origins })
    .from(organizations)
    .where(own(caller))
  return existing(organization).cors_origins
}

/** Replaces the whole list; answers it as it is stored. Throws `validation.failed` on `cors_origins`. */
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

/** The lists of all organizations that have one, by the organization's id. */
export async function listAllCorsOrigins(queries: Queries): Promise<Map<string, string[]>> {
  const rows = await queries
    .select({ id: organizations.id, cors_origins: organizations.cors_origins })
    .from(organizations)
  return new Map(
    rows.filter(({ cors_origins }) => cors_origins.length > 0).map((row) => [row.id, row.cors_origins]),
  )
}

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
