import { randomBytes } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { query } from "../db/query.ts"
import { effects, organizations } from "../db/schema.ts"
import { learnGenerations } from "../engine/chain/learn-generations.ts"
import { openWorld, type World } from "../engine/world.ts"
import type { Caller } from "../platform/caller.ts"
import {
  type Config,
  dataDirOf,
  type Environment,
  integerFrom,
  loadConfig,
  metadataBaseUrl,
} from "../platform/config.ts"
import { type Context, inTurn } from "../platform/context.ts"
import { hashOf } from "../platform/credentials.ts"
import { withFreePort } from "../platform/free-port.ts"
import { newId } from "../platform/ids.ts"
import { writeWholeAtOnce } from "../platform/whole-file.ts"
import { issueApiKey } from "../resources/api-keys/service.ts"
import { findActiveApiKey } from "../resources/credentials/held-key.ts"
import { tell } from "../resources/news/tell.ts"
import { createOrganization } from "../resources/organizations/service.ts"
import { ensurePublishableKey, listPublishableKeys } from "../resources/publishable-keys/service.ts"
import { mostOrigins } from "../resources/settings/model.ts"
import { getCorsOrigins, replaceCorsOrigins } from "../resources/settings/service.ts"
import { chainsFor, type DevChain, startDevChain } from "./chain.ts"
import { lockFolder } from "./data-lock.ts"
import { readDevEnvironment, writeDevEnvironment } from "./environment.ts"
import { startShop } from "./shop.ts"

/** What a running development service leaves in `DATA_DIR/dev.json` for the demo, tests and people. */
export type DevService = {
  base_url: string
  operator_url: string
  organization_id: string
  api_key: string
  publishable_key: string
  /** A page on another origin that calls the API like a brand's shop. */
  shop_url: string
  chain: { id: number; rpc_url: string }
  wallets: { address: string; private_key: string }[]
}

/** The parts of a service, passed in because this folder may not import the API or the operator port. */
type DevParts = {
  startServer(context: Context): Promise<{ base_url: string; stop(): Promise<void> }>
  startWorkers(world: World): { stop(): Promise<void> }
  startOperatorPort(world: World): Promise<{ url: string; stop(): Promise<void> }>
}

/** Runs the API, workers, database and a local chain in this process, with everything kept in `DATA_DIR`. */
export async function startDev(given: Environment, parts: DevParts) {
  const folder = dataDirOf(given)
  const closers: (() => unknown)[] = [lockFolder(folder)]
  const stop = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    let isAwaited = async () => true
    const left = readDevEnvironment(folder)
    const kept = keptService(folder)
    const environment = await withFreePort(given)
    const chain = await startDevChain({
      folder,
      port: integerFrom(environment, "DEV_CHAIN_PORT", 8545, 0, 65_535),
      isAwaited: () => isAwaited(),
      metadata_base_url: metadataBaseUrl(environment),
      last_metadata_base_url: left.METADATA_BASE_URL,
    })
    closers.push(chain.stop)

    const secret = environment.SERVICE_SECRET || left.SERVICE_SECRET || randomBytes(32).toString("hex")
    const settings = settingsFor(folder, chain, secret)
    const config = loadConfig({ ...environment, ...settings })
    const leave = () => leaveEnvironment(folder, settings, config, environment)
    // A new secret is saved before anything is sealed under it; a saved one is replaced only once the database has
    // taken the next.
    if (!left.SERVICE_SECRET) leave()
    const world = await openWorld(config, tell)
    closers.push(world.close)
    leave()
    await learnGenerations(world.context.db.read, world.chains.values())
    world.watchRoles()
    isAwaited = () => hasOpenEffects(world.context)
    const workers = parts.startWorkers(world)
    closers.push(workers.stop)
    const server = await parts.startServer(world.context)
    closers.push(server.stop)
    const operator = await parts.startOperatorPort(world)
    closers.push(operator.stop)

    const seeded = await seed(world.context, kept, chain, server.base_url)
    const { docs_url } = config
    const shop = startShop({ ...seeded, api_base_url: server.base_url, docs_url }, config.port + 1)
    closers.push(shop.stop)
    const service = { ...seeded, operator_url: operator.url, shop_url: shop.shop_url }
    await registerShop(world.context, service, kept?.shop_url)
    // Whoever waits for dev.json may have removed it; the copy still names the organization and its key.
    for (const name of ["dev.kept.json", "dev.json"]) writeDocument(join(folder, name), service)
    return { service, folder, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function hasOpenEffects({ db }: Context): Promise<boolean> {
  return (await openEffects(db.read, {})).length > 0
}

const openEffects = query((db) =>
  db.select({ id: effects.id }).from(effects).where(eq(effects.status, "open")).limit(1),
)

/** Variables that follow from the chain and the folder. */
function settingsFor(folder: string, chain: DevChain, secret: string): Record<string, string> {
  const chainsFile = join(folder, "chains.json")
  writeDocument(chainsFile, chainsFor(chain))
  return {
    CHAINS: chainsFile,
    SIGNER_KEYS: chain.signer_keys.join(","),
    AUTHORIZER_KEY: chain.authorizer_key,
    SERVICE_SECRET: secret,
  }
}

/** Saves what the operator CLI needs, so that it works with the folder alone. */
function leaveEnvironment(
  folder: string,
  settings: Record<string, string>,
  config: Config,
  { DATABASE_URL, SERVICE_SECRET_PREVIOUS }: Environment,
): void {
  const { api_base_url, docs_url, metadata_base_url } = config
  const addresses = {
    API_BASE_URL: api_base_url,
    DOCS_URL: docs_url,
    METADATA_BASE_URL: metadata_base_url,
  }
  const given = {
    ...(DATABASE_URL && { DATABASE_URL }),
    ...(SERVICE_SECRET_PREVIOUS && { SERVICE_SECRET_PREVIOUS }),
  }
  writeDevEnvironment(folder, { ...settings, ...addresses, ...given })
}

/** Creates the demo organization once; later its keys are read from `dev.json`, or replaced if they were revoked. */
async function seed(
  context: Context,
  kept: DevService | null,
  chain: DevChain,
  baseUrl: string,
): Promise<Omit<DevService, "operator_url" | "shop_url">> {
  const organization_id = (await keptOrganization(context, kept)) ?? (await newOrganization(context, chain))
  return {
    base_url: baseUrl,
    organization_id,
    api_key: await apiKeyOf(context, organization_id, kept?.api_key),
    publishable_key: await publishableKeyOf(context, organization_id),
    chain: { id: chain.chain_id, rpc_url: chain.rpc_url },
    wallets: chain.wallets,
  }
}

async function keptOrganization(context: Context, kept: DevService | null): Promise<string | null> {
  if (!kept) return null
  const [organization] = await context.db.read
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, kept.organization_id))
  return organization?.id ?? null
}

