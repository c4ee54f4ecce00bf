import type { StoredSnapshot } from "../../../machines/migration.ts"
import type { ActorRow } from "../../db/schema.ts"
import type { Lifecycle } from "./lifecycles.ts"

/**
 * Returns an actor's stored snapshot, migrated to the machine's current version. Throws if a newer release stored it.
 */
export function currentSnapshot({ machine, migrations, version }: Lifecycle, actor: ActorRow): unknown {
  const { id, machine_version, snapshot } = actor
  if (machine_version > version)
    throw new Error(
      `${machine.id} ${id} was stored by version ${machine_version} of its machine, but this release supports only versions up to ${version}: run the release that stored it, or a later one`,
    )
  return migrations
    .slice(machine_version - 1)
    .reduce((stored, migrate) => migrate(stored), snapshot as StoredSnapshot)
}
