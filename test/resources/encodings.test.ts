import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { and, eq } from "drizzle-orm"
import { events } from "../../src/db/event-schema.ts"
import { keySetVersions } from "../../src/db/key-set-schema.ts"
import { encodeTag } from "../../src/dev/tags/make-tag.ts"
import { readAddress, type SoftwareTag } from "../../src/dev/tags/software-tag.ts"
import { faultsIn, halfWayAdvice, verdictAdvice } from "../../src/engine/sun/diagnosis/verdicts.ts"
import { type ManifestLine, manifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { keySourceOf } from "../../src/engine/sun/key-schemes.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import { SealBroken } from "../../src/platform/sealing.ts"
import { moveChips, retireChip } from "../../src/resources/chip-stock/service.ts"
import { sealMaster } from "../../src/resources/chips/key-sources.ts"
import { presentObservedChip } from "../../src/resources/chips/present.ts"
import { getChip } from "../../src/resources/chips/service.ts"
import { exportedChips } from "../../src/resources/encodings/chip-export.ts"
import { linesOf, placeOrder } from "../../src/resources/encodings/service.ts"
import { type NamedTag, parseTags, TagConflicts } from "../../src/resources/encodings/wanted-tags.ts"
import { createKeySet, retireKeySet, rotateKeySet } from "../../src/resources/key-sets/service.ts"
import { tapDiagnosis } from "../../src/resources/tap-diagnoses/model.ts"
import { diagnoserOf } from "../../src/resources/tap-diagnoses/service.ts"
import { createTap } from "../../src/resources/taps/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  createCaller,
  newUnit,
  openService,
  pair,
  type TestService,
} from "../harness/services.ts"

const url_template = "https://tap.example/t/{chip_id}"
const withMac = { mac: true, tamper: false }
const withTamper = { mac: true, tamper: true }

