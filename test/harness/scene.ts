import type { Database, Queries } from "../../src/db/database.ts"
import {
  type chipReplacements,
  type chips,
  type claims,
  collections,
  lanes,
  organizations,
  type sessionTokens,
  type taps,
  type transfers,
  units,
} from "../../src/db/schema.ts"
import { loadConfig } from "../../src/platform/config.ts"
import type { Context } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { createLog } from "../../src/platform/log.ts"
import { noTracing } from "../../src/platform/tracing.ts"

export const startOfTime = new Date("2030-01-01T00:00:00.000Z")

/** A context with one database and no chains; its clock stands still until it is moved. */
export type TestContext = Context & {
  /** The queues woken so far. */
  woken: string[]
  advance(milliseconds: number): void
}

export function createTestContext(db: Database): TestContext {
  let now = startOfTime
  const woken: string[] = []
  return {
    config: loadConfig({ SERVICE_SECRET: "not a secret: 0123456789 abcdefghij", LOG_LEVEL: "silent" }),
    db,
    clock: () => now,
    steadyClock: () => now.getTime(),
    chains: new Map(),
    wake: (queue) => woken.push(queue),
    onWake: () => () => {},
    // Many of its actors have no row to update.
    tell: async () => {},
    log: createLog("silent"),
    tracing: noTracing,
    keyFaults: () => [],
    woken,
    advance(milliseconds) {
      now = new Date(now.getTime() + milliseconds)
    },
  }
}

/** One of each row that other rows refer to. */
export type Scene = { organization_id: string; lane_id: string; collection_id: string; unit_id: string }

export async function insertScene(tx: Queries): Promise<Scene> {
  const organization = organizationRow()
  const lane = laneRow()
  const scene = {
    organization_id: organization.id,
    lane_id: lane.id,
    collection_id: newId(),
    unit_id: newId(),
  }
  await tx.insert(organizations).values(organization)
  await tx.insert(lanes).values(lane)
  await tx.insert(collections).values(collectionRow(scene, { id: scene.collection_id }))
  await tx.insert(units).values(unitRow(scene, { id: scene.unit_id }))
  return scene
}

export function organizationRow() {
  return {
    id: newId(),
    name: "Maison Test",
    allowed_chain_ids: [31_337],
    cors_origins: [],
    created_at: startOfTime,
  } satisfies typeof organizations.$inferInsert
}

export function laneRow() {
  return {
    id: newId(),
    chain_id: 31_337,
    address: newAddress(),
    purpose: "all",
    status: "open",
    lease_epoch: 0,
    created_at: startOfTime,
  } satisfies typeof lanes.$inferInsert
}

export function collectionRow(scene: Scene, changes: Partial<typeof collections.$inferInsert> = {}) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    name: "Spring",
    symbol: "S",
    chain_id: 31_337,
    address: newAddress(),
    lane_id: scene.lane_id,
    next_serial: 1,
    status: "deploying",
    created_at: startOfTime,
    ...changes,
  } satisfies typeof collections.$inferInsert
}

/** A unit without a collection, with a pending token. */
export function unitRow(scene: Scene, changes: Partial<typeof units.$inferInsert> = {}) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    token_status: "pending",
    claimed: false,
    created_at: startOfTime,
    ...changes,
  } satisfies typeof units.$inferInsert
}

/** An unpaired test chip. */
export function chipRow(scene: Scene, changes: Partial<typeof chips.$inferInsert> = {}) {
  const chip_id = randomHex(5).toUpperCase()
  return {
    chip_id,
    organization_id: scene.organization_id,
    is_test: true,
    uid: randomHex(7).toUpperCase(),
    wrapped_keys: "wrapped",
    key_version: 1,
    counter: 0,
    emitted_counter: 0,
    scan_count: 0,
    created_at: startOfTime,
    ...changes,
  } satisfies typeof chips.$inferInsert
}

export function tapRow(scene: Scene, chip_id: string, changes: Partial<typeof taps.$inferInsert> = {}) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    chip_id,
    unit_id: scene.unit_id,
    is_test: true,
    key_version: 1,
    counter: 1,
    skipped: 0,
    created_at: startOfTime,
    ...changes,
  } satisfies typeof taps.$inferInsert
}

export function sessionTokenRow(scene: Scene, tap: { id: string; chip_id: string }) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    tap_id: tap.id,
    chip_id: tap.chip_id,
    unit_id: scene.unit_id,
    hash: randomHex(32),
    status: "valid",
    expires_at: new Date(startOfTime.getTime() + 600_000),
    created_at: startOfTime,
  } satisfies typeof sessionTokens.$inferInsert
}

export function claimRow(scene: Scene, changes: Partial<typeof claims.$inferInsert> = {}) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    unit_id: scene.unit_id,
    status: "claiming",
    execution: "service_relay",
    recipient: newAddress(),
    created_at: startOfTime,
    updated_at: startOfTime,
    ...changes,
  } satisfies typeof claims.$inferInsert
}

export function transferRow(scene: Scene, changes: Partial<typeof transfers.$inferInsert> = {}) {
  const sender = newAddress()
  return {
    id: newId(),
    organization_id: scene.organization_id,
    unit_id: scene.unit_id,
    status: "prepared",
    sender,
    recipient: newAddress(),
    transaction: { chain_id: 31_337, from: sender, to: newAddress(), data: "0x", value: "0x0" },
    authorization_digest: `0x${randomHex(32)}`,
    expires_at: new Date(startOfTime.getTime() + 1_800_000),
    created_at: startOfTime,
    updated_at: startOfTime,
    ...changes,
  } satisfies typeof transfers.$inferInsert
}

export function chipReplacementRow(
  scene: Scene,
  swap: { previous_chip_id: string; chip_id: string },
  changes: Partial<typeof chipReplacements.$inferInsert> = {},
) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    unit_id: scene.unit_id,
    status: "prepared",
    ...swap,
    created_at: startOfTime,
    updated_at: startOfTime,
    ...changes,
  } satisfies typeof chipReplacements.$inferInsert
}

function newAddress(): string {
  return `0x${randomHex(20)}`
}

function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex()
}
