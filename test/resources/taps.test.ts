import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import fc from "fast-check"
import { chips, sessionTokens, taps } from "../../src/db/schema.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { hashOf } from "../../src/platform/credentials.ts"
import { newId } from "../../src/platform/ids.ts"
import type { ChipView } from "../../src/resources/chips/service.ts"
import { updateCollection } from "../../src/resources/collections/service.ts"
import { holdToQuota } from "../../src/resources/quotas/service.ts"
import { presentCurrentSessionToken } from "../../src/resources/session-tokens/present.ts"
import {
  expireSessionToken,
  findSessionToken,
  isLive,
  revokeSessionToken,
} from "../../src/resources/session-tokens/service.ts"
import type { CreateTapBody } from "../../src/resources/taps/model.ts"
import { presentTap, presentTapRecord } from "../../src/resources/taps/present.ts"
import { createTap, createTestTap, listTaps } from "../../src/resources/taps/service.ts"
import { updateUnit } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  createCaller,
  createProduct,
  importedChip,
  newUnit,
  openService,
  pair,
  pairedTestChip,
  refusal,
  setOrganization,
  type TestService,
} from "../harness/services.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

describe.each(engines)("on $name", (engine) => {
  const start = new Date("2026-03-31T23:59:00.000Z")
  let service: TestService
  let caller: Caller
  let chip: ChipView

  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
    chip = await pairedTestChip(service, caller)
  })
  afterAll(() => service.close())

  const read = () => service.context.db.read
  const tap = (body: CreateTapBody, by = caller) =>
    service.turn((turn) => createTap(turn, service.secret, by, body))
  const emit = (chip_id = chip.chip_id, by = caller) =>
    service.turn((turn) => createTestTap(turn, service.secret, by, { chip_id }))
  const freshTap = async (chip_id = chip.chip_id, by = caller) => {
    const { e } = await emit(chip_id, by)
    return await tap({ chip_id, e }, by)
  }
  const rowOf = async (chip_id: string) => {
    const [row] = await read().select().from(chips).where(eq(chips.chip_id, chip_id))
    return row
  }
  const tapsOf = (chip_id: string) => read().select().from(taps).where(eq(taps.chip_id, chip_id))

  test("a tap is recorded and returns the chip, the unit and a session for both", async () => {
    const own = await pairedTestChip(service, caller)
    const { chip_id } = own
    const unit_id = own.unit?.id
    const { e, count } = await emit(chip_id)
    expect(count).toBe(1)
    const outcome = presentTap(await tap({ chip_id: chip_id.toLowerCase(), e }))
    expect(outcome).toMatchObject({
      chip: { chip_id, scan_count: 1, unit: { id: unit_id } },
      unit: { id: unit_id, chip_id, product_id: null },
      redirect_url: null,
      session_token: {
        token: expect.stringMatching(/^end_sess_/),
        expires_at: new Date(start.getTime() + 600_000).toISOString(),
        scope: { chip_id, unit_id, organization_id: caller.organization_id },
      },
    })
    expect((await tapsOf(chip_id)).map(presentTapRecord)).toEqual([
      {
        id: outcome.id ?? "",
        chip_id,
        unit_id: unit_id ?? "",
        is_test: true,
        counter: 1,
        skipped: 0,
        created_at: start.toISOString(),
      },
    ])
    expect(await rowOf(chip_id)).toMatchObject({ counter: 1, scan_count: 1 })
  })

  test("of a hundred concurrent taps with one value of e one is recorded", async () => {
    const own = await pairedTestChip(service, caller)
    const { e } = await emit(own.chip_id)
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        tap({ chip_id: own.chip_id, e }).then(
          () => "recorded",
          (error) => error.code,
        ),
      ),
    )
    expect(answers.filter((answer) => answer === "recorded")).toHaveLength(1)
    expect(answers.filter((answer) => answer === "chip.already_scanned")).toHaveLength(99)
    expect(await rowOf(own.chip_id)).toMatchObject({ counter: 1, scan_count: 1 })
    const sessions = eq(sessionTokens.chip_id, own.chip_id)
    expect(await read().select().from(sessionTokens).where(sessions)).toHaveLength(1)
  })

  test("in whatever order values arrive, only counters above all earlier ones are recorded", async () => {
    const unit = await newUnit(service, caller, await activeCollection(service, caller))
    const { chip_id, tag } = await importedChip(service, caller)
    await pair(service, caller, { unit_id: unit.id, chip_id, e: emitSun(tag, 1).e })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 20 }), async (counters) => {
        await service.turn(async ({ tx }) => {
          await tx.delete(sessionTokens).where(eq(sessionTokens.chip_id, chip_id))
          await tx.delete(taps).where(eq(taps.chip_id, chip_id))
          await tx.update(chips).set({ counter: 1, scan_count: 0 }).where(eq(chips.chip_id, chip_id))
        })
        let last = 1
        let recorded = 0
        for (const counter of counters) {
          const attempt = tap({ chip_id, ...emitSun(tag, counter) })
          if (counter <= last) expect(await refusal(attempt)).toBe("chip.already_scanned")
          else {
            const outcome = await attempt
            expect(outcome.tap).toMatchObject({ counter, skipped: counter - last - 1, is_test: false })
            last = counter
            recorded++
          }
        }
        expect(await rowOf(chip_id)).toMatchObject({ counter: last, scan_count: recorded })
      }),
      { numRuns: 20 },
    )
  })

  describe("nothing is recorded", () => {
    test("for a value of e from another chip, or an invalid c", async () => {
      const before = await rowOf(chip.chip_id)
      const other = await pairedTestChip(service, caller)
      const { e } = await emit(other.chip_id)
      expect(await refusal(tap({ chip_id: chip.chip_id, e }))).toBe("chip.invalid_e_value")
      const wrongC = tap({ chip_id: other.chip_id, e, c: "0123456789ABCDEF" })
      expect(await refusal(wrongC)).toBe("chip.invalid_e_value")
      expect(await rowOf(chip.chip_id)).toEqual(before)
      expect(await rowOf(other.chip_id)).toMatchObject({ counter: 0, scan_count: 0 })
    })

    test("for another organization's chip, which is not found", async () => {
      const stranger = await createCaller(service)
      const { e } = await emit()
      expect(await refusal(tap({ chip_id: chip.chip_id, e }, stranger))).toBe("chip.not_found")
      expect(await refusal(tap({ chip_id: "FFFFFFFFFF", e }))).toBe("chip.not_found")
      await tap({ chip_id: chip.chip_id, e })
    })

    test("for an authentic chip without a unit, where a forged value of e still gets another error", async () => {
      const { chip_id, tag } = await importedChip(service, caller)
      expect(await refusal(tap({ chip_id, e: emitSun(tag, 1).e }))).toBe("unit.not_found")
      expect(await refusal(tap({ chip_id, e: "0".repeat(32) }))).toBe("chip.invalid_e_value")
      expect(await rowOf(chip_id)).toMatchObject({ counter: 0, scan_count: 0 })
    })

    test("beyond a quota, and no statement is executed that would have to be rolled back with its group commit", async () => {
      const { organization_id: id } = await createCaller(service)
      const quotas = { quota_units: null, quota_collections: null, quota_chips: null }
      const written: string[] = []
      const db = watchedDatabase(service.context.db, ({ text }) => {
        if (!text.startsWith("select")) written.push(text)
      })
      const hold = () =>
        inTurn({ ...service.context, db }, null, (turn) =>
          holdToQuota(turn, { id, ...quotas, quota_taps_per_month: 1 }, "taps_per_month", 1),
        )
      await hold()
      written.splice(0)
      expect(await refusal(hold())).toBe("quota.exceeded")
      expect(written).toEqual([])
    })

    test("beyond the quota of taps per calendar month, which starts at midnight UTC", async () => {
      const small = await createCaller(service, { quota_taps_per_month: 1 })
      const { chip_id } = await pairedTestChip(service, small)
      await freshTap(chip_id, small)
      const { e } = await emit(chip_id, small)
      expect(await refusal(tap({ chip_id, e, dry_run: true }, small))).toBe("quota.exceeded")
      expect(await refusal(tap({ chip_id, e }, small))).toBe("quota.exceeded")
      expect(await rowOf(chip_id)).toMatchObject({ counter: 1, scan_count: 1 })
      service.setTime(new Date("2026-04-01T00:00:00.000Z"))
      expect((await tap({ chip_id, e }, small)).tap?.counter).toBe(2)
      service.setTime(start)
    })
  })

  describe("a dry run", () => {
    test("returns what the tap would, without an ID and a session, and e stays usable", async () => {
      const { e } = await emit()
      const before = await rowOf(chip.chip_id)
      const dry = presentTap(await tap({ chip_id: chip.chip_id, e, dry_run: true }))
      expect(await rowOf(chip.chip_id)).toEqual(before)
      const real = presentTap(await tap({ chip_id: chip.chip_id, e }))
      expect(dry).toEqual({ ...real, id: null, session_token: null })
    })

    test("rejects what the tap would reject", async () => {
      const { e } = await emit()
      await tap({ chip_id: chip.chip_id, e })
      const body = { chip_id: chip.chip_id, dry_run: true }
      expect(await refusal(tap({ ...body, e }))).toBe("chip.already_scanned")
      expect(await refusal(tap({ ...body, e: "F".repeat(32) }))).toBe("chip.invalid_e_value")
    })
  })

  describe("with a publishable key", () => {
    const browser = () => ({ ...caller, kind: "publishable_key" as const })

    test("a session lasts 600 seconds, whatever ttl is requested", async () => {
      const { e } = await emit()
      const { session } = await tap({ chip_id: chip.chip_id, e, ttl: 60 }, browser())
      expect(session?.session.expires_at).toEqual(new Date(start.getTime() + 600_000))
    })

    test("a dry run is rejected and e stays usable", async () => {
      const { e } = await emit()
      expect(await refusal(tap({ chip_id: chip.chip_id, e, dry_run: true }, browser()))).toBe(
        "auth.forbidden",
      )
      expect((await tap({ chip_id: chip.chip_id, e }, browser())).tap).not.toBeNull()
    })
  })

  test("a tap returns the most specific redirect", async () => {
    const owner = await createCaller(service)
    const collection = await activeCollection(service, owner)
    const unit = await newUnit(service, owner, collection)
    const { chip_id } = await pair(service, owner, { unit_id: unit.id, is_test: true })
    const redirect = async () => (await freshTap(chip_id, owner)).redirect_url
    expect(await redirect()).toBeNull()
    await setOrganization(service, owner, { default_redirect_url: "https://example.com/organization" })
    expect(await redirect()).toBe("https://example.com/organization")
    await service.turn((turn) =>
      updateCollection(turn, owner, collection.id, { redirect_url: "https://example.com/collection" }),
    )
    expect(await redirect()).toBe("https://example.com/collection")
    const product_id = await createProduct(service, owner, "https://example.com/product")
    await service.turn((turn) => updateUnit(turn, owner, unit.id, { product_id }))
    expect(await redirect()).toBe("https://example.com/product")
    await service.turn((turn) =>
      updateUnit(turn, owner, unit.id, { redirect_url: "https://example.com/unit" }),
    )
    expect(await redirect()).toBe("https://example.com/unit")
  })

  describe("a test tap", () => {
    test("never repeats a value of e, even if many are requested at once", async () => {
      const own = await pairedTestChip(service, caller)
      const emitted = await Promise.all(Array.from({ length: 20 }, () => emit(own.chip_id)))
      expect(new Set(emitted.map(({ e }) => e)).size).toBe(20)
      const counts = emitted.map(({ count }) => count).sort((one, other) => one - other)
      expect(counts).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    })

    test("continues above a counter that was accepted otherwise", async () => {
      const own = await pairedTestChip(service, caller)
      await service.turn(({ tx }) =>
        tx.update(chips).set({ counter: 41 }).where(eq(chips.chip_id, own.chip_id)),
      )
      expect((await emit(own.chip_id)).count).toBe(42)
    })

    test("works for test chips only, until their counter is exhausted", async () => {
      const { chip_id } = await importedChip(service, caller)
      expect(await refusal(emit(chip_id))).toBe("chip.not_a_test_chip")
      const own = await pairedTestChip(service, caller)
      await service.turn(({ tx }) =>
        tx.update(chips).set({ emitted_counter: 0xffffff }).where(eq(chips.chip_id, own.chip_id)),
      )
      expect(await refusal(emit(own.chip_id))).toEqual({ fields: ["chip_id"] })
    })
  })

  describe("a session", () => {
    test("is found by the hash of its token, and expires to the millisecond", async () => {
      const { e } = await emit()
      const { session } = await tap({ chip_id: chip.chip_id, e, ttl: 60 })
      const hash = hashOf(session?.token ?? "")
      const found = await findSessionToken(read(), hash)
      if (!found) throw new Error("the session was not found")
      expect(presentCurrentSessionToken(found)).toEqual({
        expires_at: "2026-04-01T00:00:00.000Z",
        scope: {
          chip_id: chip.chip_id,
          unit_id: chip.unit?.id ?? "",
          organization_id: caller.organization_id,
        },
      })
      expect(isLive(found, new Date(start.getTime() + 59_999))).toBe(true)
      expect(isLive(found, new Date(start.getTime() + 60_000))).toBe(false)
    })

    test("is marked expired by the timer", async () => {
      const { session } = await freshTap()
      const id = session?.session.id ?? ""
      const statusAfter = async (milliseconds: number) => {
        service.setTime(new Date(start.getTime() + milliseconds))
        await service.turn((turn) => expireSessionToken(turn, id))
        service.setTime(start)
        const [row] = await read().select().from(sessionTokens).where(eq(sessionTokens.id, id))
        return row?.status
      }
      expect(await statusAfter(599_999)).toBe("valid")
      expect(await statusAfter(600_000)).toBe("expired")
    })

    test("can be revoked once", async () => {
      const { session } = await freshTap()
      const { id, chip_id, unit_id, expires_at } = session?.session ?? {}
      const holder = {
        ...caller,
        kind: "session_token" as const,
        credential_id: id ?? "",
        session: { chip_id: chip_id ?? "", unit_id: unit_id ?? "", expires_at: expires_at ?? start },
      }
      const revoke = () => service.turn((turn) => revokeSessionToken(turn, holder))
      await revoke()
      const found = await findSessionToken(read(), hashOf(session?.token ?? ""))
      expect(found && isLive(found, start)).toBe(false)
      expect(await refusal(revoke())).toBe("session_token.invalid_or_expired")
    })

    test("leaves no trace of its token in the database", async () => {
      const { session } = await freshTap()
      const rows = await read().select().from(sessionTokens)
      expect(JSON.stringify(rows)).not.toContain(session?.token ?? "")
    })
  })

  describe("the list of taps", () => {
    test("excludes test taps unless requested, and other organizations' taps", async () => {
      const owner = await createCaller(service)
      const own = await pairedTestChip(service, owner)
      await freshTap(own.chip_id, owner)
      const unit = await newUnit(service, owner, await activeCollection(service, owner))
      const { chip_id, tag } = await importedChip(service, owner)
      await pair(service, owner, { unit_id: unit.id, chip_id, e: emitSun(tag, 1).e })
      await tap({ chip_id, e: emitSun(tag, 5).e }, owner)
      const chipsIn = async (is_test: boolean | undefined, by = owner) =>
        (await listTaps(read(), by, { is_test, page: { limit: 10, after: null } })).rows.map(
          (row) => row.chip_id,
        )
      expect(await chipsIn(undefined)).toEqual([chip_id])
      expect(await chipsIn(false)).toEqual([chip_id])
      expect(await chipsIn(true)).toEqual([own.chip_id])
      expect(await chipsIn(true, await createCaller(service))).toEqual([])
    })

    test("can be filtered by chip, unit and a time window that includes its start only", async () => {
      const own = await pairedTestChip(service, caller)
      const other = await pairedTestChip(service, caller)
      for (const second of [0, 1, 2]) {
        service.setTime(new Date(start.getTime() + second * 1000))
        await freshTap(own.chip_id)
      }
      service.setTime(start)
      await freshTap(other.chip_id)
      const countersOf = async (filter: object) => {
        const { rows } = await listTaps(read(), caller, {
          is_test: true,
          page: { limit: 10, after: null },
          ...filter,
        })
        return rows.map(({ counter }) => counter)
      }
      const chip_id = own.chip_id.toLowerCase()
      expect(await countersOf({ chip_id })).toEqual([3, 2, 1])
      expect(await countersOf({ unit_id: own.unit?.id.toUpperCase() })).toEqual([3, 2, 1])
      expect(await countersOf({ unit_id: newId() })).toEqual([])
      const second = new Date(start.getTime() + 1000)
      expect(await countersOf({ chip_id, created_after: second })).toEqual([3, 2])
      expect(await countersOf({ chip_id, created_before: second })).toEqual([1])
      expect(await countersOf({ chip_id, created_after: second, created_before: second })).toEqual([])
      expect(await refusal(countersOf({ created_after: second, created_before: start }))).toEqual({
        fields: ["created_before"],
      })
      expect(await refusal(countersOf({ chip_id: "xyz" }))).toEqual({ fields: ["chip_id"] })
      expect(await refusal(countersOf({ unit_id: "xyz" }))).toEqual({ fields: ["unit_id"] })
    })
  })
})
