import { eq } from "drizzle-orm"
import { chips, collections, lanes, units } from "../../src/db/schema.ts"
import { wrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { createVirtualChip, emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"

export type Fixture = {
  /** What the service's processes are started with. */
  environment: Record<string, string>
  organization_id: string
  collection_id: string
  api_key: string
  unit_ids: string[]
  /** A body of `POST /v1/taps` that no request had before: the chips in turn, each with its next value. */
  nextTap: () => { chip_id: string; e: string }
}

const serviceSecret = "a secret of benchmarks, long enough"

/** Fills an empty database with one organization, a collection, and units with a chip each. */
export async function fillDatabase(folder: string, databaseUrl: string, pairs: number): Promise<Fixture> {
  const environment = {
    SERVICE_SECRET: serviceSecret,
    DATA_DIR: folder,
    DATABASE_URL: databaseUrl,
    OPERATOR_PORT: "0",
    RATE_LIMIT_API_KEY: "100000000/1",
  }
  const world = await openWorld(loadConfig(environment), tell)
  const { context } = world
  const organization_id = await inTurn(context, null, async (turn) => {
    const input = { name: "Maker", default_chain_id: null, allowed_chain_ids: [31_337] }
    return (await createOrganization(turn, input)).id
  })
  const { key } = await inTurn(context, null, (turn) => issueApiKey(turn, { organization_id, name: null }))
  const collection_id = await insertCollection(context, organization_id)
  const unit_ids: string[] = []
  const tags: { chip_id: string; tag: SunChip; read: number }[] = []
  for (let first = 0; first < pairs; first += pairsAtOnce) {
    const size = Math.min(pairsAtOnce, pairs - first)
    const found = await insertPairs(context, { organization_id, collection_id, first, size })
    unit_ids.push(...found.map(({ unit_id }) => unit_id))
    tags.push(...found.map(({ chip_id, tag }) => ({ chip_id, tag, read: 0 })))
  }
  await world.close()

  let turn = 0
  return {
    environment,
    organization_id,
    collection_id,
    api_key: key,
    unit_ids,
    nextTap() {
      const next = tags[turn++ % tags.length] as (typeof tags)[number]
      next.read++
      return { chip_id: next.chip_id, e: emitSun(next.tag, next.read).e }
    },
  }
}

const pairsAtOnce = 500

async function insertCollection(context: Context, organization_id: string): Promise<string> {
  const id = newId()
  await inTurn(context, null, async ({ tx, at }) => {
    const known = await tx.select({ id: lanes.id }).from(lanes).where(eq(lanes.id, "bench"))
    if (known.length === 0)
      await tx.insert(lanes).values({
        id: "bench",
        chain_id: 31_337,
        address: "0x",
        purpose: "all",
        status: "open",
        lease_epoch: 0,
        created_at: at,
      })
    await tx.insert(collections).values({
      id,
      organization_id,
      name: "Autumn Jackets",
      symbol: "AUTUMN",
      chain_id: 31_337,
      address: `0x${id.replaceAll("-", "").padEnd(40, "0")}`,
      lane_id: "bench",
      next_serial: 1,
      status: "active",
      created_at: at,
    })
  })
  return id
}

async function insertPairs(
  context: Context,
  made: { organization_id: string; collection_id: string; first: number; size: number },
): Promise<{ unit_id: string; chip_id: string; tag: SunChip }[]> {
  const { organization_id, collection_id, first, size } = made
  const pairs = Array.from({ length: size }, (_, index) => ({
    number: first + index + 1,
    unit_id: newId(),
    chip_id: (first + index + 1).toString(16).toUpperCase().padStart(10, "0"),
    tag: createVirtualChip(),
  }))
  await inTurn(context, null, async ({ tx, at }) => {
    await tx.insert(units).values(
      pairs.map(({ number, unit_id }) => ({
        id: unit_id,
        organization_id,
        collection_id,
        external_id: `item-${number}`,
        name: `Jacket ${number}`,
        attributes: { colour: "green", size: "L" },
        token_status: "active" as const,
        serial: number,
        claimed: false,
        created_at: at,
      })),
    )
    await tx.insert(chips).values(
      pairs.map(({ unit_id, chip_id, tag }) => ({
        chip_id,
        organization_id,
        is_test: false,
        uid: Buffer.from(tag.uid).toString("hex"),
        wrapped_keys: wrapChipKeys({ current: serviceSecret, previous: null }, chip_id, tag),
        key_version: 1,
        counter: 0,
        emitted_counter: 0,
        scan_count: 0,
        unit_id,
        paired_at: at,
        created_at: at,
      })),
    )
  })
  return pairs
}
