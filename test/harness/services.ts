import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { and, eq } from "drizzle-orm"
import { migrate } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import { type CollectionRow, chips, effects, lanes, organizations, products } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import { collectionAddress, collectionSalt } from "../../src/engine/chain/collection-address.ts"
import { wrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { createVirtualChip } from "../../src/engine/sun/virtual-chip.ts"
import type { Caller } from "../../src/platform/caller.ts"
import type { Chain, Chains } from "../../src/platform/chain.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { ApiError, type ErrorCode } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import type { Secret } from "../../src/platform/sealing.ts"
import { noTracing } from "../../src/platform/tracing.ts"
import { createWakeUps } from "../../src/platform/wake.ts"
import type { PairChipBody } from "../../src/resources/chips/model.ts"
import { checkPairing } from "../../src/resources/chips/pairing.ts"
import { type ChipView, pairChip } from "../../src/resources/chips/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import type { CreateUnitBody } from "../../src/resources/units/model.ts"
import { createUnit, type UnitView } from "../../src/resources/units/service.ts"
import type { Engine } from "./engines.ts"

/** The services with their own database, without HTTP and without a chain. */
export type TestService = {
  context: Context
  secret: Secret
  /** Moves the clock, which otherwise stands still. Setting it back counts as a correction: no time has passed. */
  setTime: (at: Date) => void
  turn: <T>(work: (turn: Turn) => Promise<T>) => Promise<T>
  close: () => Promise<void>
}

export const chainId = 31_337
const laneId = "issuance"

/** Services on a database of their own. */
export type OpenService = TestService & { database_url: string }

/** The same service as another process sees it. Its `db` has to be closed. */
export function besideOf({ context, database_url }: OpenService): Context {
  return { ...context, db: openDatabase(database_url) }
}

/** Starts the database engine and the services on a new database. */
export async function openService(engine: Engine): Promise<OpenService> {
  const folder = mkdtempSync(join(tmpdir(), "service-api-"))
  const config = loadConfig({
    SERVICE_SECRET: "a secret of tests that is long enough",
    DATA_DIR: folder,
    ...withoutRateLimits,
  })
  const running = await engine.start()
  const database_url = await running.newDatabase()
  const db = openDatabase(database_url)
  let now = new Date("2026-03-31T23:59:00.000Z")
  let passed = 0
  const wakeUps = createWakeUps()
  const context: Context = {
    config,
    db,
    clock: () => now,
    steadyClock: () => passed,
    chains,
    wake: wakeUps.wake,
    onWake: wakeUps.onWake,
    tell,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    tracing: noTracing,
    keyFaults: () => [],
  }
  await migrate(db, now)
  await db.transaction((tx) =>
    tx.insert(lanes).values({
      id: laneId,
      chain_id: chainId,
      address: factory,
      purpose: "all",
      status: "open",
      lease_epoch: 0,
      created_at: now,
    }),
  )
  return {
    context,
    secret: config.service_secret,
    database_url,
    setTime(at) {
      passed += Math.max(0, at.getTime() - now.getTime())
      now = at
    },
    turn: (work) => inTurn(context, null, work),
    async close() {
      await db.close()
      await running.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** A new organization and the holder of an API key of it. */
export async function createCaller(
  service: TestService,
  settings: Partial<typeof organizations.$inferInsert> = {},
): Promise<Caller> {
  const id = newId()
  await service.turn(({ tx, at }) =>
    tx.insert(organizations).values({
      id,
      name: "Maker",
      default_chain_id: chainId,
      allowed_chain_ids: [chainId],
      cors_origins: [],
      created_at: at,
      ...settings,
    }),
  )
  return { organization_id: id, kind: "api_key", credential_id: newId(), session: null }
}

export async function setOrganization(
  service: TestService,
  caller: Caller,
  settings: Partial<typeof organizations.$inferInsert>,
): Promise<void> {
  await service.turn(({ tx }) =>
    tx.update(organizations).set(settings).where(eq(organizations.id, caller.organization_id)),
  )
}

export async function createProduct(
  service: TestService,
  caller: Caller,
  redirect_url: string | null = null,
): Promise<string> {
  const id = newId()
  const { organization_id } = caller
  await service.turn(({ tx, at }) =>
    tx.insert(products).values({ id, organization_id, name: "Product", redirect_url, created_at: at }),
  )
  return id
}

/** A collection whose contract is deployed. */
export async function activeCollection(
  service: TestService,
  caller: Caller,
  body: { redirect_url?: string } = {},
): Promise<CollectionRow> {
  const collection = await service.turn((turn) =>
    createCollection(turn, service.context.chains, caller, { name: "Autumn Winter", ...body }),
  )
  await settle(service, collection.id, { transaction_hash: "0x01" })
  return { ...collection, status: "active" }
}

export function newUnit(
  service: TestService,
  caller: Caller,
  collection: CollectionRow,
  body: Omit<CreateUnitBody, "collection_id"> = {},
): Promise<UnitView> {
  return service.turn((turn) => createUnit(turn, caller, { collection_id: collection.id, ...body }))
}

/** Pairs a chip, as the route does. */
export async function pair(service: TestService, caller: Caller, body: PairChipBody): Promise<ChipView> {
  checkPairing(body)
  return await service.turn((turn) => pairChip(turn, service.secret, caller, body))
}

/** A unit of a new collection with a test chip. */
export async function pairedTestChip(service: TestService, caller: Caller): Promise<ChipView> {
  const unit = await newUnit(service, caller, await activeCollection(service, caller))
  return await pair(service, caller, { unit_id: unit.id, is_test: true })
}

/** Taps a test chip with its next value; returns the tap's ID. */
export async function recordedTap(service: TestService, caller: Caller, chip: ChipView): Promise<string> {
  const { chip_id } = chip
  const { tap } = await service.turn(async (turn) => {
    const { e } = await createTestTap(turn, service.secret, caller, { chip_id })
    return await createTap(turn, service.secret, caller, { chip_id, e })
  })
  if (!tap) throw new Error("only a dry run has no tap")
  return tap.id
}

/** An imported encoded chip; `tag` produces its values. */
export async function importedChip(
  service: Pick<TestService, "secret" | "turn">,
  caller: Caller,
  counter = 0,
  chip_id = randomBytes(5).toString("hex").toUpperCase(),
): Promise<{ chip_id: string; tag: SunChip }> {
  const tag = createVirtualChip()
  await service.turn(({ tx, at }) =>
    tx.insert(chips).values({
      chip_id,
      organization_id: caller.organization_id,
      is_test: false,
      uid: Buffer.from(tag.uid).toString("hex"),
      wrapped_keys: wrapChipKeys(service.secret, chip_id, tag),
      key_version: 1,
      counter,
      emitted_counter: counter,
      scan_count: 0,
      created_at: at,
    }),
  )
  return { chip_id, tag }
}

/** Settles the open effect of an actor. */
export async function settle(
  service: TestService,
  actorId: string,
  output: Record<string, unknown>,
): Promise<void> {
  const open = and(eq(effects.actor_id, actorId), eq(effects.status, "open"))
  const [effect] = await service.context.db.read.select().from(effects).where(open)
  if (!effect) throw new Error(`actor ${actorId} waits for nothing`)
  await service.turn((turn) => settleEffect(turn, effect.id, { output }))
}

/** The error code that a promise rejects with, and the fields that `validation.failed` names. */
export async function refusal(promise: Promise<unknown>): Promise<ErrorCode | { fields: string[] }> {
  try {
    await promise
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.details ? { fields: Object.keys(error.details.fieldErrors) } : error.code
  }
  throw new Error("this was not refused")
}

/** Tests send requests faster than callers; tests of the rate limits set their own. */
const withoutRateLimits = {
  RATE_LIMIT_API_KEY: "1000000/1",
  RATE_LIMIT_SESSION_TOKEN: "1000000/1",
  RATE_LIMIT_PUBLISHABLE_KEY: "1000000/1",
  RATE_LIMIT_FAILED_CREDENTIALS: "1000000/1",
  RATE_LIMIT_REFUSED_VALUES: "1000000/1",
  RATE_LIMIT_TAP_REDIRECTS: "1000000/1",
  RATE_LIMIT_METADATA: "1000000/1",
  RATE_LIMIT_KEPT_ANSWERS: "1000000/1",
}

const factory = "0x5FbDB2315678afecb367f032d93F642f64180aa3"

const chain: Chain = {
  chain_id: chainId,
  factory_address: factory,
  collectionAddress: ({ id, name, symbol }) =>
    collectionAddress(2, { factory, salt: collectionSalt(id), name, symbol }),
  issuanceLaneId: () => laneId,
  ownershipLaneId: () => laneId,
  ownerOf: noChain,
  ownershipOf: noChain,
  announcesMetadata: async () => true,
  authorizeClaim: noChain,
  authorizeTransfer: noChain,
}

const chains: Chains = new Map([[chainId, chain]])

async function noChain(): Promise<never> {
  throw new Error("these tests have no chain")
}
