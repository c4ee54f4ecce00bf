import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test"
import { AsyncLocalStorage } from "node:async_hooks"
import pg from "pg"
import type { Database } from "../../src/db/database.ts"
import type { CollectionRow } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { World } from "../../src/engine/world.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { quotas } from "../../src/operator/commands/quotas.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { usageByOrganization } from "../../src/resources/quotas/service.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  besideOf,
  createCaller,
  type OpenService,
  openService,
  pairedTestChip,
} from "../harness/services.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

// Only Postgres lets others commit between two statements of a tap, or makes a command wait for one.
describe.each(engines.filter(({ name }) => name === "postgres"))("on $name, `quotas set`", (engine) => {
  let service: OpenService
  let caller: Caller
  /** As another process sees the same service. */
  let beside: Context
  beforeAll(async () => {
    service = await openService(engine)
    beside = besideOf(service)
  })
  beforeEach(async () => {
    caller = await createCaller(service, { quota_taps_per_month: 9 })
    await tapWith(service.context)
  })
  afterAll(async () => {
    await beside.db.close()
    await service.close()
  })

  test("between two statements of a tap makes no tap exceed the quota, and counts each once", async () => {
    const outsideTheTap = AsyncLocalStorage.snapshot()
    let looks = 0
    const db = watchedDatabase(service.context.db, async ({ text, rows }) => {
      if (/^select .*"usage_counts"/.test(text) && ++looks <= 2) await outsideTheTap(() => setTaps(beside, 5))
      // Another tap counts anew, so that this one finds a count when it runs again.
      if (/^update "usage_counts"/.test(text) && rows.length === 0) await outsideTheTap(() => tapWith(beside))
    })
    await tapWith({ ...service.context, db })
    expect(looks).toBe(3)
    await tapWith(service.context)
    await expect(tapWith(service.context)).rejects.toMatchObject({ code: "quota.exceeded" })
  })

  test("is done at the first attempt, although there is always a tap that it waits for", async () => {
    const { db } = service.context
    let attempts = 0
    const busy: Database = {
      ...db,
      transaction: (work, isolation) =>
        // A serializable one changes no counts, so it waits for none.
        isolation === "serializable"
          ? db.transaction(work, isolation)
          : db.transaction(async (tx) => {
              attempts++
              const { over } = await countUntilWaitedFor(service.database_url)
              try {
                return await work(tx)
              } finally {
                await over
              }
            }, isolation),
    }
    await setTaps({ ...service.context, db: busy }, 3)
    expect(attempts).toBe(1)
  })

  const creations: Record<string, (turn: Turn, collection: CollectionRow) => Promise<unknown>> = {
    units: (turn, { id }) => createUnit(turn, caller, { collection_id: id }),
    collections: (turn) => createCollection(turn, service.context.chains, caller, { name: "Winter" }),
  }

  for (const [quota, create] of Object.entries(creations))
    test(`for the first time also counts ${quota} that are being created without the quota`, async () => {
      caller = await createCaller(service)
      const collection = await activeCollection(service, caller)
      const outside = AsyncLocalStorage.snapshot()
      let looks = 0
      const db = watchedDatabase(service.context.db, async ({ text }) => {
        if (!/^select .* from "organizations"/.test(text) || ++looks > 1) return
        await outside(async () => {
          await setQuota(beside, quota, 9)
          await inTurn(beside, null, (turn) => create(turn, collection))
        })
      })
      await inTurn({ ...service.context, db }, null, (turn) => create(turn, collection))
      const usage = await usageByOrganization(service.context.db.read, service.context.clock())
      const all = { units: 2, collections: 3 }[quota]
      expect(usage.get(caller.organization_id)).toMatchObject({ [quota]: all })
    })

  async function tapWith(context: Context): Promise<void> {
    const { chip_id } = await pairedTestChip(service, caller)
    const { e } = await service.turn((turn) => createTestTap(turn, service.secret, caller, { chip_id }))
    const tap = { chip_id, e }
    await inTurn(context, null, (turn) => createTap(turn, service.secret, caller, tap), "read committed")
  }

  const setTaps = (context: Context, taps: number) => setQuota(context, "taps-per-month", taps)

  async function setQuota(context: Context, name: string, limit: number): Promise<void> {
    const words = ["--organization", caller.organization_id, `--${name}`, `${limit}`]
    await quotas.plan(parseValues(quotas, words))({ context } as World)
  }
})

/** Changes all counts as a tap does, and commits once somebody waits for them. Returns when the counts are locked. */
async function countUntilWaitedFor(url: string): Promise<{ over: Promise<void> }> {
  const tap = new pg.Client(url)
  await tap.connect()
  await tap.query("begin")
  await tap.query("update usage_counts set used = used + 1")
  const waiting =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
  const over = async () => {
    while ((await tap.query(`${waiting} and pg_stat_clear_snapshot() is not null`)).rows.length === 0)
      await Bun.sleep(5)
    await tap.query("commit")
    await tap.end()
  }
  return { over: over() }
}
