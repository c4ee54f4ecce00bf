/**
 * Migrates a stored snapshot from one version of a machine to the next. A machine that needs migrations exports them
 * beside itself, oldest first, the first from version 1. Pure, and kept for ever.
 */
export type Migration = (stored: StoredSnapshot) => StoredSnapshot

/** What of a persisted snapshot a migration may have to change; `children` are its open effects. */
export type StoredSnapshot = {
  status: string
  value: unknown
  context: Record<string, unknown>
  children: Record<string, unknown>
  [key: string]: unknown
}
