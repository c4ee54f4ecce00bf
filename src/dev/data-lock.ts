import { join } from "node:path"
import { takeFile } from "../platform/file-lock.ts"
import { StartError } from "../platform/start-error.ts"

/** Keeps a second service away from the folder for as long as this process lives, however it ends. */
export function lockFolder(folder: string): () => void {
  const unlock = take(folder, 2_000)
  if (unlock) return unlock
  throw new StartError(`another service runs in ${folder}; stop it, or set DATA_DIR to another folder`)
}

/** Whether a service has the folder, be it that it starts only now. */
export function isFolderLocked(folder: string): boolean {
  const unlock = take(folder, 0)
  unlock?.()
  return unlock === null
}

function take(folder: string, patienceMilliseconds: number): (() => void) | null {
  try {
    return takeFile(join(folder, "lock.db"), patienceMilliseconds)
  } catch (error) {
    throw new StartError(
      `cannot write in ${folder}: ${(error as Error).message}; set DATA_DIR to a folder that can be written`,
    )
  }
}
