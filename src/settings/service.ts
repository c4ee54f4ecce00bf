import { eq } from "drizzle-orm"
import type { Caller } from "../caller.ts"
import type { Queries } from "../db/database.ts"
import { organizations } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { canonicalRedirect } from "../fields.ts"
import type { UpdateSettingsBody } from "./model.ts"

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

const settingsColumns = {
  default_redirect_url: organizations.default_redirect_url,
  default_chain_id: organizations.default_chain_id,
  allowed_chain_ids: organizations.allowed_chain_ids,
}

function own(caller: Caller) {
  return eq(organizations.id, caller.organization_id)
}

function existing(settings: Settings | undefined): Settings {
  if (!settings) throw new Error("a credential names an organization that does not exist")
  return settings
}
