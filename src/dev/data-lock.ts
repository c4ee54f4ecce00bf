import { join } from "node:path"
import { takeFile } from "../platform/file-lock.ts"
import { StartError } from "../platform/start-error.ts"

/** Locks the folder against a second service for as long as this process lives, however it ends. */
export function lockFolder(folder: string): () => void {
  const unlock = take(folder, 2_000)
  if (unlock) return unlock
  throw new StartError(`another service runs in ${folder}; stop it, or set DATA_DIR to another folder`)
}

/** Whether a service has locked the folder, even if it is still starting. */
export function isFolderLocked(folder: string): boolean {
  const unlock = take(folder, 0)
  unlock?.()
  return unlock === null
}

/** Keeps other demos that have no service to use away from the folder, or returns null if one of them has it. */
export function lockForDemo(folder: string): (() => void) | null {
  return take(folder, 0, "demo.lock.db")
}

function take(folder: string, patienceMilliseconds: number, name = "lock.db"): (() => void) | null {
  try {
    return takeFile(join(folder, name), patienceMilliseconds)
  } catch (error) {
    throw new StartError(
      `cannot write in ${folder}: ${(error as Error).message}; set DATA_DIR to a writable folder`,
    )
  }
}
