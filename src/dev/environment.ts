import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { dataDirOf, type Environment } from "../platform/config.ts"
import { ConfigError } from "../platform/config-error.ts"
import { writeWholeAtOnce } from "../platform/whole-file.ts"

/**
 * What a dev service left for the other commands: the variables it made up, such as `SERVICE_SECRET` and `CHAINS`.
 * Empty when there was none. Throws `ConfigError` when the file is not what `writeDevEnvironment` writes.
 */
export function readDevEnvironment(dataDir: string): Environment {
  const path = join(dataDir, fileName)
  let document: unknown
  try {
    document = JSON.parse(readFileSync(path, "utf8"))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {}
    throw new ConfigError(
      `${path} cannot be read as JSON: start the dev service again, it writes the file anew`,
    )
  }
  const isEnvironment =
    document !== null &&
    typeof document === "object" &&
    !Array.isArray(document) &&
    Object.values(document).every((value) => typeof value === "string")
  if (!isEnvironment)
    throw new ConfigError(
      `${path} must be an object of texts: start the dev service again, it writes the file anew`,
    )
  return document as Environment
}

/** Whether a dev service left anything at all. */
export function hasDevEnvironment(dataDir: string): boolean {
  return existsSync(join(dataDir, fileName))
}

/** Leaves the variables of a dev service, secrets included, for its owner's eyes only: whole or not at all. */
export function writeDevEnvironment(dataDir: string, values: Record<string, string>): void {
  mkdirSync(dataDir, { recursive: true })
  writeWholeAtOnce(join(dataDir, fileName), `${JSON.stringify(values, null, 2)}\n`)
}

/**
 * The real environment, and where it has no value, what the dev service of its `DATA_DIR` left. Throws `ConfigError`
 * where neither says of which service it is.
 */
export function withDevEnvironment(environment: Environment): Environment {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
  const dataDir = dataDirOf(environment)
  const known: Environment = { ...readDevEnvironment(dataDir), ...given }
  if (known.SERVICE_SECRET) return known
  throw new ConfigError(
    `there is no service in ${dataDir}: start one with bun run dev, set DATA_DIR to the folder of one, or set SERVICE_SECRET, DATABASE_URL and the others as its processes have them`,
  )
}

const fileName = "environment.json"
