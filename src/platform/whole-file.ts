import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs"

/**
 * Writes a file part by part, readable only by its owner. It appears at `path` once it is complete and on disk, or not
 * at all. Replaces a draft left by an earlier attempt; if that is still running, that fails, and this does not.
 */
export async function writeWhole(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const draft = `${path}.part`
  rmSync(draft, { force: true })
  const file = openSync(draft, "wx", 0o600)
  const isOwn = () => statSync(draft, { throwIfNoEntry: false })?.ino === fstatSync(file).ino
  try {
    for await (const part of parts) naming(path, () => writeAll(file, part))
    naming(path, () => fsyncSync(file))
    if (!isOwn()) throw takenOver(path)
  } catch (error) {
    if (isOwn()) rmSync(draft)
    throw error
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

/** Writes content at hand as `writeWhole` does. */
export function writeWholeAtOnce(path: string, content: string | Uint8Array): void {
  makeWhole(path, (draft) => writeFileSync(draft, content, { mode: 0o600, flag: "wx" }))
}

/** Writes a file as `writeWhole` does; `make` creates it at the path that it is given. */
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

/** Texts are joined up to this many characters. */
const partCharacters = 65_536

/** Encodes texts as bytes, in parts large enough to write efficiently. */
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

function takenOver(path: string): Error {
  return Object.assign(new Error(`another process has begun to write '${path}'`), { code: "EBUSY", path })
}

/** Adds the path to an error of writing to an open file, such as of a full disk, which has none. */
function naming(path: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    const { message } = error as Error
    throw Object.assign(error as Error, { path, message: `${message} '${path}'` })
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let start = 0; start < bytes.length; ) start += writeSync(file, bytes, start)
}
