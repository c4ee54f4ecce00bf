import { Database as Connection } from "bun:sqlite"
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs"

/**
 * Copies a database as it is at this moment into a new file, while others go on writing to it. The file has its name
 * once the copy is whole and on the disk.
 */
export function copySqlite(path: string, file: string): void {
  const part = `${file}.part`
  rmSync(part, { force: true })
  const db = new Connection(path, { readonly: true })
  try {
    db.run("pragma busy_timeout = 10000")
    db.run("vacuum into ?", [part])
    sync(part)
    renameSync(part, file)
  } finally {
    db.close()
    rmSync(part, { force: true })
  }
}

function sync(file: string): void {
  const descriptor = openSync(file, "r+")
  fsyncSync(descriptor)
  closeSync(descriptor)
}