describe.each(engines)("on $name an order of tags", (engine) => {
  let service: TestService
  let caller: Caller
  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
  })
  afterAll(() => service.close())

  test("can be encoded, simulated, paired and tapped without any UID being known in advance", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const tag = played(line)
    const unit = await unitOf()
    await pair(service, caller, { unit_id: unit.id, ...messageOf(tag, 1) })
    const { tap } = await tapped(tag, 4)
    expect(tap).toMatchObject({ counter: 4, skipped: 2, key_version: 1 })
    await expect(tapped(tag, 4)).rejects.toMatchObject({ code: "chip.already_scanned" })
    expect((await exported()).find(({ chip_id }) => chip_id === line?.chip_id)?.uid).toBe(tag.uid)
  })

  test("requires the MAC from a chip whose UID is not known yet", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const { c: _c, ...withoutMac } = messageOf(played(line), 1)
    const unit = await unitOf()
    await expect(pair(service, caller, { unit_id: unit.id, ...withoutMac })).rejects.toMatchObject({
      code: "chip.invalid_e_value",
    })
  })

  test("without MACs is paired by e alone, if e looks like an early read of a new tag", async () => {
    const without = { mac: false, tamper: false }
    const [line, other] = await ordered(await keySet(), { count: 2 }, without)
    const unit = await unitOf()
    const worn = pair(service, caller, { unit_id: unit.id, ...messageOf(played(other), 70_000) })
    await expect(worn).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const judged = (read: number) => judge({ url: readAddress(played(other), read), file_settings: null })
    expect(await judged(70_000)).toMatchObject({ verdict: "wrong_meta_key", uid: null })
    expect(await judged(60_000)).toMatchObject({ verdict: "accepted" })
    const stranger = pair(service, caller, {
      unit_id: unit.id,
      ...messageOf(played(line, { uid: "05112233445566" }), 1),
    })
    await expect(stranger).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    const tag = played(line)
    await pair(service, caller, { unit_id: unit.id, ...messageOf(tag, 1) })
    expect((await tapped(tag, 2)).tap).toMatchObject({ counter: 2 })
  })

  test("rejects a tag whose UID another chip already has, because it was encoded twice", async () => {
    const [first, second] = await ordered(await keySet(), { count: 2 })
    const tag = played(first)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    const twin = played(second, { uid: tag.uid })
    const pairing = pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(twin, 1) })
    await expect(pairing).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const found = await judge({ url: readAddress(twin, 2), file_settings: null })
    expect([found.verdict, found.advice]).toEqual(["other_chip", verdictAdvice.other_chip])
    expect(found.checks.map(({ name, passed }) => [name, passed])).toEqual([
      ["address", true],
      ["template", true],
      ["case", true],
      ["chip", true],
      ["meta_key", false],
    ])
    expect(await judge({ url: readAddress(tag, 2), file_settings: null })).toMatchObject({
      verdict: "accepted",
    })
  })

  test("accepts a tag that another organization also registered, and neither learns of the other", async () => {
    const theirs = await createCaller(service)
    const uid = newUid()
    const order = await orderOfTheirs(theirs, byUid(uid))
    const [stale] = await collected(linesOf(service.context, order))
    const [line] = await ordered(await keySet(), { count: 1 })
    const tag = played(line, { uid })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    expect(await judge({ url: readAddress(tag, 1), file_settings: null })).toMatchObject({
      verdict: "accepted",
    })
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    expect((await tapped(tag, 2)).tap).toMatchObject({ counter: 2 })
    await expect(tapped(tag, 2)).rejects.toMatchObject({ code: "chip.already_scanned" })
    expect((await exported()).find(({ chip_id }) => chip_id === line?.chip_id)?.uid).toBe(uid)

    const theirTag = played(stale, { uid })
    const unit = await newUnit(service, theirs, await activeCollection(service, theirs))
    await pair(service, theirs, { unit_id: unit.id, ...messageOf(theirTag, 1) })
  })

  test("recognizes a tag that another organization also registered by its first read, and no other tag with the same keys", async () => {
    const theirs = await createCaller(service)
    const uid = newUid()
    await orderOfTheirs(theirs, byUid(uid))
    const [line] = await ordered(await keySet(), { count: 1 })
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(played(line, { uid }), 1) })
    await expect(tapped(played(line), 2)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    const { c: _c, ...withoutMac } = messageOf(played(line, { uid }), 3)
    const { tap } = await service.turn((turn) => createTap(turn, service.secret, caller, withoutMac))
    expect(tap).toMatchObject({ counter: 3 })
  })

  test("keeps working for a tag whose chip in another organization is moved to its own", async () => {
    const theirs = await createCaller(service)
    const uid = newUid()
    const [stale] = await collected(linesOf(service.context, await orderOfTheirs(theirs, byUid(uid))))
    const [line] = await ordered(await keySet(), { count: 1 })
    const tag = played(line, { uid })
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    const [from, to] = [theirs.organization_id, caller.organization_id]
    await service.turn((turn) => moveChips(turn, { from, to, chip_ids: [stale?.chip_id ?? ""] }))
    expect((await tapped(tag, 2)).tap).toMatchObject({ counter: 2 })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    expect(await judge({ url: readAddress(tag, 3), file_settings: null })).toMatchObject({
      verdict: "accepted",
    })
  })

  test("can be resumed after an interruption, with the same chips", async () => {
    const order = { ...(await orderOf(await keySet())), tags: { count: 2_600 } }
    const cut = new Error("the power went")
    const placing = placeOrder(service.context, order, () => {
      throw cut
    })
    await expect(placing).rejects.toBe(cut)
    const manifest = await placeOrder(service.context, order)
    const ids = (await collected(linesOf(service.context, manifest))).map(({ chip_id }) => chip_id)
    expect([ids.length, new Set(ids).size]).toEqual([2_600, 2_600])
    await placeOrder(service.context, order)
    expect((await collected(linesOf(service.context, manifest))).map(({ chip_id }) => chip_id)).toEqual(ids)
  })

  test("re-encodes known tags: with the new keys they start at zero, and then the earlier keys stop working", async () => {
    const key_set_id = await keySet("boltcard")
    const uid = newUid()
    const [line] = await ordered(key_set_id, byUid(uid))
    const before = played(line)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(before, 50) })
    await rotate(key_set_id)
    const [again] = await ordered(key_set_id, byUid(uid))
    expect([again?.chip_id, again?.keys[0]?.version]).toEqual([line?.chip_id, 2])
    const after = played(again)
    expect((await tapped(before, 51)).tap).toMatchObject({ counter: 51, key_version: 1 })
    expect((await tapped(after, 1)).tap).toMatchObject({ counter: 1, key_version: 2, skipped: 0 })
    await expect(tapped(after, 1)).rejects.toMatchObject({ code: "chip.already_scanned" })
    await expect(tapped(before, 52)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
  })

  test("re-encodes a chip without a known UID by its chip ID, whichever earlier order its tag was encoded with", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    const chip_id = line?.chip_id ?? ""
    const named = { named: [{ line: 1, uid: null, chip_id }] }
    await rotate(key_set_id)
    const [second] = await ordered(key_set_id, named)
    await rotate(key_set_id)
    const [third] = await ordered(key_set_id, named)
    expect([line, second, third].map((each) => each?.chip_id)).toEqual([chip_id, chip_id, chip_id])
    expect(versionsIn(second?.previous_keys)).toEqual([1])
    expect(versionsIn(third?.previous_keys)).toEqual([1, 2])
    const blank = { ...played(line), chip_id, broken_since: null }
    for (const present of [blank, encodeTag(blank, second as ManifestLine)]) {
      const tag = encodeTag(present, third as ManifestLine)
      expect([tag.keys, tag.uid]).toEqual([played(third).keys, blank.uid])
    }
    expect(() =>
      encodeTag({ ...blank, keys: played(third).keys.map(() => "9".repeat(32)) }, third as ManifestLine),
    ).toThrow("its key in slot 0 is not one of those in the manifest")
  })

  test("lets a tag tap with the keys of any order that it may be encoded with, up to the latest, but never go back to earlier ones", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    const first = played(line)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(first, 7) })
    await rotate(key_set_id)
    const [second] = await ordered(key_set_id, byChip(line))
    await rotate(key_set_id)
    const [third] = await ordered(key_set_id, byChip(line))
    const tagOfSecond = played(second, first)
    const tagOfThird = played(third, first)
    expect((await tapped(first, 8)).tap).toMatchObject({ key_version: 1, counter: 8 })
    expect((await tapped(tagOfSecond, 1)).tap).toMatchObject({ key_version: 2, counter: 1, skipped: 0 })
    await expect(tapped(tagOfSecond, 1)).rejects.toMatchObject({ code: "chip.already_scanned" })
    await expect(tapped(first, 9)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    expect((await tapped(tagOfThird, 1)).tap).toMatchObject({ key_version: 3, counter: 1 })
    await expect(tapped(tagOfSecond, 2)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
  })

  test("can be paired with the keys of any order that the tag may be encoded with, but with no other keys", async () => {
    const key_set_id = await keySet()
    const [line, other] = await ordered(key_set_id, { count: 2 })
    const master = randomBytes(16)
    await rotate(key_set_id, master)
    const [second] = await ordered(key_set_id, byChip(line))
    await rotate(key_set_id)
    const [third] = await ordered(key_set_id, byChip(line, other))
    const pairing = async (tag: SoftwareTag) =>
      pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    const never = { chip_id: other?.chip_id ?? "", uid: null }
    const source = keySourceOf("an10922", master, 2)
    const strange = played(manifestLine(source, url_template, withMac, never))
    await expect(pairing(strange)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    const tag = played(second)
    expect((await pairing(tag)).chip_id).toBe(line?.chip_id ?? "")
    expect((await tapped(played(third, tag), 1)).tap).toMatchObject({ key_version: 3, counter: 1 })
  })

  test("that is resumed after a later order does not undo the later one", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    await rotate(key_set_id)
    const cut = new Error("the power went")
    const tags = { named: [...manyUids(1_000), ...byChip(line).named] }
    const order = { ...(await orderOf(key_set_id)), tags }
    const placing = placeOrder(service.context, order, () => {
      throw cut
    })
    await expect(placing).rejects.toBe(cut)
    await rotate(key_set_id)
    const [third] = await ordered(key_set_id, byChip(line))
    const resumed = await placeOrder(service.context, order)
    const second = (await collected(linesOf(service.context, resumed))).at(-1)
    expect([second, third].map((each) => each?.keys[0]?.version)).toEqual([2, 3])
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const blank = played(line)
    const verdicts = [line, second, third].map(async (each) => {
      const { verdict, checks } = await judge({
        url: readAddress(played(each, blank), 1),
        file_settings: null,
      })
      return [verdict, faultsIn(checks).map(({ name }) => name)]
    })
    expect(await Promise.all(verdicts)).toEqual([
      ["accepted", ["key_version"]],
      ["accepted", ["key_version"]],
      ["accepted", []],
    ])
  })

  test("that cannot be resumed because a chip already uses later keys names the chip and asks for a new order", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    await rotate(key_set_id)
    const tags = { named: [...manyUids(1_000), ...byChip(line).named] }
    const order = { ...(await orderOf(key_set_id)), tags }
    const cut = new Error("the power went")
    const placing = placeOrder(service.context, order, () => {
      throw cut
    })
    await expect(placing).rejects.toBe(cut)
    await rotate(key_set_id)
    const [third] = await ordered(key_set_id, byChip(line))
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(played(third), 1) })
    await expect(placeOrder(service.context, order)).rejects.toThrow(
      `chip ${line?.chip_id} has version 3 of its keys, and this order goes on with version 2`,
    )
  })

  test("whose tag was left half encoded is diagnosed as such, whichever of its two keys is the later one", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    await rotate(key_set_id)
    const [again] = await ordered(key_set_id, byChip(line))
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const [before, after] = [played(line), played(again)]
    for (const later of [1, 2]) {
      const keys = before.keys.map((key, slot) => (slot === later ? (after.keys[slot] ?? "") : key))
      const found = await judge({ url: readAddress({ ...before, keys }, 1), file_settings: null })
      expect([found.verdict, found.advice]).toEqual(["wrong_key_version", halfWayAdvice])
    }
  })

  test("has the same previous keys in its manifest before and after the first tap", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(played(line), 1) })
    await rotate(key_set_id)
    const order = {
      ...(await orderOf(key_set_id)),
      tags: { named: [{ line: 1, uid: null, chip_id: line?.chip_id ?? "" }] },
    }
    const [before] = await collected(linesOf(service.context, await placeOrder(service.context, order)))
    await tapped({ ...played(before), uid: before?.uid ?? "" }, 1)
    const [after] = await collected(linesOf(service.context, await placeOrder(service.context, order)))
    expect(after).toEqual(before as ManifestLine)
  })

  test("rejects a named chip that is another organization's, has another UID, or would get other mirrors", async () => {
    const key_set_id = await keySet("boltcard")
    const uid = newUid()
    const [line] = await ordered(key_set_id, byUid(uid))
    await rotate(key_set_id)
    const chip_id = line?.chip_id ?? ""
    const named = (tag: Partial<NamedTag>) => ({ named: [{ line: 7, uid: null, chip_id, ...tag }] })
    for (const [tags, mirrors, why] of [
      [
        named({ chip_id: "0000000000" }),
        withMac,
        "line 7: chip 0000000000 is not a chip of this organization",
      ],
      [named({ uid: newUid() }), withMac, `line 7: chip ${chip_id} has another UID: ${uid}`],
      [named({}), withTamper, `line 7: chip ${chip_id} was ordered with other mirrors`],
      [named({}), { mac: false, tamper: false }, `line 7: chip ${chip_id} was ordered with other mirrors`],
    ] as const)
      await expect(ordered(key_set_id, tags, mirrors)).rejects.toThrow(why)
  })

  test("encodes no chip twice if one line names it by chip ID and another by UID", async () => {
    const key_set_id = await keySet()
    const uid = newUid()
    const [line] = await ordered(key_set_id, byUid(uid))
    await rotate(key_set_id)
    const twice = [...byChip(line).named, { line: 2, uid, chip_id: null }]
    await expect(ordered(key_set_id, { named: twice })).rejects.toThrow(
      `line 2: the tag with UID ${uid} is the chip of line 1`,
    )
    expect(await ordered(key_set_id, byUid(uid))).toHaveLength(1)
  })

  test("accepts exactly one of many concurrent first taps with the new keys", async () => {
    const key_set_id = await keySet("boltcard")
    const uid = newUid()
    const [line] = await ordered(key_set_id, byUid(uid))
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(played(line), 9) })
    await rotate(key_set_id)
    const [again] = await ordered(key_set_id, byUid(uid))
    const body = messageOf(played(again), 3)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, () => service.turn((turn) => createTap(turn, service.secret, caller, body))),
    )
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  })

  test("reports every line whose UID cannot be used, and registers nothing", async () => {
    const key_set_id = await keySet("sdm-backend")
    const [one, other] = [newUid(), newUid()]
    await ordered(key_set_id, byUid(one))
    const before = (await exported()).length
    const refused = ordered(key_set_id, byUid(other, one))
    await expect(refused).rejects.toThrow(TagConflicts)
    await expect(refused).rejects.toThrow(`line 2: the tag with UID ${one}`)
    expect(await exported()).toHaveLength(before)
  })

  test("is rejected for a retired key set, another organization's key set, and a scheme that needs UIDs if there are none", async () => {
    const retired = await keySet()
    await service.turn((turn) => retireKeySet(turn, retired))
    await expect(ordered(retired, { count: 1 })).rejects.toMatchObject({ code: "validation.failed" })
    const stranger = await createCaller(service)
    const theirs = {
      ...(await orderOf(await keySet())),
      organization_id: stranger.organization_id,
      tags: { count: 1 },
    }
    await expect(placeOrder(service.context, theirs)).rejects.toMatchObject({ code: "validation.failed" })
    await expect(ordered(await keySet("boltcard"), { count: 1 })).rejects.toMatchObject({
      code: "validation.failed",
    })
  })

  test("with an all-zero master key is rejected outside dev", async () => {
    const zero = {
      organization_id: caller.organization_id,
      name: newId(),
      scheme: "sdm-backend",
      master: Buffer.alloc(16),
    }
    const create = (zero_is_allowed: boolean) =>
      service.turn((turn) => createKeySet(turn, service.secret, { ...zero, zero_is_allowed }))
    await expect(create(false)).rejects.toMatchObject({ code: "validation.failed" })
    expect((await create(true)).versions).toEqual([1])
  })

  test.each(["sdm-backend", "boltcard"])(
    "of scheme %s cannot reuse a master key: an old value of e would be valid again",
    async (scheme) => {
      const master = randomBytes(16)
      const key_set_id = await keySet(scheme, master)
      const uid = newUid()
      const [line] = await ordered(key_set_id, byUid(uid))
      const before = played(line)
      await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(before, 1) })
      await tapped(before, 50)
      await rotate(key_set_id)
      await expect(rotate(key_set_id, master)).rejects.toMatchObject({
        code: "validation.failed",
        details: { fieldErrors: { master_key: [expect.stringContaining("is that of version 1")] } },
      })
      const [again] = await ordered(key_set_id, byUid(uid))
      expect((await tapped(played(again), 1)).tap).toMatchObject({ counter: 1, key_version: 2 })
      const { c: _c, ...used } = messageOf(before, 50)
      const repeated = service.turn((turn) => createTap(turn, service.secret, caller, used))
      await expect(repeated).rejects.toMatchObject({ code: "chip.invalid_e_value" })
    },
  )

  test("may reuse a master key in another version if the scheme derives keys from the version", async () => {
    const master = randomBytes(16)
    const key_set_id = await keySet("an10922", master)
    const [line] = await ordered(key_set_id, { count: 1 })
    const tag = played(line)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 50) })
    await rotate(key_set_id, master)
    const [again] = await ordered(key_set_id, byChip(line))
    expect((await tapped(played(again), 1)).tap).toMatchObject({ counter: 1, key_version: 2 })
    await expect(tapped(tag, 51)).rejects.toMatchObject({ code: "chip.invalid_e_value" })
  })

  test("with tamper detection shows the tamper status, and an opened chip is never sealed again", async () => {
    const [line] = await ordered(await keySet(), { count: 1 }, withTamper)
    const tag = played(line)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    const said = async (wire: SoftwareTag["tamper"], read: number) =>
      (await tapped({ ...tag, tamper: wire }, read)).chip.tamper
    expect(await said("CC", 2)).toBe("sealed")
    expect(await said("OO", 4)).toBe("opened")
    const data = presentObservedChip(await getChip(service.context.db.read, caller, line?.chip_id ?? ""))
    expect(data.skipped_count).toBe(1)
    expect(await said("CC", 5)).toBe("opened")
    expect(await said("OO", 7)).toBe("opened")
    const told = await tamperEvents(line?.chip_id)
    expect(told).toMatchObject([{ unit_id: expect.any(String), is_test: false }])
    expect(told[0]?.data).toEqual(data)
    const { enc: _enc, ...withoutContent } = messageOf(tag, 6)
    await expect(
      service.turn((turn) => createTap(turn, service.secret, caller, withoutContent)),
    ).rejects.toMatchObject({ code: "chip.invalid_e_value" })
  })

  test("whose wire was opened before pairing emits one event about it", async () => {
    const [line] = await ordered(await keySet(), { count: 1 }, withTamper)
    const tag = { ...played(line), tamper: "OO" as const }
    const unit = await unitOf()
    const paired = await pair(service, caller, { unit_id: unit.id, ...messageOf(tag, 1) })
    expect(paired.tamper).toBe("opened")
    await tapped(tag, 2)
    const told = await tamperEvents(line?.chip_id)
    expect(told.map(({ data }) => data)).toMatchObject([{ chip_id: line?.chip_id ?? "", tamper: "opened" }])
  })

  /** Returns the events that report a chip as opened. */
  async function tamperEvents(chipId: string | undefined) {
    const all = await service.context.db.read.select().from(events).where(eq(events.type, "chip.tampered"))
    return all.filter(({ data }) => data.chip_id === chipId)
  }

  test("can be diagnosed by its own organization and is unknown to every other one", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const scanned = { url: readAddress(played(line), 1), file_settings: null }
    const mine = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    expect(await mine(scanned)).toMatchObject({ verdict: "accepted", chip_id: line?.chip_id })
    const stranger = await createCaller(service)
    const theirs = await diagnoserOf(service.context.db.read, service.secret, stranger.organization_id)
    expect(await theirs(scanned)).toMatchObject({ verdict: "unknown_chip", opened_with: null })
  })

  test.each([
    ["mac_missing", withMac],
    ["enc_missing", withTamper],
  ] as const)(
    "whose tag sends e alone is diagnosed as %s, while its taps are accepted once its UID is known",
    async (verdict, mirrors) => {
      const [line] = await ordered(await keySet(), { count: 1 }, mirrors)
      const tag = played(line)
      const unit = await unitOf()
      const alone = (read: number) => {
        const { chip_id, e } = messageOf(tag, read)
        return { chip_id, e }
      }
      const unread = pair(service, caller, { unit_id: unit.id, ...alone(1) })
      await expect(unread).rejects.toMatchObject({ code: "chip.invalid_e_value" })
      await pair(service, caller, { unit_id: unit.id, ...messageOf(tag, 2) })
      const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
      const url = readAddress(tag, 3).replace(/&.*$/, "")
      const found = await judge({ url, file_settings: null })
      expect(found.verdict).toBe(verdict)
      expect(found.advice).toContain(
        "Once the service knows its UID, it accepts a tap with e alone, which proves less.",
      )
      const { tap } = await service.turn((turn) => createTap(turn, service.secret, caller, alone(3)))
      expect(tap).toMatchObject({ counter: 3 })
    },
  )

  test("without enc is diagnosed if a URL contains enc, which a tap rejects", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const tag = played(line)
    await pair(service, caller, { unit_id: (await unitOf()).id, ...messageOf(tag, 1) })
    const enc = "00112233445566778899AABBCCDDEEFF"
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const url = readAddress(tag, 2).replace("&c=", `&enc=${enc}&c=`)
    expect((await judge({ url, file_settings: null })).verdict).toBe("enc_not_ordered")
    const body = { ...messageOf(tag, 2), enc }
    await expect(service.turn((turn) => createTap(turn, service.secret, caller, body))).rejects.toMatchObject(
      { code: "chip.invalid_e_value" },
    )
  })

  test("finds the chip ID in a URL next to other ten-digit numbers, the likelier of two first", async () => {
    const [line, other] = await ordered(await keySet(), { count: 2 })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const [, values = ""] = readAddress(played(line), 1).split("?")
    const asked = async (start: string) => {
      const { chip_id, verdict, checks } = await judge({ url: `${start}&${values}`, file_settings: null })
      return [chip_id, verdict, checks[0]?.detail]
    }
    const mine = line?.chip_id ?? ""
    const told = [mine, "accepted", `the URL of chip ${mine}`]
    expect(await asked(`https://brand.example/p?sku=1234567890&chip=${mine}`)).toEqual(told)
    expect(await asked(`https://brand.example/${mine}?other=${other?.chip_id}`)).toEqual(told)
    const short = await judge({
      url: `https://brand.example/p?sku=1234567890&chip=${mine}&e=00`,
      file_settings: null,
    })
    expect([short.chip_id, short.verdict]).toEqual([mine, "truncated_mirror"])
    expect((await asked("https://brand.example/p?sku=1234567890"))[0]).toBe("1234567890")
  })

  test("is diagnosed as accepted before pairing and after retirement, where a tap finds no unit, as the schema explains", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const chip_id = line?.chip_id ?? ""
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const expectNoUnit = async (read: number) => {
      const scanned = { url: readAddress(played(line), read), file_settings: null }
      expect(await judge(scanned)).toMatchObject({ verdict: "accepted", chip_id })
      await expect(tapped(played(line), read)).rejects.toMatchObject({ code: "unit.not_found" })
    }
    await expectNoUnit(1)
    await service.turn((turn) => retireChip(turn, { organization_id: caller.organization_id, chip_id }))
    await expectNoUnit(2)
    expect(tapDiagnosis.properties.verdict.description).toContain("`unit.not_found`")
  })

  test("can be diagnosed even if another key set cannot be decrypted, and a chip of that set is not reported as unknown", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const lost = await keySet()
    const [lostLine] = await ordered(lost, { count: 1 })
    await rotate(lost)
    const [laterLine] = await ordered(lost, { count: 1 })
    const sealed_master = sealMaster({ current: "gone", previous: null }, lost, 1, randomBytes(16))
    const first = and(eq(keySetVersions.key_set_id, lost), eq(keySetVersions.version, 1))
    await service.turn(({ tx }) => tx.update(keySetVersions).set({ sealed_master }).where(first))
    // Acts like a process that started afterwards: this one has already decrypted the key.
    const secret = { ...service.secret }
    const judge = await diagnoserOf(service.context.db.read, secret, caller.organization_id)
    const verdict = async (tag: SoftwareTag) =>
      (await judge({ url: readAddress(tag, 1), file_settings: null })).verdict
    expect([await verdict(played(line)), await verdict(played(laterLine))]).toEqual(["accepted", "accepted"])
    await expect(verdict(played(lostLine))).rejects.toThrow(SealBroken)
  })

  test("can be diagnosed by the organization that a chip moved to, which learns nothing else about its key set", async () => {
    const key_set_id = await keySet()
    const [line, other] = await ordered(key_set_id, { count: 2 })
    const chip_id = line?.chip_id ?? ""
    await rotate(key_set_id)
    const [again] = await ordered(key_set_id, { named: [{ line: 1, uid: null, chip_id }] })
    await rotate(key_set_id)
    const [, strange] = await ordered(key_set_id, { count: 2 })
    const owner = await createCaller(service)
    await service.turn((turn) =>
      moveChips(turn, { from: caller.organization_id, to: owner.organization_id, chip_ids: [chip_id] }),
    )
    const judge = await diagnoserOf(service.context.db.read, service.secret, owner.organization_id)
    const scanned = (tag: SoftwareTag) => ({ url: readAddress(tag, 1), file_settings: null })
    expect(await judge(scanned(played(line)))).toMatchObject({ verdict: "accepted", chip_id })
    const renewed = await judge(scanned(played(again)))
    expect([renewed.verdict, faultsIn(renewed.checks)]).toEqual(["accepted", []])
    const wrongKeys = { ...played(line), keys: played(strange).keys }
    expect(await judge(scanned(wrongKeys))).toMatchObject({ verdict: "wrong_meta_key", opened_with: null })
    expect(await judge(scanned(played(other)))).toMatchObject({
      verdict: "unknown_chip",
      opened_with: null,
    })
  })

  test("to re-encode a tag is diagnosed as not done while the tag has the earlier keys, although it still taps", async () => {
    const key_set_id = await keySet()
    const [line] = await ordered(key_set_id, { count: 1 })
    await rotate(key_set_id)
    const [again] = await ordered(key_set_id, {
      named: [{ line: 1, uid: null, chip_id: line?.chip_id ?? "" }],
    })
    const judge = await diagnoserOf(service.context.db.read, service.secret, caller.organization_id)
    const before = await judge({ url: readAddress(played(line), 1), file_settings: null })
    expect([before.verdict, faultsIn(before.checks).map(({ name }) => name)]).toEqual([
      "accepted",
      ["key_version"],
    ])
    const after = await judge({ url: readAddress(played(again), 1), file_settings: null })
    expect([after.verdict, faultsIn(after.checks)]).toEqual(["accepted", []])
  })

  test("is exported without keys, with retired chips distinguished from available ones", async () => {
    const [line] = await ordered(await keySet(), { count: 1 })
    const chip_id = line?.chip_id ?? ""
    await service.turn((turn) => retireChip(turn, { organization_id: caller.organization_id, chip_id }))
    const all = await exported()
    expect(all.find((chip) => chip.chip_id === chip_id)?.retired_at).not.toBeNull()
    for (const { key } of line?.keys ?? []) expect(JSON.stringify(all)).not.toContain(key)
  })

  async function rotate(key_set_id: string, master = randomBytes(16)): Promise<void> {
    const input = { key_set_id, master, zero_is_allowed: false }
    await service.turn((turn) => rotateKeySet(turn, service.secret, input))
  }

  async function keySet(scheme = "an10922", master = randomBytes(16)): Promise<string> {
    const input = {
      organization_id: caller.organization_id,
      name: newId(),
      scheme,
      master,
      zero_is_allowed: false,
    }
    return (await service.turn((turn) => createKeySet(turn, service.secret, input))).id
  }

  function byUid(...uids: string[]): { named: NamedTag[] } {
    return { named: uids.map((uid, index) => ({ line: index + 1, uid, chip_id: null })) }
  }

  function byChip(...lines: (ManifestLine | undefined)[]): { named: NamedTag[] } {
    return {
      named: lines.map((each, index) => ({ line: index + 1, uid: null, chip_id: each?.chip_id ?? "" })),
    }
  }

  function manyUids(count: number): NamedTag[] {
    return byUid(...Array.from({ length: count }, newUid)).named
  }

  async function orderOf(key_set_id: string, mirrors = withMac) {
    return { id: newId(), organization_id: caller.organization_id, key_set_id, url_template, mirrors }
  }

  async function ordered(
    key_set_id: string,
    tags: { count: number } | { named: NamedTag[] },
    mirrors = withMac,
  ) {
    const manifest = await placeOrder(service.context, { ...(await orderOf(key_set_id, mirrors)), tags })
    return await collected(linesOf(service.context, manifest))
  }

  async function orderOfTheirs(theirs: Caller, tags: { named: NamedTag[] }) {
    const { organization_id } = theirs
    const input = { organization_id, name: newId(), scheme: "an10922", master: randomBytes(16) }
    const set = await service.turn((turn) =>
      createKeySet(turn, service.secret, { ...input, zero_is_allowed: false }),
    )
    const asked = { id: newId(), organization_id, key_set_id: set.id, url_template, mirrors: withMac, tags }
    return await placeOrder(service.context, asked)
  }

  async function unitOf() {
    const collection = await activeCollection(service, caller)
    return await newUnit(service, caller, collection)
  }

  async function tapped(tag: SoftwareTag, read: number) {
    return await service.turn((turn) => createTap(turn, service.secret, caller, messageOf(tag, read)))
  }

  async function exported() {
    return await collected(exportedChips(service.context, caller.organization_id))
  }
})