/** What this folder's dev service left when it last ran. */
function keptService(folder: string): DevService | null {
  const path = ["dev.json", "dev.kept.json"].map((name) => join(folder, name)).find(existsSync)
  return path ? (JSON.parse(readFileSync(path, "utf8")) as DevService) : null
}

/** Lets the shop's page call from a browser, instead of the previous one on another port. */
async function registerShop(
  context: Context,
  { organization_id, shop_url }: DevService,
  before?: string,
): Promise<void> {
  const caller = callerOf(organization_id)
  await inTurn(context, null, async (turn) => {
    const others = (await getCorsOrigins(turn.tx, caller)).filter(
      (origin) => origin !== before && origin !== shop_url,
    )
    if (others.length < mostOrigins)
      await replaceCorsOrigins(turn, caller, { cors_origins: [...others, shop_url] })
  })
}

async function newOrganization(context: Context, chain: DevChain): Promise<string> {
  return await inTurn(context, null, async (turn) => {
    const { id } = await createOrganization(turn, {
      name: "Demo",
      default_chain_id: chain.chain_id,
      allowed_chain_ids: [chain.chain_id],
    })
    return id
  })
}

/** The kept key of the organization, unless it is no longer accepted. */
async function apiKeyOf(context: Context, organization_id: string, kept?: string): Promise<string> {
  const held = kept && (await findActiveApiKey(context.db.read, hashOf(kept), context.clock()))
  if (held && held.organization_id === organization_id) return kept
  return await inTurn(context, null, async (turn) => {
    const { key } = await issueApiKey(turn, { organization_id, name: "demo" })
    return key
  })
}

async function publishableKeyOf(context: Context, organization_id: string): Promise<string> {
  const caller = callerOf(organization_id)
  return await inTurn(context, null, async (turn) => {
    await ensurePublishableKey(turn, caller)
    const page = { limit: 1, after: null }
    const { rows } = await listPublishableKeys(turn.tx, caller, { page, at: turn.at })
    return rows[0]?.key ?? ""
  })
}

/** A caller that acts like the demo organization's API key. */
function callerOf(organization_id: string): Caller {
  return { organization_id, kind: "api_key", credential_id: newId(), session: null }
}

function writeDocument(path: string, document: unknown): void {
  writeWholeAtOnce(path, `${JSON.stringify(document, null, 2)}\n`)
}
