import { expect, test } from "bun:test"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { writeWhole } from "../../src/platform/whole-file.ts"

test("of two that write one file at once the later one wins, and no part of a file is ever seen", async () => {
  const folder = mkdtempSync(join(tmpdir(), "whole-"))
  const path = join(folder, "stock.csv")
  const begun = Promise.withResolvers<void>()
  const seen = Promise.withResolvers<void>()
  const earlier = writeWhole(path, inTwoParts("earlier", begun.promise))
  const later = writeWhole(path, inTwoParts("later", seen.promise))
  begun.resolve()
  await expect(earlier).rejects.toThrow(`another process has begun to write '${path}'`)
  expect(existsSync(path)).toBe(false)
  seen.resolve()
  await later
  expect([readFileSync(path, "utf8"), readdirSync(folder)]).toEqual(["later, whole", ["stock.csv"]])
  rmSync(folder, { recursive: true })
})

async function* inTwoParts(first: string, until: Promise<void>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(first)
  await until
  yield Buffer.from(", whole")
}
