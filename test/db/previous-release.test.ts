import { Database } from "bun:sqlite"
import { describe, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import pg from "pg"
import { migrate, migrationNames } from "../../src/db/migrate.ts"
import { type Databases, type Engine, engines, useEngine } from "../harness/engines.ts"
import { startOfTime } from "../harness/scene.ts"
import { notesIn, placesOfQueries, representative } from "./releases/record.ts"

// During a rollout, processes of the previous release run on the new schema, which must accept all their statements. A
// release's statements are recorded in test/db/releases by record.ts.

const folder = join(import.meta.dir, "releases")
const root = join(import.meta.dir, "../..")
const releases = readdirSync(folder)
  .filter((file) => file.endsWith(".sql"))
  .sort()
  .map((file) => ({ name: basename(file, ".sql"), statements: readStatements(join(folder, file)) }))

/** Changes that no migration may make to the first release, each with a statement that must be found to break. */
const breakingMigrations = [
  {
    does: "drops a column",
    migration: "alter table lanes drop column lease_epoch",
    breaks: /"lease_epoch"/,
  },
  {
    does: "renames a column",
    migration: "alter table transfers rename column sender to giver",
    breaks: /"sender"/,
  },
  {
    does: "drops a table",
    migration: "drop table identity_token_uses",
    breaks: /"identity_token_uses"/,
  },
  {
    does: "renames a table",
    migration: "alter table chip_replacements rename to replacements",
    breaks: /"chip_replacements"/,
  },
  {
    does: "requires a column that the release does not know",
    migration: `drop table identity_token_uses;
      create table identity_token_uses (organization_id uuid not null, jti text not null,
        expires_at timestamptz(3) not null, issuer text not null, primary key (organization_id, jti))`,
    breaks: /^insert into "identity_token_uses"/,
  },
  {
    does: "requires a column that the release leaves empty",
    migration: `drop table publishable_keys;
      create table publishable_keys (id uuid primary key, organization_id uuid, key text, name text, mode text,
        created_at timestamptz(3), revoked_at timestamptz(3) not null default '9999-12-31')`,
    breaks: /^insert into "publishable_keys"/,
  },
  {
    does: "drops the key on which the release detects a conflict",
    migration: `drop table chain_cursors;
      create table chain_cursors (chain_id bigint not null, block_number bigint not null,
        block_hash text not null, updated_at timestamptz(3) not null)`,
    breaks: /on conflict \("chain_id"\)/,
  },
]

test("the statements of a release before the newest migration are recorded: bun test/db/releases/record.ts", () => {
  const before = migrationNames().slice(0, -1)
  const recorded = before.filter((file) => releases.some(({ name }) => file === `${name}.sql`))
  if (before.length > 0) expect(recorded).not.toEqual([])
})

// Most queries are written with query(), which builds them once: src/db/query.ts.
test("a record of this release tells of every file whose queries were not asked, also of those built once", () => {
  const named = new Set(placesOfQueries().map((place) => place.replace(/:\d+$/, "")))
  const files = [...new Bun.Glob("{src,workers}/**/*.ts").scanSync(root)]
    .filter((path) => !path.startsWith("src/db/"))
    .filter((path) => /\bquery\(\(db\b/.test(readFileSync(join(root, path), "utf8")))
  expect(files.filter((path) => !named.has(path))).toEqual([])
})

for (const engine of engines) {
  describe(`the newest schema on ${engine.name}`, () => {
    const databases = useEngine(engine)
    for (const { name, statements } of releases)
      test(`accepts the statements of release ${name}`, async () => {
        await using planner = await openNewest(engine, databases)
        expect(await refusedOf(statements, planner)).toEqual([])
      })

    test("accepts what is recorded of this release's query with a list of values", async () => {
      await using planner = await openNewest(engine, databases)
      const recorded = recordedOf(
        `import { ownIssuances } from "./src/engine/found-serials.ts"
         await ownIssuances({ ask: () => [] } as never, ["0x1", "0x2"])`,
      )
      expect(recorded).toHaveLength(1)
      expect(await refusedOf(recorded, planner)).toEqual([])
    })
  })

  describe(`on ${engine.name} the check reports what breaks when a migration`, () => {
    const databases = useEngine(engine)
    const statements = releases[0]?.statements ?? []
    for (const { does, migration, breaks } of breakingMigrations)
      test(does, async () => {
        const broken = statements.filter((statement) => breaks.test(statement))
        await using planner = await openNewest(engine, databases)
        await planner.run(migration)
        const refused = await refusedOf(statements, planner)
        expect(broken).not.toEqual([])
        expect(refused.map(({ statement }) => statement)).toEqual(broken)
      })
  })
}

/** The statements that are recorded while a script runs. */
function recordedOf(script: string): string[] {
  const notes = mkdtempSync(join(tmpdir(), "statements-"))
  const noting = ["--preload", join(folder, "note-statements.ts")]
  try {
    const { stderr, success } = Bun.spawnSync([process.execPath, ...noting, "-e", script], {
      cwd: root,
      env: { ...process.env, STATEMENTS_FOLDER: notes },
    })
    if (!success) throw new Error(stderr.toString())
    return notesIn(notes).map(({ statement }) => representative(statement))
  } finally {
    rmSync(notes, { recursive: true })
  }
}

function readStatements(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("--"))
    .map((line) => line.replace(/;$/, ""))
}

type Refused = { statement: string; why: string }

async function refusedOf(statements: string[], planner: Planner): Promise<Refused[]> {
  const demanded = await planner.demandedColumns()
  const refused: Refused[] = []
  for (const statement of statements) {
    const why = (await planner.whyRefused(statement)) ?? whatLacks(statement, demanded)
    if (why) refused.push({ statement, why })
  }
  return refused
}

/** A connection to a new database with the newest schema. */
async function openNewest(engine: Engine, databases: Databases): Promise<Planner> {
  const url = await databases.newDatabase()
  await migrate(databases.open(url), startOfTime)
  return engine.name === "sqlite" ? openSqlite(url) : await openPostgres(url)
}

/** A column that is not nullable. */
type DemandedColumn = { table: string; column: string; has_default: boolean }

type Planner = AsyncDisposable & {
  run(statements: string): Promise<void>
  /** Why the engine cannot plan a statement; null if it can. */
  whyRefused(statement: string): Promise<string | null>
  demandedColumns(): Promise<DemandedColumn[]>
}

function openSqlite(url: string): Planner {
  const connection = new Database(url.replace(/^sqlite:/, ""))
  return {
    async run(statements) {
      connection.exec(statements)
    },
    async whyRefused(statement) {
      try {
        // SQLite takes an unknown name in double quotes for a string.
        connection.prepare(statement.replaceAll(/"(\w+)"/g, "[$1]")).finalize()
        return null
      } catch (error) {
        return (error as Error).message
      }
    },
    async demandedColumns() {
      const columns = connection
        .query(
          `select tables.name as "table", columns.name as "column", columns.dflt_value is not null as has_default
           from sqlite_schema tables join pragma_table_info(tables.name) columns
           where tables.type = 'table' and columns."notnull"`,
        )
        .all() as { table: string; column: string; has_default: number }[]
      return columns.map((column) => ({ ...column, has_default: column.has_default === 1 }))
    },
    [Symbol.asyncDispose]: async () => connection.close(),
  }
}

async function openPostgres(url: string): Promise<Planner> {
  const client = new pg.Client(url)
  await client.connect()
  return {
    async run(statements) {
      await client.query(statements)
    },
    async whyRefused(statement) {
      const params = new Set(statement.match(/\$\d+/g)).size
      try {
        // Planned, not only parsed: the conflict target is resolved during planning.
        await client.query(`explain ${statement}`, Array(params).fill(null))
        return null
      } catch (error) {
        return (error as Error).message
      }
    },
    async demandedColumns() {
      const { rows } = await client.query<DemandedColumn>(
        `select table_name as table, column_name as column, column_default is not null as has_default
         from information_schema.columns where table_schema = 'public' and is_nullable = 'NO'`,
      )
      return rows
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** Which required column an inserted row lacks; null if none. */
function whatLacks(statement: string, demanded: DemandedColumn[]): string | null {
  if (!statement.startsWith("insert ")) return null
  const [, table, names, row] = /^insert into "(\w+)" \(([^()]+)\) values \(([^()]+)\)/.exec(statement) ?? []
  if (!names || !row) return "is an insert that this check cannot read"
  const values = row.split(", ")
  const given = new Map(names.split(", ").map((name, index) => [name.slice(1, -1), values[index]]))
  const lacking = demanded.find(
    ({ column, has_default, ...of }) =>
      of.table === table && (given.has(column) ? given.get(column) === "null" : !has_default),
  )
  return lacking ? `gives no value to ${lacking.column}` : null
}
