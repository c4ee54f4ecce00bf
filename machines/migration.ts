/**
 * Migrates a stored snapshot from one version of a machine to the next. A machine that needs migrations exports them
 * from its own file, oldest first; the first migrates from version 1. Pure, and never removed.
 */
export type Migration = (stored: StoredSnapshot) => StoredSnapshot

/** The parts of a persisted snapshot that a migration may change; `children` holds its open effects. */
export type StoredSnapshot = {
  status: string
  value: unknown
  context: Record<string, unknown>
  children: Record<string, unknown>
  [key: string]: unknown
}
