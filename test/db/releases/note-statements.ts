import { appendFileSync } from "node:fs"
import { join, relative } from "node:path"
import { PgDatabase } from "drizzle-orm/pg-core"

// Preloaded into a process and, through the environment, into its child processes: records each statement that the
// service executes, with its place in the source.

const root = join(import.meta.dir, "../../..")
const folder = String(process.env.STATEMENTS_FOLDER)
const inherited = { STATEMENTS_FOLDER: folder, BUN_OPTIONS: `--preload=${import.meta.path}` }
const noted = new Set<string>()

type Build = (this: object, ...asked: unknown[]) => unknown
type Session = { prepareQuery(query: { sql: string }, ...rest: unknown[]): unknown }

const builders = PgDatabase.prototype as unknown as Record<string, Build>
for (const name of [
  "select",
  "selectDistinct",
  "selectDistinctOn",
  "insert",
  "update",
  "delete",
  "execute",
]) {
  const build = builders[name]
  if (!build)
    throw new Error(`drizzle's database has no ${name}: note-statements.ts does not know this release`)
  builders[name] = function (this: object, ...asked) {
    const place = placeInProduct(String(new Error("where this was called").stack))
    return build.apply(place ? notingAt(place, this) : this, asked)
  }
}

const spawn = Bun.spawn as unknown as (command: string[], options?: { env?: object }) => unknown
Object.assign(Bun, {
  spawn: (command: string[], options?: { env?: object }) =>
    spawn(command, { ...options, env: { ...(options?.env ?? process.env), ...inherited } }),
})

/** Where the service called a query builder; null if a test did, or code that maintains the tables. */
function placeInProduct(stack: string): string | null {
  const places = [...stack.matchAll(/[( ](\/[^():]+):(\d+):\d+/g)]
  const caller = places.find(([, path = ""]) => path !== import.meta.path && !path.includes("/node_modules/"))
  const path = relative(root, caller?.[1] ?? root)
  return /^(src|workers)\/(?!db\/)/.test(path) ? `${path}:${caller?.[2]}` : null
}

/** Wraps a database so that the statements built on it are recorded. */
function notingAt(place: string, database: object): object {
  const { session } = database as { session: Session }
  const noting: Session = {
    prepareQuery(query, ...rest) {
      note(place, query.sql)
      return session.prepareQuery(query, ...rest)
    },
  }
  return Object.assign(Object.create(database), { session: Object.assign(Object.create(session), noting) })
}

function note(place: string, statement: string): void {
  const line = `${JSON.stringify({ place, statement })}\n`
  if (noted.has(line)) return
  noted.add(line)
  appendFileSync(join(folder, `${process.pid}.jsonl`), line)
}
