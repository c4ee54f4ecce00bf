import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs"

/**
 * Writes a file that only its owner can read, part by part: it appears at `path` when it is complete and on the disk,
 * or not at all. A draft left by an earlier try is replaced.
 */
export async function writeWhole(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const draft = `${path}.part`
  rmSync(draft, { force: true })
  const file = openSync(draft, "wx", 0o600)
  try {
    for await (const part of parts) writeAll(file, part)
    fsyncSync(file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

/** As `writeWhole`, for what is at hand in one piece. */
export function writeWholeAtOnce(path: string, content: string | Uint8Array): void {
  makeWhole(path, (draft) => writeFileSync(draft, content, { mode: 0o600, flag: "wx" }))
}

/** As `writeWhole`, for what `make` puts at the path that it is told. */
export function makeWhole(path: string, make: (draft: string) => void): void {
  const draft = `${path}.part`
  rmSync(draft, { force: true })
  try {
    make(draft)
    const file = openSync(draft, "r+")
    fsyncSync(file)
    closeSync(file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  renameSync(draft, path)
}

/** How many characters are written at once. */
const partCharacters = 65_536

/** Texts as bytes, in parts that are worth writing. */
export async function* inParts(texts: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let part = ""
  for await (const text of texts) {
    part += text
    if (part.length < partCharacters) continue
    yield encoder.encode(part)
    part = ""
  }
  if (part !== "") yield encoder.encode(part)
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let start = 0; start < bytes.length; ) start += writeSync(file, bytes, start)
}
