import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { dataDirOf, type Environment } from "../platform/config.ts"
import { ConfigError } from "../platform/config-error.ts"
import { writeWholeAtOnce } from "../platform/whole-file.ts"

/**
 * The variables that a dev service chose, such as `SERVICE_SECRET` and `CHAINS`, for other commands; empty if there
 * was none. Throws `ConfigError` unless `writeDevEnvironment` wrote the file.
 */
export function readDevEnvironment(dataDir: string): Environment {
  const path = join(dataDir, fileName)
  let document: unknown
  try {
    document = JSON.parse(readFileSync(path, "utf8"))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {}
    throw new ConfigError(
      `${path} cannot be read as JSON: start the dev service again, and it rewrites the file`,
    )
  }
  const isEnvironment =
    document !== null &&
    typeof document === "object" &&
    !Array.isArray(document) &&
    Object.values(document).every((value) => typeof value === "string")
  if (!isEnvironment)
    throw new ConfigError(
      `${path} must be an object of strings: start the dev service again, and it rewrites the file`,
    )
  return document as Environment
}

/** Writes a dev service's variables, secrets included, readable by its owner only, completely or not at all. */
export function writeDevEnvironment(dataDir: string, values: Record<string, string>): void {
  mkdirSync(dataDir, { recursive: true })
  writeWholeAtOnce(join(dataDir, fileName), `${JSON.stringify(values, null, 2)}\n`)
}

/**
 * The real environment, completed by what the dev service of its `DATA_DIR` left, unless it is that of another service.
 * Throws `ConfigError` if neither names a service.
 */
export function withDevEnvironment(environment: Environment): Environment {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
  const dataDir = dataDirOf(environment)
  const left = readDevEnvironment(dataDir)
  const known: Environment = isOfAnother(given, left) ? given : { ...left, ...given }
  if (known.SERVICE_SECRET) return known
  throw new ConfigError(
    `there is no service in ${dataDir}: start one with bun run dev, set DATA_DIR to the folder of one, or set SERVICE_SECRET, DATABASE_URL and the others as its processes have them`,
  )
}

/** Settings of two services must not mix: the local chain's keys, which everybody knows, would get lanes in the other. */
function isOfAnother({ SERVICE_SECRET, SERVICE_SECRET_PREVIOUS }: Environment, left: Environment): boolean {
  return Boolean(SERVICE_SECRET) && ![SERVICE_SECRET, SERVICE_SECRET_PREVIOUS].includes(left.SERVICE_SECRET)
}

const fileName = "environment.json"
