import { Database as Connection } from "bun:sqlite"

/** Copies a consistent snapshot of a database into a new file while other processes keep writing. */
export function copySqlite(path: string, file: string): void {
  const db = new Connection(path, { readonly: true })
  try {
    db.run("pragma busy_timeout = 10000")
    db.run("vacuum into ?", [file])
  } finally {
    db.close()
  }
}
