/**
 * Carries a snapshot that one version of a machine stored into what the next version reads. A machine that needs one
 * exports its migrations, oldest first, beside itself; the first is from version 1. Pure, and kept for ever.
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
