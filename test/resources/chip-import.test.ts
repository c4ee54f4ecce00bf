import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { eq } from "drizzle-orm"
import { chips } from "../../src/db/schema.ts"
import type { Caller } from "../../src/platform/caller.ts"
import type { ChipLine } from "../../src/resources/chip-stock/file.ts"
import { importChips } from "../../src/resources/chip-stock/import.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, openService, type TestService } from "../harness/services.ts"

describe.each(engines)("an import on $name", (engine) => {
  let service: TestService
  beforeAll(async () => {
    service = await openService(engine)
  })
  afterAll(() => service.close())

  const storedOf = async ({ organization_id }: Caller) =>
    await service.context.db.read
      .select({ chip_id: chips.chip_id })
      .from(chips)
      .where(eq(chips.organization_id, organization_id))

  test("stores every chip once, in parts, and tells how far it is", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(5_300)
    const told: unknown[][] = []
    const outcome = await importChips(service.context, caller.organization_id, lines, (...words) =>
      told.push(words),
    )
    expect(outcome).toEqual({ imported: 5_300, replaced: 0, already_imported: 0 })
    expect(await storedOf(caller)).toHaveLength(5_300)
    expect(told.filter(([step]) => step === "checking").at(-1)).toEqual(["checking", 5_300, 5_300])
    expect(told.slice(-2)).toEqual([
      ["storing", 5_250, 5_300],
      ["storing", 5_300, 5_300],
    ])
  })

  test("of what is stored already stores nothing", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(300)
    await importChips(service.context, caller.organization_id, lines)
    const again = await importChips(service.context, caller.organization_id, lines)
    expect(again).toEqual({ imported: 0, replaced: 0, already_imported: 300 })
  })

  test("beside another one of the same chips stores each once, and whoever is told otherwise may run it again", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(300)
    const run = () => importChips(service.context, caller.organization_id, lines)
    const outcomes = await Promise.allSettled([run(), run(), run()])
    const stored = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value.imported] : []))
    expect(stored.reduce((sum, imported) => sum + imported, 0)).toBe(300)
    for (const each of outcomes)
      if (each.status === "rejected") expect(String(each.reason)).toContain("run this one again")
    expect(await storedOf(caller)).toHaveLength(300)
    expect(await run()).toEqual({ imported: 0, replaced: 0, already_imported: 300 })
  })
})

function drawLines(count: number): ChipLine[] {
  return Array.from({ length: count }, (_, index) => ({
    place: `line ${index + 2}`,
    chip_id: upperHex(randomBytes(5)),
    uid: upperHex(randomBytes(7)),
    meta_key: randomBytes(16),
    file_key: randomBytes(16),
    counter: 0,
    has_mac: false,
    mac_input: "",
    tamper: false,
  }))
}

function upperHex(bytes: Buffer): string {
  return bytes.toString("hex").toUpperCase()
}
