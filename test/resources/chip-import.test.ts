import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { eq } from "drizzle-orm"
import { type ChipRow, chips } from "../../src/db/schema.ts"
import { coveredText, macFor, sessionMacKey } from "../../src/engine/sun/message.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import type { ChipLine } from "../../src/resources/chip-stock/file.ts"
import { importChips } from "../../src/resources/chip-stock/import.ts"
import { ChipFileError } from "../../src/resources/chip-stock/records.ts"
import { diagnoserOf } from "../../src/resources/tap-diagnoses/service.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, openService, type TestService } from "../harness/services.ts"

describe.each(engines)("on $name a chip import", (engine) => {
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

  test("stores every chip once, in batches, and reports its progress", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(5_300)
    const told: unknown[][] = []
    const outcome = await importChips(service.context, caller.organization_id, lines, (...words) =>
      told.push(words),
    )
    expect(outcome).toEqual({ imported: 5_300, replaced: 0, changed: 0, already_imported: 0 })
    expect(await storedOf(caller)).toHaveLength(5_300)
    expect(told.filter(([step]) => step === "checking").at(-1)).toEqual(["checking", 5_300, 5_300])
    expect(told.slice(-2)).toEqual([
      ["storing", 5_250, 5_300],
      ["storing", 5_300, 5_300],
    ])
  })

  test("stores nothing if everything is already stored", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(300)
    await importChips(service.context, caller.organization_id, lines)
    const again = await importChips(service.context, caller.organization_id, lines)
    expect(again).toEqual({ imported: 0, replaced: 0, changed: 0, already_imported: 300 })
  })

  test("updates the MAC input that diagnosis found for a chip that was never paired or tapped", async () => {
    const { organization_id } = await createCaller(service)
    const [line] = drawLines(1) as [ChipLine]
    const run = (mac_input: string) =>
      importChips(service.context, organization_id, [{ ...line, has_mac: true, mac_input }])
    await run("")
    const judge = await judgeOf(organization_id, line, "{e}&c=")
    const found = await judge()
    expect([found.verdict, found.checks.at(-1)?.detail, found.advice]).toEqual([
      "mac_input",
      "the MAC covers the text {e}&c=",
      expect.stringContaining("Import the chip again with the text that its MAC covers as its mac_input"),
    ])
    expect(await run("{e}&c=")).toEqual({ imported: 0, replaced: 0, changed: 1, already_imported: 0 })
    expect((await judge()).verdict).toBe("accepted")
    expect(await run("{e}&c=")).toMatchObject({ changed: 0, already_imported: 1 })
  })

  test("with swapped keys is diagnosed as such, and a corrected import repairs it", async () => {
    const { organization_id } = await createCaller(service)
    const [line] = drawLines(1) as [ChipLine]
    const run = (changes: Partial<ChipLine> = {}) =>
      importChips(service.context, organization_id, [{ ...line, ...changes }])
    await run({ meta_key: line.file_key, file_key: line.meta_key })
    const judge = await judgeOf(organization_id, line)
    const found = await judge()
    expect([found.verdict, found.advice]).toEqual([
      "keys_swapped",
      expect.stringContaining("Import the chip again"),
    ])
    expect(await run()).toEqual({ imported: 0, replaced: 0, changed: 1, already_imported: 0 })
    expect((await judge()).verdict).toBe("accepted")
    expect(await run()).toMatchObject({ changed: 0, already_imported: 1 })
  })

  test("with UIDs in reverse order, as some readers print them, is repaired by a corrected import", async () => {
    const { organization_id } = await createCaller(service)
    const [drawn, other] = drawLines(2) as [ChipLine, ChipLine]
    const line = { ...drawn, uid: `04${drawn.uid.slice(2)}` }
    const uid = upperHex(Buffer.from(line.uid, "hex").reverse())
    const run = (changes: Partial<ChipLine> = {}) =>
      importChips(service.context, organization_id, [{ ...line, ...changes }, other])
    await run({ uid })
    const judge = await judgeOf(organization_id, line)
    const found = await judge()
    expect([found.verdict, found.advice]).toEqual([
      "other_chip",
      expect.stringContaining("import the chip again with the UID that is on it"),
    ])
    expect(await run()).toEqual({ imported: 0, replaced: 0, changed: 1, already_imported: 1 })
    expect((await judge()).verdict).toBe("accepted")
    await expect(run({ uid: other.uid })).rejects.toBeInstanceOf(ChipFileError)
    await expect(run({ uid, file_key: randomBytes(16) })).rejects.toBeInstanceOf(ChipFileError)
  })

  test("with UIDs in the rows of other chips is repaired by a corrected import, however many there are", async () => {
    const { organization_id } = await createCaller(service)
    const lines = drawLines(600).map((line) => ({ ...line, uid: `04${line.uid.slice(2)}` }))
    const shifted = lines.map((line, index) => ({ ...line, uid: String(lines.at(index - 1)?.uid) }))
    await importChips(service.context, organization_id, shifted)
    for (const line of [lines[0], lines[599]] as ChipLine[]) {
      const found = await (await judgeOf(organization_id, line))()
      expect([found.verdict, found.advice]).toEqual([
        "other_chip",
        expect.stringContaining("import the chip again with the UID that is on it"),
      ])
    }
    const onlySome = importChips(service.context, organization_id, lines.slice(0, 300))
    await expect(onlySome).rejects.toThrow(`${lines[299]?.place}: chip ${lines[299]?.chip_id} or its uid`)
    const outcome = await importChips(service.context, organization_id, lines)
    expect(outcome).toEqual({ imported: 0, replaced: 0, changed: 600, already_imported: 0 })
    for (const line of lines) {
      const judge = await judgeOf(organization_id, line)
      expect((await judge()).verdict).toBe("accepted")
    }
    const again = await importChips(service.context, organization_id, lines)
    expect(again).toMatchObject({ changed: 0, already_imported: 600 })
  })

  test("takes no UID from a chip that is in use or of another organization", async () => {
    const { organization_id } = await createCaller(service)
    const stranger = await createCaller(service)
    const [one, other, foreign] = drawLines(3) as [ChipLine, ChipLine, ChipLine]
    await importChips(service.context, organization_id, [one, other])
    await importChips(service.context, stranger.organization_id, [foreign])
    const swapped = [
      { ...one, uid: other.uid },
      { ...other, uid: one.uid },
    ]
    const ofOther = eq(chips.chip_id, other.chip_id)
    await service.context.db.transaction((tx) =>
      tx.update(chips).set({ paired_at: new Date() }).where(ofOther),
    )
    const wrong = [swapped, [{ ...one, uid: foreign.uid }]]
    for (const lines of wrong)
      await expect(importChips(service.context, organization_id, lines)).rejects.toBeInstanceOf(ChipFileError)
    const rows = await service.context.db.read.select().from(chips)
    for (const { chip_id, uid } of [one, other, foreign])
      expect(rows.find((row) => row.chip_id === chip_id)?.uid).toBe(uid)
  })

  test("raises the counter of a chip that was never paired or tapped, and never lowers it", async () => {
    const { organization_id } = await createCaller(service)
    const [line] = drawLines(1) as [ChipLine]
    const run = (counter: number) => importChips(service.context, organization_id, [{ ...line, counter }])
    const judge = await judgeOf(organization_id, line)
    await run(0)
    expect((await judge()).verdict).toBe("accepted")
    expect(await run(7)).toEqual({ imported: 0, replaced: 0, changed: 1, already_imported: 0 })
    expect(await run(0)).toEqual({ imported: 0, replaced: 0, changed: 0, already_imported: 1 })
    const { verdict, checks } = await judge()
    expect([verdict, checks.at(-1)?.detail]).toEqual([
      "already_scanned",
      "read counter 1, but 7 was already accepted",
    ])
    expect(await run(8)).toMatchObject({ changed: 1 })
    await service.context.db.transaction((tx) =>
      tx.update(chips).set({ counter: 9 }).where(eq(chips.chip_id, line.chip_id)),
    )
    await expect(run(10)).rejects.toBeInstanceOf(ChipFileError)
  })

  /** Diagnoses the tag of a line by its URL, with what is stored of its chip then. */
  async function judgeOf(organization_id: string, line: ChipLine, macInput = "") {
    const judge = await diagnoserOf(service.context.db.read, service.secret, organization_id)
    return () => judge({ url: addressOf(line, macInput), file_settings: null })
  }

  const inUse: [string, Partial<typeof chips.$inferInsert>][] = [
    ["was paired", { paired_at: new Date() }],
    ["is reserved", { reserved_for: newId() }],
    ["is retired", { retired_at: new Date() }],
    ["was tapped", { counter: 1 }],
  ]
  test.each(inUse)("rejects changes to a chip that %s and leaves it as it is", async (_, changes) => {
    const { organization_id } = await createCaller(service)
    const [line] = drawLines(1) as [ChipLine]
    const run = (...changed: Partial<ChipLine>[]) =>
      importChips(service.context, organization_id, [Object.assign({}, line, ...changed)])
    await run()
    const profile = { has_mac: true, mac_input: "{enc}&c=", tamper: true }
    const ofChip = eq(chips.chip_id, line.chip_id)
    await service.context.db.transaction((tx) => tx.update(chips).set(changes).where(ofChip))
    const [before] = await service.context.db.read.select().from(chips).where(ofChip)
    await expect(run(profile)).rejects.toBeInstanceOf(ChipFileError)
    await expect(run({ meta_key: randomBytes(16) })).rejects.toBeInstanceOf(ChipFileError)
    await expect(run({ uid: `04${upperHex(randomBytes(6))}` })).rejects.toBeInstanceOf(ChipFileError)
    const [row] = await service.context.db.read.select().from(chips).where(ofChip)
    expect(row).toEqual(before as ChipRow)
    expect(row).toMatchObject({ has_mac: false, mac_input: "", tamper: null })
  })

  test("adds tamper detection to a chip that was imported without it", async () => {
    const { organization_id } = await createCaller(service)
    const [line] = drawLines(1) as [ChipLine]
    const run = (changes: Partial<ChipLine> = {}) =>
      importChips(service.context, organization_id, [{ ...line, ...changes }])
    await run()
    const profile = { has_mac: true, mac_input: "{enc}&c=", tamper: true }
    expect(await run(profile)).toMatchObject({ changed: 1 })
    const [row] = await service.context.db.read.select().from(chips).where(eq(chips.chip_id, line.chip_id))
    expect(row).toMatchObject({ has_mac: true, mac_input: "{enc}&c=", tamper: "unknown" })
  })

  test("of a file that is still being written reports how many chips it has already stored", async () => {
    const caller = await createCaller(service)
    const whole = drawLines(300)
    const runGrowing = async (lines: ChipLine[]) => {
      let reads = 0
      const growing = {
        *[Symbol.iterator]() {
          yield* lines
          if (++reads === 3) throw new ChipFileError(["line 302: uid is missing"])
        },
      }
      return await importChips(service.context, caller.organization_id, growing).catch((error) => error)
    }
    const saysSo = [
      ["line 302: uid is missing"],
      expect.stringContaining("250 of its chips were imported: run this again"),
    ]
    const failure = await runGrowing(whole)
    expect(await storedOf(caller)).toHaveLength(250)
    expect([failure.problems, failure.outcome]).toEqual(saysSo)
    const again = await runGrowing(whole.map((line) => ({ ...line, meta_key: randomBytes(16) })))
    expect([again.problems, again.outcome]).toEqual(saysSo)
  })

  test("that runs concurrently with another of the same chips stores each once, and one that loses may be repeated", async () => {
    const caller = await createCaller(service)
    const lines = drawLines(300)
    const run = () => importChips(service.context, caller.organization_id, lines)
    const outcomes = await Promise.allSettled([run(), run(), run()])
    for (const each of outcomes)
      if (each.status === "rejected") expect(String(each.reason)).toContain("run this one again")
    // The one that stored the last part is among them, though one that then failed may have stored the first.
    const stored = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value.imported] : []))
    expect(stored.reduce((sum, imported) => sum + imported, 0)).toBeWithin(1, 301)
    expect(await storedOf(caller)).toHaveLength(300)
    expect(await run()).toEqual({ imported: 0, replaced: 0, changed: 0, already_imported: 300 })
  })
})

/** The URL that a phone reads from a tag whose MAC covers this text. */
function addressOf({ chip_id, uid, meta_key, file_key }: ChipLine, macInput: string): string {
  const chip = { uid: Buffer.from(uid, "hex"), metaKey: meta_key, fileKey: file_key }
  const { e } = emitSun(chip, 1)
  const c = macFor(sessionMacKey(file_key, chip.uid, 1), coveredText(macInput, { e }))
  return `https://tap.example/t/${chip_id}?e=${e}&c=${upperHex(c)}`
}

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