describe("a tag file", () => {
  test("is a list of UIDs or a CSV with a uid column, in either case, with or without colons", () => {
    const named = (...lines: number[]) => [
      { line: lines[0] ?? 0, uid: "04112233445566", chip_id: null },
      { line: lines[1] ?? 0, uid: "04AABBCCDDEEFF", chip_id: null },
    ]
    expect(parseTags("04112233445566\n04:aa:bb:cc:dd:ee:ff\n")).toEqual(named(1, 2))
    expect(parseTags("number,uid\n1,04112233445566\r\n2,04aabbccddeeff\r\n")).toEqual(named(2, 3))
  })

  test("may name chips in a chip_id column, with or without UIDs", () => {
    expect(parseTags("chip_id,unit_id,uid\n04a0b1c2d3,,\n04A0B1C2D4,x,04112233445566\n")).toEqual([
      { line: 2, uid: null, chip_id: "04A0B1C2D3" },
      { line: 3, uid: "04112233445566", chip_id: "04A0B1C2D4" },
    ])
  })

  test("is rejected with every invalid line reported", () => {
    expect(() => parseTags("uid\n04112233445566\n0411\n04112233445566\n")).toThrow(
      "line 3: a UID has 14 hexadecimal digits\nline 4: the tag with UID 04112233445566 is that of line 2",
    )
    expect(() => parseTags("\n")).toThrow("has no tags")
    // As readers print it that send its least significant byte first; its tag could never be used as the chip.
    expect(() => parseTags("uid\n66554433221104\n")).toThrow(
      "line 2: a UID begins with 04: the bytes of this one are in reverse order",
    )
  })
})

function versionsIn(keys: ManifestLine["previous_keys"] | undefined): number[] {
  return [...new Set((keys ?? []).map(({ version }) => version))]
}

function played(line: ManifestLine | undefined, { uid = newUid() } = {}): SoftwareTag {
  if (!line) throw new Error("the order has no such line")
  return {
    uid: line.uid ?? uid,
    ndef_hex: line.ndef_hex,
    file_settings_hex: line.file_settings_hex,
    keys: line.keys.map(({ key }) => key),
    counter: 0,
    tamper: "CC",
  }
}

/** The part of a read that is sent to the API. */
function messageOf(tag: SoftwareTag, read: number) {
  const url = new URL(readAddress(tag, read))
  const { e = "", ...others } = Object.fromEntries(url.searchParams)
  return { chip_id: url.pathname.split("/").at(-1) ?? "", e, ...others } as {
    chip_id: string
    e: string
    c?: string
    enc?: string
  }
}

function newUid(): string {
  return `04${randomBytes(6).toString("hex").toUpperCase()}`
}

async function collected<T>(all: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of all) items.push(item)
  return items
}
