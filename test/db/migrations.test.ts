import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { migrationNames } from "../../src/db/migrate.ts"

const folder = join(import.meta.dir, "../../migrations")

/** The indexes of all migrations that are there for speed alone. */
const plainIndexes = new Set(
  migrationNames().flatMap((name) =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/^create index (\w+)/gm)].map(([, index]) => index),
  ),
)

// While a release is rolled out, processes of the last one work beside it on the new schema: whatever they ask and
// write must go on being understood. So a migration may only add what they need not know. In
// previous-release.test.ts the schema is held against what they really ask; but that a constraint came or went, which
// no engine minds until a row meets it, shows only here.
test("every migration after the first only adds what the release before it need not know", () => {
  const wrong = migrationNames()
    .slice(1)
    .flatMap((name, index) =>
      breaking(readFileSync(join(folder, name), "utf8"), textBefore(index)).map((why) => `${name}: ${why}`),
    )
  expect(wrong).toEqual([])
})

/** The migrations before the one of this place behind the first. */
function textBefore(index: number): string {
  const names = migrationNames().slice(0, index + 1)
  return names.map((name) => readFileSync(join(folder, name), "utf8")).join("\n")
}

// An index is no column: the release before asks the same without it. What a unique one forbade may happen from then
// on, so whoever drops one says above it why that release can bear it; and the one in its place forbids less than it.
describe("an index that was unique", () => {
  const before =
    "create table claims (id uuid, unit_id uuid, status text, kind text);\ncreate unique index one on claims (unit_id) where status = 'open';"
  const dropped = "-- one may go: the release before names no target of a conflict.\ndrop index one;\n"

  test("may be dropped where a comment above says why", () => {
    expect(breaking(dropped, before)).toEqual([])
    expect(breaking("drop index one;", before)).toEqual(["drop index one"])
    expect(breaking("-- two may go: why\ndrop index one;", before)).toEqual(["drop index one"])
    expect(breaking("-- one may go:\ndrop index one;", before)).toEqual(["drop index one"])
  })

  test("may have another one in its place that forbids less", () => {
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

/** The statements of a migration that processes of the release before it could stumble over. */
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

/** Of a unique index and the one in its place: whether this one forbids nothing that the other had not forbidden. */
function forbidsLess(statement: string, was: string): boolean {
  const ruleOf = (text: string) => text.replace(/^create unique index \w+ /, "")
  const more = ruleOf(statement).slice(ruleOf(was).length)
  return ruleOf(statement).startsWith(ruleOf(was)) && /^ and /.test(more) && !/\bor\b/.test(more)
}

function onlyAdds(statement: string, made: Set<string>): boolean {
  if (/^create (table|index) /.test(statement)) return true
  // Without an index that is not unique the release before it is slower, and right.
  const dropped = /^drop index (\w+)$/.exec(statement)?.[1]
  if (dropped) return plainIndexes.has(dropped)
  const uniqueOn = /^create unique index \w+ on (\w+)/.exec(statement)?.[1]
  if (uniqueOn) return made.has(uniqueOn)
  if (/^(insert into|update) /.test(statement)) return true
  const column = /^alter table (\w+) add column (.+)$/.exec(statement)?.[2]
  if (!column || /\b(unique|check|primary key)\b/.test(column)) return false
  return !/\bnot null\b/.test(column) || /\bdefault\b/.test(column)
}
