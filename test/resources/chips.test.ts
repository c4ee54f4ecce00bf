import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { bulkPairings, type CollectionRow, chips, effects } from "../../src/db/schema.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { ApiError } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import type { PairChipBody } from "../../src/resources/chips/model.ts"
import { checkPairings } from "../../src/resources/chips/pairing.ts"
import { presentChip, presentListedChip } from "../../src/resources/chips/present.ts"
import { getChip, listChips, pairChipsInBulk } from "../../src/resources/chips/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { getUnit, type UnitView } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  createCaller,
  importedChip,
  newUnit,
  openService,
  pair,
  pairedTestChip,
  refusal,
  type TestService,
} from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  let service: TestService
  let caller: Caller
  let stranger: Caller
  let collection: CollectionRow

  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
    stranger = await createCaller(service)
    collection = await activeCollection(service, caller)
  })
  afterAll(() => service.close())

  const read = () => service.context.db.read
  const unitOf = (owner = caller, of = collection): Promise<UnitView> => newUnit(service, owner, of)
  const bulk = async (entries: PairChipBody[], owner = caller) => {
    checkPairings(entries)
    return await service.turn((turn) => pairChipsInBulk(turn, service.secret, owner, { chips: entries }))
  }
  const rowOf = async (chip_id: string) => {
    const [row] = await read().select().from(chips).where(eq(chips.chip_id, chip_id))
    return row
  }

  /** A test chip as a failed chip replacement leaves it, with a new value of e. */
  const freedTestChip = async () => {
    const { chip_id, tag } = await importedChip(service, caller)
    await service.turn(({ tx }) => tx.update(chips).set({ is_test: true }).where(eq(chips.chip_id, chip_id)))
    return { chip_id, ...emitSun(tag, 1) }
  }

  test("a test chip is created and paired at once, and issuance of the unit begins", async () => {
    const unit = await unitOf()
    const chip = presentChip(await pair(service, caller, { unit_id: unit.id.toUpperCase(), is_test: true }))
    expect(chip).toMatchObject({
      chip_id: expect.stringMatching(/^[0-9A-F]{10}$/),
      is_test: true,
      scan_count: 0,
      tamper: null,
      retired_at: null,
      created_at: "2026-03-31T23:59:00.000Z",
      unit: { id: unit.id, collection: { id: collection.id, token: { status: "pending", serial: null } } },
    })
    expect(Object.keys(chip).sort()).toEqual([
      "chip_id",
      "created_at",
      "is_test",
      "retired_at",
      "scan_count",
      "tamper",
      "unit",
    ])
    const [effect] = await read().select().from(effects).where(eq(effects.actor_id, unit.id))
    expect(effect).toMatchObject({
      src: "issueUnit",
      status: "open",
      input: { collection_id: collection.id, chip_id: chip.chip_id, bulk_pairing_id: null },
    })
  })

  test("an encoded chip is paired by its own value of e, whose counter is used up", async () => {
    const unit = await unitOf()
    const { chip_id, tag } = await importedChip(service, caller, 4)
    const message = emitSun(tag, 5)
    const chip = await pair(service, caller, { unit_id: unit.id, chip_id: chip_id.toLowerCase(), ...message })
    expect(chip).toMatchObject({
      chip_id,
      is_test: false,
      counter: 5,
      scan_count: 0,
      tamper: null,
      retired_at: null,
      unit: { id: unit.id, chip_id },
    })
    const tap = service.turn((turn) => createTap(turn, service.secret, caller, { chip_id, ...message }))
    expect(await refusal(tap)).toBe("chip.already_scanned")
  })

  test("no response with a chip contains its keys", async () => {
    const chip = await pairedTestChip(service, caller)
    expect(Object.keys(await getChip(read(), caller, chip.chip_id))).not.toContain("wrapped_keys")
    expect(Object.keys(chip)).not.toContain("wrapped_keys")
  })

  describe("pairing is rejected", () => {
    test("with the fields of both variants or of neither", async () => {
      const unit_id = newId()
      const wrong = (body: object) => refusal(pair(service, caller, { unit_id, ...body }))
      const e = "0".repeat(32)
      expect(await wrong({})).toEqual({ fields: ["chip_id", "e"] })
      expect(await wrong({ is_test: false })).toEqual({ fields: ["chip_id", "e", "is_test"] })
      expect(await wrong({ chip_id: "0011223344" })).toEqual({ fields: ["e"] })
      expect(await wrong({ is_test: true, chip_id: "0011223344", e })).toEqual({
        fields: ["chip_id", "e", "is_test"],
      })
      expect(await wrong({ is_test: true, c: "0".repeat(16) })).toEqual({ fields: ["c", "is_test"] })
    })

    test("for a unit or chip of another organization", async () => {
      const mine = await unitOf()
      const { chip_id, tag } = await importedChip(service, stranger)
      const { e } = emitSun(tag, 1)
      expect(await refusal(pair(service, stranger, { unit_id: mine.id, is_test: true }))).toBe(
        "unit.not_found",
      )
      expect(await refusal(pair(service, caller, { unit_id: newId(), is_test: true }))).toBe("unit.not_found")
      expect(await refusal(pair(service, caller, { unit_id: mine.id, chip_id, e }))).toBe("chip.not_found")
    })

    test("before the collection is active", async () => {
      const deploying = await service.turn((turn) =>
        createCollection(turn, service.context.chains, caller, { name: "Not yet" }),
      )
      const unit = await unitOf(caller, deploying)
      expect(await refusal(pair(service, caller, { unit_id: unit.id, is_test: true }))).toBe(
        "collection.not_active",
      )
      expect(await refusal(bulk([{ unit_id: unit.id, is_test: true }]))).toBe("collection.not_active")
    })

    test("for a unit that already has a chip", async () => {
      const unit = await unitOf()
      await pair(service, caller, { unit_id: unit.id, is_test: true })
      expect(await refusal(pair(service, caller, { unit_id: unit.id, is_test: true }))).toBe(
        "chip.already_paired",
      )
    })

    test.each([
      ["already paired to a unit", async () => ({ unit_id: (await unitOf()).id })],
      ["retired", async () => ({ retired_at: service.context.clock() })],
      ["reserved for a chip replacement", async () => ({ reserved_for: newId() })],
    ])("for a chip that is %s, as the message says", async (why, placement) => {
      const { chip_id, tag } = await importedChip(service, caller)
      const place = await placement()
      await service.turn(({ tx }) => tx.update(chips).set(place).where(eq(chips.chip_id, chip_id)))
      const again = pair(service, caller, { unit_id: (await unitOf()).id, chip_id, e: emitSun(tag, 1).e })
      expect(await refusal(again)).toBe("chip.already_paired")
      await expect(again).rejects.toThrow(why)
    })

    test("with a value of e from another chip, or an invalid c, and the counter does not move", async () => {
      const unit_id = (await unitOf()).id
      const { chip_id, tag } = await importedChip(service, caller)
      const other = await importedChip(service, caller)
      const { e } = emitSun(tag, 9)
      const foreign = pair(service, caller, { unit_id, chip_id, e: emitSun(other.tag, 9).e })
      expect(await refusal(foreign)).toBe("chip.invalid_e_value")
      expect(await refusal(pair(service, caller, { unit_id, chip_id, e, c: "0123456789ABCDEF" }))).toBe(
        "chip.invalid_e_value",
      )
      expect(await rowOf(chip_id)).toMatchObject({ counter: 0, unit_id: null, paired_at: null })
    })

    test("with a value of e that is not above the imported counter", async () => {
      const unit_id = (await unitOf()).id
      const { chip_id, tag } = await importedChip(service, caller, 7)
      expect(await refusal(pair(service, caller, { unit_id, chip_id, e: emitSun(tag, 7).e }))).toBe(
        "chip.already_scanned",
      )
    })

    test("for a test chip with is_test: false; in a bulk request every such entry is reported", async () => {
      const [first, second] = [await freedTestChip(), await freedTestChip()]
      const { chip_id, tag } = await importedChip(service, caller)
      const entry = async (chip: { chip_id: string; e: string }) => ({
        unit_id: (await unitOf()).id,
        is_test: false,
        ...chip,
      })
      const wrong = await entry(first)
      expect(await refusal(pair(service, caller, wrong))).toEqual({ fields: ["is_test"] })
      const entries = [wrong, await entry({ chip_id, ...emitSun(tag, 1) }), await entry(second)]
      await expect(bulk(entries)).rejects.toMatchObject({
        details: {
          fieldErrors: {
            chips: [0, 2].map((index) => `[${index}].is_test: must be absent: the chip is a test chip`),
          },
        },
      })
      expect(await rowOf(first.chip_id)).toMatchObject({ unit_id: null, counter: 0 })
      const { is_test: _said, ...unsaid } = wrong
      expect(await pair(service, caller, unsaid)).toMatchObject({ is_test: true })
    })

    test("beyond the quota of paired chips", async () => {
      const small = await createCaller(service, { quota_chips: 2 })
      const own = await activeCollection(service, small)
      await importedChip(service, small)
      const ids = [await unitOf(small, own), await unitOf(small, own), await unitOf(small, own)].map(
        ({ id }) => id,
      )
      const entries = ids.map((unit_id) => ({ unit_id, is_test: true }))
      expect(await refusal(bulk(entries, small))).toBe("quota.exceeded")
      await bulk(entries.slice(0, 2), small)
      expect(await refusal(pair(service, small, { unit_id: ids[2] ?? "", is_test: true }))).toBe(
        "quota.exceeded",
      )
    })
  })

  test("of a hundred concurrent pairings of one unit one succeeds", async () => {
    const unit = await unitOf()
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        pair(service, caller, { unit_id: unit.id, is_test: true }).then(
          () => "paired",
          (error) => error.code,
        ),
      ),
    )
    expect(answers.filter((answer) => answer === "paired")).toHaveLength(1)
    expect(new Set(answers)).toEqual(new Set(["paired", "chip.already_paired"]))
  })

  test("of many concurrent pairings of one chip to different units one succeeds", async () => {
    const { chip_id, tag } = await importedChip(service, caller)
    const units = await Promise.all(Array.from({ length: 20 }, () => unitOf()))
    const answers = await Promise.all(
      units.map((unit, index) =>
        pair(service, caller, { unit_id: unit.id, chip_id, e: emitSun(tag, index + 1).e }).then(
          () => "paired",
          (error) => error.code,
        ),
      ),
    )
    expect(answers.filter((answer) => answer === "paired")).toHaveLength(1)
  })

  describe("in bulk", () => {
    test("units are paired and issued in the order given, with one bulk pairing ID", async () => {
      const own = await activeCollection(service, caller)
      const ids = (await Promise.all(Array.from({ length: 100 }, () => unitOf(caller, own)))).map(
        ({ id }) => id,
      )
      const { chip_id, tag } = await importedChip(service, caller)
      const entries = ids.map((unit_id, index) =>
        index === 50 ? { unit_id, chip_id, e: emitSun(tag, 1).e } : { unit_id, is_test: true },
      )
      const paired = await bulk(entries)
      expect(paired.map(({ unit }) => unit?.id)).toEqual(ids)
      expect(paired[50]?.chip_id).toBe(chip_id)

      const [opened] = await read().select().from(bulkPairings).where(eq(bulkPairings.collection_id, own.id))
      expect(opened).toMatchObject({ size: 100, issued_at: null })
      const waiting = await read()
        .select()
        .from(effects)
        .where(eq(effects.src, "issueUnit"))
        .orderBy(asc(effects.id))
      const ofBulk = waiting.filter(({ input }) => input.bulk_pairing_id === opened?.id)
      expect(ofBulk.map(({ actor_id }) => actor_id)).toEqual(ids)
    })

    test("another request for the same collection waits until the first is issued", async () => {
      const own = await activeCollection(service, caller)
      const [first, second] = [await unitOf(caller, own), await unitOf(caller, own)]
      await bulk([{ unit_id: first.id, is_test: true }])
      expect(await refusal(bulk([{ unit_id: second.id, is_test: true }]))).toBe("chip.bulk_pending")
      await service.turn(({ tx, at }) =>
        tx.update(bulkPairings).set({ issued_at: at }).where(eq(bulkPairings.collection_id, own.id)),
      )
      expect(await bulk([{ unit_id: second.id, is_test: true }])).toHaveLength(1)
    })

    test("units of two collections are rejected", async () => {
      const other = await unitOf(caller, await activeCollection(service, caller))
      const entries = [await unitOf(), other].map(({ id }) => ({ unit_id: id, is_test: true }))
      expect(await refusal(bulk(entries))).toBe("chip.bulk_mixed_collections")
    })

    test("one invalid entry leaves all units unpaired and all counters unchanged", async () => {
      const own = await activeCollection(service, caller)
      const [first, second, third] = [
        await unitOf(caller, own),
        await unitOf(caller, own),
        await unitOf(caller, own),
      ]
      const { chip_id, tag } = await importedChip(service, caller)
      const bad = await importedChip(service, caller)
      const attempt = bulk([
        { unit_id: first.id, is_test: true },
        { unit_id: second.id, chip_id, e: emitSun(tag, 3).e },
        { unit_id: third.id, chip_id: bad.chip_id, e: emitSun(tag, 4).e },
      ])
      expect(await refusal(attempt)).toBe("chip.invalid_e_value")
      await expect(attempt).rejects.toThrow("chips[2]: The value of e or c is not from this chip.")
      expect((await getUnit(read(), caller, first.id)).chip_id).toBeNull()
      expect(await rowOf(chip_id)).toMatchObject({ counter: 0, unit_id: null })
      expect(await read().select().from(bulkPairings).where(eq(bulkPairings.collection_id, own.id))).toEqual(
        [],
      )
    })

    test("every invalid entry is reported, and so are duplicate units and chips", async () => {
      const unit_id = newId()
      const e = "0".repeat(32)
      const attempt = bulk([
        { unit_id, is_test: true },
        { unit_id: newId(), chip_id: "00aabbccdd" },
        { unit_id: newId(), chip_id: "00AABBCCDD", e },
        { unit_id: unit_id.toUpperCase(), is_test: true },
      ])
      const error = await attempt.catch((reason) => reason)
      expect(error).toBeInstanceOf(ApiError)
      expect(error.details.fieldErrors).toEqual({
        chips: [
          "[1].e: is required for an encoded chip",
          "[2].chip_id: is the same as [1].chip_id",
          "[3].unit_id: is the same as [0].unit_id",
        ],
      })
    })
  })

  test("another organization's chip is not found, and an invalid format is reported", async () => {
    const { chip_id } = await pairedTestChip(service, caller)
    expect(await refusal(getChip(read(), stranger, chip_id))).toBe("chip.not_found")
    expect(await refusal(getChip(read(), caller, "FFFFFFFFFF"))).toBe("chip.not_found")
    expect(await refusal(getChip(read(), caller, "a\0b"))).toEqual({ fields: ["chip_id"] })
    const testTap = service.turn((turn) => createTestTap(turn, service.secret, stranger, { chip_id }))
    expect(await refusal(testTap)).toBe("chip.not_found")
  })

  test("a list of chips distinguishes test chips from encoded ones, page by page", async () => {
    const owner = await createCaller(service)
    const unit = await newUnit(service, owner, await activeCollection(service, owner), { external_id: "u" })
    const paired = await pair(service, owner, { unit_id: unit.id, is_test: true })
    const encoded = [await importedChip(service, owner), await importedChip(service, owner)]
    const page = { limit: 1, after: null }

    const tests = await listChips(read(), owner, { is_test: true, page })
    expect(tests).toMatchObject({ rows: [{ chip_id: paired.chip_id }], next: null })
    expect(tests.rows.map(presentListedChip)).toEqual([
      {
        chip_id: paired.chip_id,
        is_test: true,
        scan_count: 0,
        tamper: null,
        retired_at: null,
        created_at: "2026-03-31T23:59:00.000Z",
        skipped_count: 0,
        refused_count: 0,
        last_refused_at: null,
        unit: { id: unit.id, external_id: "u" },
      },
    ])

    const first = await listChips(read(), owner, { is_test: false, page })
    const second = await listChips(read(), owner, { is_test: false, page: { limit: 1, after: first.next } })
    const shown = [...first.rows, ...second.rows]
    expect(shown.map(({ chip_id }) => chip_id)).toEqual(
      encoded
        .map(({ chip_id }) => chip_id)
        .sort()
        .reverse(),
    )
    expect(shown.map(({ unit }) => unit)).toEqual([null, null])
    expect(second.next).toBeNull()
    expect((await listChips(read(), owner, { page: { limit: 10, after: null } })).rows).toHaveLength(3)
  })
})
