import { describe, expect, test } from "bun:test"
import { newId, parseChipId, parseId } from "../../src/platform/ids.ts"

describe("ids", () => {
  test("always increase, however many are made within a millisecond", () => {
    const ids = Array.from({ length: 50_000 }, newId)
    const millisecond = (id: string) => id.slice(0, 13)
    expect(new Set(ids.map(millisecond)).size).toBeLessThan(ids.length)
    expect(ids.filter((id, index) => index > 0 && id <= String(ids[index - 1]))).toEqual([])
  })

  test("are UUIDs of version 7 (RFC 9562), and are parsed in either case", () => {
    const id = newId()
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(parseId(id.toUpperCase())).toBe(id)
  })

  test("in another format are rejected", () => {
    for (const text of ["", "x", `${newId()}0`, newId().replaceAll("-", ""), `${newId()}\n`])
      expect(parseId(text)).toBeNull()
    for (const text of ["", "04A1B2C3D", "04A1B2C3D45", "04A1B2C3DG"]) expect(parseChipId(text)).toBeNull()
    expect(parseChipId("04a1b2c3d4")).toBe("04A1B2C3D4")
  })
})
