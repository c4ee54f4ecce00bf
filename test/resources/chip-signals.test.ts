import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { eq, sql } from "drizzle-orm"
import { chips, taps } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { moveChips } from "../../src/resources/chip-stock/service.ts"
import { createTestTap } from "../../src/resources/taps/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
  type Visitor,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { importedChip } from "../harness/services.ts"

const forged = "0".repeat(32)
const migration = join(import.meta.dir, "../../migrations/0025_summed_skips.sql")

describe.each(engines)("on $name a chip's signals", (engine) => {
  let service: HttpService
  let maker: Customer
  let visitor: Visitor

  beforeAll(async () => {
    service = await startService(engine)
    maker = await createCustomer(service, { cors_origins: ["https://shop.test"] })
    visitor = await createVisitor(service, maker)
  })
  afterAll(() => service.close())

  const signalsOf = async (chip_id: string) => {
    const { body } = await ask(service, `GET /v1/chips/${chip_id}`, { as: maker.key })
    const { chips } = (await ask(service, "GET /v1/chips", { as: maker.key })).body as { chips: Shown[] }
    const { skipped_count, refused_count, last_refused_at } = body
    const signals = { skipped_count, refused_count, last_refused_at }
    expect(chips.find((chip) => chip.chip_id === chip_id)).toMatchObject(signals)
    return signals
  }
  const read = () =>
    service.behind.turn((turn) =>
      createTestTap(turn, service.behind.secret, maker.caller, { chip_id: visitor.chip_id }),
    )
  const tap = (body: Record<string, unknown>, as = maker.key, headers = {}) =>
    ask(service, "POST /v1/taps", { as, headers, body: { chip_id: visitor.chip_id, ...body } })

  test("include the number of reads that were never sent: the sum of skipped", async () => {
    await read()
    await read()
    expect((await tap({ e: (await read()).e })).status).toBe(201)
    await read()
    expect((await tap({ e: (await read()).e })).status).toBe(201)
    expect(await signalsOf(visitor.chip_id)).toEqual({
      skipped_count: 3,
      refused_count: 0,
      last_refused_at: null,
    })
  })

  test("are summed once for each tap, not at each read, and stay correct after taps by a release that does not sum", async () => {
    const { db } = service.context
    const ofChip = eq(chips.chip_id, visitor.chip_id)
    const sums = async () => {
      const { summed_skips, summed_scans } = chips
      const [row] = await db.read.select({ summed_skips, summed_scans }).from(chips).where(ofChip)
      return row as { summed_skips: number; summed_scans: number }
    }
    const skippedCount = async () => (await signalsOf(visitor.chip_id)).skipped_count
    const change = (work: (turn: Turn) => Promise<unknown>) => service.behind.turn(work)
    const changeTaps = (by: number) =>
      change(({ tx }) =>
        tx
          .update(taps)
          .set({ skipped: sql`${taps.skipped} + ${by}` })
          .where(eq(taps.chip_id, visitor.chip_id)),
      )
    expect(await skippedCount()).toBe(3)
    await changeTaps(1)
    expect(await skippedCount()).toBe(3)
    await changeTaps(-1)

    const before = await sums()
    await read()
    expect((await tap({ e: (await read()).e })).status).toBe(201)
    await change(({ tx }) => tx.update(chips).set(before).where(ofChip))
    expect(await skippedCount()).toBe(4)
    await read()
    expect((await tap({ e: (await read()).e })).status).toBe(201)
    expect(await skippedCount()).toBe(5)
    expect(await sums()).toEqual({ summed_skips: 5, summed_scans: before.summed_scans + 2 })
  })

  test("were backfilled by the migration for chips with many taps", async () => {
    const other = await createVisitor(service, maker)
    const ofChip = eq(chips.chip_id, other.chip_id)
    const fill = /^update chips[^;]+/m.exec(readFileSync(migration, "utf8"))?.[0]
    const filled = async (scan_count: number) => {
      await service.behind.turn(async ({ tx }) => {
        await tx.update(taps).set({ skipped: 7 }).where(eq(taps.chip_id, other.chip_id))
        await tx.update(chips).set({ scan_count, summed_scans: 0 }).where(ofChip)
        await tx.execute(sql.raw(String(fill)))
      })
      const [row] = await service.context.db.read.select().from(chips).where(ofChip)
      return [row?.summed_skips, row?.summed_scans]
    }
    expect(await filled(100)).toEqual([0, 0])
    expect((await signalsOf(other.chip_id)).skipped_count).toBe(7)
    expect(await filled(101)).toEqual([7, 101])
    expect((await signalsOf(other.chip_id)).skipped_count).toBe(7)
  })

  test("count rejected values of e, whoever sent them, but not those of dry runs", async () => {
    const page = await publishableKeyOf(service, maker)
    const origin = { origin: "https://shop.test" }
    const refusals = await Promise.all([
      tap({ e: forged }),
      tap({ e: (await read()).e, c: "0".repeat(16) }),
      tap({ e: forged }, page, origin),
    ])
    expect(refusals.map(({ code }) => code)).toEqual(Array(3).fill("chip.invalid_e_value"))
    const at = service.context.clock().toISOString()
    expect(await signalsOf(visitor.chip_id)).toMatchObject({ refused_count: 3, last_refused_at: at })
    expect((await tap({ e: forged, dry_run: true })).code).toBe("chip.invalid_e_value")
    service.advance(1_000)
    expect((await tap({ e: forged })).code).toBe("chip.invalid_e_value")
    const later = service.context.clock().toISOString()
    expect(await signalsOf(visitor.chip_id)).toMatchObject({ refused_count: 4, last_refused_at: later })
  })

  test("count a rejected bulk pairing only for the chip whose value was wrong", async () => {
    const good = await importedChip(service.behind, maker.caller)
    const wrong = await importedChip(service.behind, maker.caller)
    const { collections } = (await ask(service, "GET /v1/collections", { as: maker.key })).body as {
      collections: { id: string }[]
    }
    const unit = async () =>
      (await ask(service, "POST /v1/units", { as: maker.key, body: { collection_id: collections[0]?.id } }))
        .body.id
    const chips = [
      { unit_id: await unit(), chip_id: good.chip_id, e: emitSun(good.tag, 1).e },
      { unit_id: await unit(), chip_id: wrong.chip_id, e: forged },
    ]
    const refused = await ask(service, "POST /v1/chips/bulk", { as: maker.key, body: { chips } })
    expect(refused.code).toBe("chip.invalid_e_value")
    expect((await signalsOf(good.chip_id)).refused_count).toBe(0)
    expect((await signalsOf(wrong.chip_id)).refused_count).toBe(1)
  })

  test("start at zero for a chip that moves to another organization", async () => {
    const before = await createCustomer(service)
    const { chip_id } = await importedChip(service.behind, before.caller)
    const refused = await ask(service, "POST /v1/taps", { as: before.key, body: { chip_id, e: forged } })
    expect(refused.code).toBe("chip.invalid_e_value")
    const [from, to] = [before.caller.organization_id, maker.caller.organization_id]
    expect(await service.behind.turn((turn) => moveChips(turn, { from, to, chip_ids: [chip_id] }))).toBe(1)
    expect(await signalsOf(chip_id)).toEqual({ skipped_count: 0, refused_count: 0, last_refused_at: null })
  })

  test("are not shown to browsers or other organizations", async () => {
    const page = await publishableKeyOf(service, maker)
    const shown = await tap({ e: (await read()).e }, page, { origin: "https://shop.test" })
    expect(shown.status).toBe(201)
    expect(shown.text).not.toContain("refused")
    expect(shown.text).not.toContain("skipped")
    const stranger = await createCustomer(service)
    const theirs = await ask(service, `GET /v1/chips/${visitor.chip_id}`, { as: stranger.key })
    expect(theirs.code).toBe("chip.not_found")
    const before = await signalsOf(visitor.chip_id)
    const guess = { chip_id: visitor.chip_id, e: forged }
    expect((await ask(service, "POST /v1/taps", { as: stranger.key, body: guess })).code).toBe(
      "chip.not_found",
    )
    expect(await signalsOf(visitor.chip_id)).toEqual(before)
  })
})

type Shown = Record<string, unknown>
