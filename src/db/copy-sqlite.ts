import { Database as Connection } from "bun:sqlite"

/** Copies a database as it is at this moment into a new file, while others go on writing. */
export function copySqlite(path: string, file: string): void {
  const db = new Connection(path, { readonly: true })
  try {
    db.run("pragma busy_timeout = 10000")
    db.run("vacuum into ?", [file])
  } finally {
    db.close()
  }
}
