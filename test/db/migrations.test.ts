import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { migrationNames } from "../../src/db/migrate.ts"

const folder = join(import.meta.dir, "../../migrations")

/** All indexes of the migrations that exist for speed only. */
const plainIndexes = new Set(
  migrationNames().flatMap((name) =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/^create index (?:if not exists )?(\w+)/gm)].map(
      ([, index]) => index,
    ),
  ),
)

// During a rollout, processes of the previous release run on the new schema: their statements must keep working. So a
// migration may only add what they need not know. previous-release.test.ts checks the schema against the real
// statements, but added or dropped constraints, which no engine checks until a row violates them, show only here.
test("every migration after the first only adds what the previous release need not know", () => {
  const wrong = migrationNames()
    .slice(1)
    .flatMap((name, index) =>
      breaking(readFileSync(join(folder, name), "utf8"), textBefore(index)).map((why) => `${name}: ${why}`),
    )
  expect(wrong).toEqual([])
})

/** The migrations up to the given position, excluding it and the first. */
function textBefore(index: number): string {
  const names = migrationNames().slice(0, index + 1)
  return names.map((name) => readFileSync(join(folder, name), "utf8")).join("\n")
}

// An index is not a column: the previous release's statements work without it. Rows that a unique index ruled out may
// exist from then on, so a comment above each drop says why that release can handle them, or a replacement index rules
// out less.
describe("an index that was unique", () => {
  const before =
    "create table claims (id uuid, unit_id uuid, status text, kind text);\ncreate unique index one on claims (unit_id) where status = 'open';"
  const dropped = "-- one may go: the release before names no target of a conflict.\ndrop index one;\n"

  test("may be dropped with a comment above that says why", () => {
    expect(breaking(dropped, before)).toEqual([])
    expect(breaking("drop index one;", before)).toEqual(["drop index one"])
    expect(breaking("-- two may go: why\ndrop index one;", before)).toEqual(["drop index one"])
    expect(breaking("-- one may go:\ndrop index one;", before)).toEqual(["drop index one"])
  })

  test("may be replaced by one that rules out less", () => {
    const made = "create unique index other on claims (unit_id) where status = 'open' and kind = 'relayed';"
    expect(breaking(dropped + made, before)).toEqual([])
    expect(breaking(made, before)).toHaveLength(1)
    for (const wrong of [
      made.replace("(unit_id)", "(id)"),
      made.replace("on claims", "on units"),
      made.replace("status = 'open' and ", ""),
      made.replace(" and kind", " or kind"),
      made.replace("'relayed'", "'relayed' or status = 'closed'"),
    ])
      expect(breaking(dropped + wrong, before)).toHaveLength(1)
  })
})

describe("the check allows", () => {
  const allowed = [
    "create table notes (id uuid primary key, text text not null);",
    "create index notes_by_age on notes (created_at);",
    "alter table units add column colour text;",
    "alter table units add column colour text not null default 'red';",
    "alter table units add column product uuid references products (id);",
    "update units set colour = 'red' where colour is null;",
    "insert into notes (id) values ('x');",
    "create table notes (id uuid primary key);\ncreate unique index notes_once on notes (id);",
    "drop index units_by_organization;",
    "drop index units_by_ownership;",
    "-- drop table units\nalter table units add column colour text;",
  ]
  for (const text of allowed) test(text.replaceAll("\n", " "), () => expect(breaking(text)).toEqual([]))
})

describe("the check refuses", () => {
  const refused = [
    "drop table units;",
    "drop index units_serial;",
    "create unique index notes_once on units (name);\ndrop index notes_once;",
    "alter table units drop column name;",
    "alter table units rename column name to title;",
    "alter table units rename to items;",
    "alter table units add column colour text not null;",
    "alter table units add column colour text unique;",
    "alter table units add column colour text check (colour in ('red'));",
    "alter table units alter column name set not null;",
    "create unique index units_name on units (name);",
    "delete from units where name is null;",
    "create table copies as select * from units;\ndrop table units;",
    "create trigger t after insert on units begin select 1; end;",
  ]
  for (const text of refused) test(text.replaceAll("\n", " "), () => expect(breaking(text)).not.toEqual([]))
})

/** The statements of a migration that could break processes of the previous release. */
function breaking(migration: string, earlier = ""): string[] {
  const statements = statementsOf(migration)
  const made = new Set(statements.flatMap((statement) => /^create table (\w+)/.exec(statement)?.[1] ?? []))
  const given_up = new Set(
    [...migration.matchAll(/^-- (\w+) may go: \S.*\ndrop index \1;/gm)].map(([, name]) => name),
  )
  const were = statementsOf(earlier).filter((statement) =>
    given_up.has(/^create unique index (\w+) /.exec(statement)?.[1]),
  )
  return statements.filter((statement) => {
    const dropped = /^drop index (\w+)$/.exec(statement)?.[1]
    if (dropped !== undefined && given_up.has(dropped)) return false
    return !onlyAdds(statement, made) && !were.some((was) => forbidsLess(statement, was))
  })
}

function statementsOf(migration: string): string[] {
  return migration
    .replaceAll(/--.*$/gm, "")
    .toLowerCase()
    .split(";")
    .map((statement) => statement.replaceAll(/\s+/g, " ").trim())
    .filter((statement) => statement !== "")
}

/** Returns whether a unique index rules out nothing that the one it replaces had allowed. */
function forbidsLess(statement: string, was: string): boolean {
  const ruleOf = (text: string) => text.replace(/^create unique index \w+ /, "")
  const more = ruleOf(statement).slice(ruleOf(was).length)
  return ruleOf(statement).startsWith(ruleOf(was)) && /^ and /.test(more) && !/\bor\b/.test(more)
}

function onlyAdds(statement: string, made: Set<string>): boolean {
  if (/^create (table|index) /.test(statement)) return true
  // Without a non-unique index the previous release is slower, but correct.
  const dropped = /^drop index (\w+)$/.exec(statement)?.[1]
  if (dropped) return plainIndexes.has(dropped)
  const uniqueOn = /^create unique index \w+ on (\w+)/.exec(statement)?.[1]
  if (uniqueOn) return made.has(uniqueOn)
  if (/^(insert into|update) /.test(statement)) return true
  const column = /^alter table (\w+) add column (.+)$/.exec(statement)?.[2]
  if (!column || /\b(unique|check|primary key)\b/.test(column)) return false
  return !/\bnot null\b/.test(column) || /\bdefault\b/.test(column)
}
