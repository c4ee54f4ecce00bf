import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { foundSerials } from "../../src/db/chain-schema.ts"
import { chips } from "../../src/db/schema.ts"
import { sendEvent, settleEffect } from "../../src/engine/actors/runtime.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { newId } from "../../src/platform/ids.ts"
import type { CreateChipReplacementBody } from "../../src/resources/chip-replacements/model.ts"
import { presentChipReplacement } from "../../src/resources/chip-replacements/present.ts"
import { getChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { createTestTap } from "../../src/resources/taps/service.ts"
import { getUnit, type UnitView } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  alice,
  claim,
  issuedUnit,
  openEffect,
  replaceChip,
  unpairedUnit,
  useOwnership,
} from "../harness/ownership.ts"
import {
  activeCollection,
  createCaller,
  importedChip,
  newUnit,
  pair,
  pairedTestChip,
  refusal,
  settle,
} from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  const service = useOwnership(engine)
  const { read } = service
  const replace = (unitId: string, body: CreateChipReplacementBody, who = service.caller) =>
    replaceChip(service, unitId, body, who)

  const chipRow = async (chip_id: string) => {
    const [row] = await read().select().from(chips).where(eq(chips.chip_id, chip_id))
    return row
  }
  /** An issued unit with an encoded chip. */
  const encodedUnit = async (): Promise<UnitView> => {
    const unit = await unpairedUnit(service)
    const { chip_id, tag } = await importedChip(service, service.caller)
    await pair(service, service.caller, { unit_id: unit.id, chip_id, ...emitSun(tag, 1) })
    await settle(service, unit.id, { serial: 1, transaction_hash: "0x02" })
    return await getUnit(read(), service.caller, unit.id)
  }
  /** An unpaired encoded chip, with a request body that proves possession of it. */
  const freshChip = async (owner = service.caller) => {
    const { chip_id, tag } = await importedChip(service, owner)
    return { chip_id, tag, body: { chip_id, ...emitSun(tag, 1) } }
  }
  const failSwap = async (replacementId: string) => {
    const effect = await openEffect(service, replacementId)
    const error = { code: "chip_replacement.reverted", message: "The swap reverted." }
    await service.turn((turn) => settleEffect(turn, effect?.id ?? "", { error }))
  }

  describe("a chip replacement", () => {
    test("is prepared with the new chip reserved, and is queued in the ownership lane", async () => {
      const unit = await encodedUnit()
      const { chip_id, body } = await freshChip()
      const row = await replace(unit.id, { ...body, chip_id: chip_id.toLowerCase() })
      expect(presentChipReplacement(row)).toEqual({
        id: row.id,
        unit_id: unit.id,
        status: "prepared",
        previous_chip_id: unit.chip_id ?? "",
        chip_id,
        transaction_hash: null,
        failure: null,
        created_at: "2026-03-31T23:59:00.000Z",
        updated_at: "2026-03-31T23:59:00.000Z",
      })
      expect(await chipRow(chip_id)).toMatchObject({ reserved_for: row.id, unit_id: null, counter: 1 })
      expect(await openEffect(service, row.id)).toMatchObject({
        src: "replaceChip",
        queue: "lane:issuance",
        input: { unit_id: unit.id, previous_chip_id: unit.chip_id, chip_id },
      })
    })

    test("pairs the new chip and retires the old one once the chain confirms it", async () => {
      const unit = await encodedUnit()
      const { chip_id, body } = await freshChip()
      const { id } = await replace(unit.id, body)
      await settle(service, id, { transaction_hash: "0x03" })
      expect((await getChipReplacement(read(), service.caller, unit.id, id)).status).toBe("confirmed")
      expect((await getUnit(read(), service.caller, unit.id)).chip_id).toBe(chip_id)
      const old = await chipRow(unit.chip_id ?? "")
      expect([old?.unit_id, old?.retired_at]).toEqual([null, service.context.clock()])
    })

    test("that fails releases the new chip and keeps the old one, and its value of e is used up", async () => {
      const unit = await encodedUnit()
      const { chip_id, tag, body } = await freshChip()
      const { id } = await replace(unit.id, body)
      await failSwap(id)
      expect(await getChipReplacement(read(), service.caller, unit.id, id)).toMatchObject({
        status: "failed",
        failure: { code: "chip_replacement.reverted" },
      })
      expect((await getUnit(read(), service.caller, unit.id)).chip_id).toBe(unit.chip_id)
      expect(await refusal(replace(unit.id, body))).toBe("chip.already_scanned")
      expect((await replace(unit.id, { chip_id, ...emitSun(tag, 2) })).status).toBe("prepared")
    })

    test("of a test unit creates a new test chip", async () => {
      const { unit } = await issuedUnit(service)
      const row = await replace(unit.id, { is_test: true })
      expect(await chipRow(row.chip_id)).toMatchObject({ is_test: true, reserved_for: row.id, unit_id: null })
      await settle(service, row.id, { transaction_hash: "0x03" })
      expect((await getUnit(read(), service.caller, unit.id)).chip_id).toBe(row.chip_id)
    })

    test("can follow an earlier one", async () => {
      const { unit } = await issuedUnit(service)
      const first = await replace(unit.id, { is_test: true })
      await settle(service, first.id, { transaction_hash: "0x03" })
      expect((await replace(unit.id, { is_test: true })).previous_chip_id).toBe(first.chip_id)
    })
  })

  describe("a chip replacement is rejected", () => {
    test("for another organization's unit, with the same error as for an unknown unit", async () => {
      const { unit } = await issuedUnit(service)
      const stranger = await createCaller(service)
      for (const id of [unit.id, newId(), "no-uuid"])
        expect(await refusal(replace(id, { is_test: true }, stranger))).toBe("unit.not_found")
    })

    test("before a chip is paired, and during issuance", async () => {
      const unpaired = await unpairedUnit(service)
      expect(await refusal(replace(unpaired.id, { is_test: true }))).toBe("unit.not_minted")
      const { unit } = await pairedTestChip(service, service.caller)
      expect(await refusal(replace(unit?.id ?? "", { is_test: true }))).toBe("unit.issuance_pending")
    })

    test("while a claim is open, and permanently once the unit is claimed", async () => {
      const { unit, session } = await issuedUnit(service)
      const { id } = await claim(service, session, unit.id, { recipient: alice })
      expect(await refusal(replace(unit.id, { is_test: true }))).toBe("claim.in_progress")
      await settle(service, id, { transaction_hash: "0x03" })
      expect(await refusal(replace(unit.id, { is_test: true }))).toBe("chip_replacement.locked")
    })

    test("if the unit is claimed, unless the chain already has the new chip", async () => {
      const unit = await encodedUnit()
      const { chip_id, body } = await freshChip()
      await service.turn((turn) => sendEvent(turn, unit.id, { type: "CLAIMED" }))
      Object.assign(service.says, { owner: alice, chip_id, isReachable: false })
      expect(await refusal(replace(unit.id, body))).toBe("chip_replacement.locked")
      service.says.isReachable = true
      expect(await refusal(replace(unit.id, { ...body, chip_id: unit.chip_id ?? "" }))).toBe(
        "chip_replacement.locked",
      )
      service.says.chip_id = null
      expect(await refusal(replace(unit.id, { ...body, chip_id: unit.chip_id ?? "" }))).toBe(
        "chip_replacement.locked",
      )
      service.says.chip_id = chip_id
      expect((await replace(unit.id, body)).status).toBe("prepared")
    })

    test("while another one is open", async () => {
      const { unit } = await issuedUnit(service)
      await replace(unit.id, { is_test: true })
      expect(await refusal(replace(unit.id, { is_test: true }))).toBe("chip_replacement.in_progress")
    })

    test("with a chip that is unknown or of another organization", async () => {
      const unit = await encodedUnit()
      const foreign = await freshChip(await createCaller(service))
      expect(await refusal(replace(unit.id, foreign.body))).toBe("chip.not_found")
      expect(await refusal(replace(unit.id, { ...foreign.body, chip_id: "FFFFFFFFFF" }))).toBe(
        "chip.not_found",
      )
    })

    test("with an unknown chip, before the state of the unit or the quota is considered", async () => {
      const body = { chip_id: "FFFFFFFFFF", e: "0".repeat(32) }
      const maker = await createCaller(service, { quota_chips: 3 })
      const collection = await activeCollection(service, maker)
      const unpaired = await newUnit(service, maker, collection)
      const { unit: replaced } = await issuedUnit(service, maker)
      await replace(replaced.id, { is_test: true }, maker)
      const { unit: claimed, session } = await issuedUnit(service, maker)
      const { id } = await claim(service, session, claimed.id, { recipient: alice })
      for (const unit of [unpaired, replaced, claimed])
        expect(await refusal(replace(unit.id, body, maker))).toBe("chip.not_found")
      await settle(service, id, { transaction_hash: "0x03" })
      expect(await refusal(replace(claimed.id, body, maker))).toBe("chip.not_found")
    })

    test("beyond the quota, with an otherwise valid chip", async () => {
      const maker = await createCaller(service, { quota_chips: 1 })
      const { unit } = await issuedUnit(service, maker)
      const { body } = await freshChip(maker)
      const codeWith = (body: CreateChipReplacementBody) => refusal(replace(unit.id, body, maker))
      expect(await codeWith({ ...body, chip_id: "FFFFFFFFFF" })).toBe("chip.not_found")
      expect(await codeWith({ ...body, chip_id: unit.chip_id ?? "" })).toBe("chip.already_paired")
      expect(await codeWith(body)).toEqual({ fields: ["chip_id"] })
      expect(await codeWith({ is_test: true })).toBe("quota.exceeded")
    })

    test("with a chip that is paired, current, retired or reserved", async () => {
      const [unit, other] = [await encodedUnit(), await encodedUnit()]
      const { chip_id, tag, body } = await freshChip()
      const codeWith = (chip: string | null) => refusal(replace(unit.id, { ...body, chip_id: chip ?? "" }))
      expect(await codeWith(other.chip_id)).toBe("chip.already_paired")
      expect(await codeWith(unit.chip_id)).toBe("chip.already_paired")
      const { id } = await replace(other.id, body)
      expect(await refusal(replace(unit.id, { chip_id, ...emitSun(tag, 2) }))).toBe("chip.already_paired")
      await settle(service, id, { transaction_hash: "0x03" })
      expect(await codeWith(other.chip_id)).toBe("chip.already_paired")
    })

    test("with a chip that the chain has for a serial that was lost in a restore", async () => {
      const unit = await encodedUnit()
      const { chip_id, body } = await freshChip()
      const found = { collection_id: unit.collection?.id ?? "", chip_id, transaction_hash: "0x04" }
      await service.turn(({ tx, at }) =>
        tx.insert(foundSerials).values({ ...found, serial: 7, found_at: at }),
      )
      await expect(replace(unit.id, body)).rejects.toMatchObject({
        code: "chip.already_paired",
        message: expect.stringContaining("for serial 7"),
      })
      expect(await chipRow(chip_id)).toMatchObject({ counter: 0, reserved_for: null })
    })

    test("with a value of e from another chip, or an invalid c", async () => {
      const unit = await encodedUnit()
      const { chip_id, body } = await freshChip()
      const foreign = await freshChip()
      expect(await refusal(replace(unit.id, { ...foreign.body, chip_id }))).toBe("chip.invalid_e_value")
      expect(await refusal(replace(unit.id, { ...body, c: "0".repeat(16) }))).toBe("chip.invalid_e_value")
      expect(await chipRow(chip_id)).toMatchObject({ counter: 0, reserved_for: null })
    })

    test("with a test chip for an encoded unit, and with an encoded chip for a test unit", async () => {
      const encoded = await encodedUnit()
      expect(await refusal(replace(encoded.id, { is_test: true }))).toEqual({
        fields: ["is_test"],
      })
      const { unit } = await issuedUnit(service)
      const { body } = await freshChip()
      expect(await refusal(replace(unit.id, body))).toEqual({ fields: ["chip_id"] })
    })

    test("with a test chip's values and is_test: false", async () => {
      const { unit } = await issuedUnit(service)
      const { id, chip_id } = await replace(unit.id, { is_test: true })
      await failSwap(id)
      const { e } = await service.turn((turn) =>
        createTestTap(turn, service.secret, service.caller, { chip_id }),
      )
      const body = { chip_id, e }
      expect(await refusal(replace(unit.id, { ...body, is_test: false }))).toEqual({ fields: ["is_test"] })
      expect(await replace(unit.id, body)).toMatchObject({ status: "prepared", chip_id })
    })

    test("with the fields of both variants or of neither", async () => {
      const unit = await encodedUnit()
      const { body } = await freshChip()
      expect(await refusal(replace(unit.id, {}))).toEqual({ fields: ["chip_id", "e"] })
      expect(await refusal(replace(unit.id, { ...body, is_test: true }))).toEqual({
        fields: ["chip_id", "e", "c", "is_test"],
      })
    })

    test("for all but one of several units that request the same chip at once", async () => {
      const wanting = await Promise.all([encodedUnit(), encodedUnit(), encodedUnit()])
      const { body } = await freshChip()
      const outcomes = await Promise.allSettled(wanting.map(({ id }) => replace(id, body)))
      const refusals = outcomes.filter((each) => each.status === "rejected")
      expect(refusals).toHaveLength(2)
      for (const each of refusals) expect(each.reason).toMatchObject({ code: "chip.already_paired" })
    })
  })

  test("a chip replacement can be read by the organization of its unit only", async () => {
    const { unit } = await issuedUnit(service)
    const other = await issuedUnit(service)
    const { id } = await replace(unit.id, { is_test: true })
    const stranger = await createCaller(service)
    expect((await getChipReplacement(read(), service.caller, unit.id, id)).id).toBe(id)
    expect(await refusal(getChipReplacement(read(), stranger, unit.id, id))).toBe("unit.not_found")
    expect(await refusal(getChipReplacement(read(), service.caller, other.unit.id, id))).toBe(
      "chip_replacement.not_found",
    )
    for (const unknown of [newId(), "no-uuid"])
      expect(await refusal(getChipReplacement(read(), service.caller, unit.id, unknown))).toBe(
        "chip_replacement.not_found",
      )
  })
})
