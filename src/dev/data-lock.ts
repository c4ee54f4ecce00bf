import { Database } from "bun:sqlite"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { StartError } from "../platform/start-error.ts"

/** Keeps a second service away from the folder for as long as this process lives, however it ends. */
export function lockFolder(folder: string): () => void {
  try {
    mkdirSync(folder, { recursive: true })
    // The operating system drops a file lock with its process; SQLite is the file lock at hand.
    const lock = new Database(join(folder, "lock.db"), { create: true })
    lock.exec("pragma busy_timeout = 2000")
    lock.exec("begin exclusive")
    return () => lock.close()
  } catch (error) {
    const isHeld = (error as { code?: string }).code === "SQLITE_BUSY"
    throw new StartError(
      isHeld
        ? `another service runs in ${folder}; stop it, or set DATA_DIR to another folder`
        : `cannot write in ${folder}: ${(error as Error).message}; set DATA_DIR to a folder that can be written`,
    )
  }
}
