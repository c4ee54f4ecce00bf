import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { migrationNames } from "../src/db/migrate.ts"

const folder = join(import.meta.dir, "..", "migrations")

// While a release is rolled out, processes of the last one work beside it on the new schema: whatever they ask and
// write must go on being understood. So a migration may only add what they need not know. In
// previous-release.test.ts the schema is held against what they really ask; but that a constraint came or went, which
// no engine minds until a row meets it, shows only here.
test("every migration after the first only adds what the release before it need not know", () => {
  const wrong = migrationNames()
    .slice(1)
    .flatMap((name) => breaking(readFileSync(join(folder, name), "utf8")).map((why) => `${name}: ${why}`))
  expect(wrong).toEqual([])
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
    "-- drop table units\nalter table units add column colour text;",
  ]
  for (const text of allowed) test(text.replaceAll("\n", " "), () => expect(breaking(text)).toEqual([]))
})

describe("the check refuses", () => {
  const refused = [
    "drop table units;",
    "drop index units_serial;",
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
function breaking(migration: string): string[] {
  const statements = migration
    .replaceAll(/--.*$/gm, "")
    .toLowerCase()
    .split(";")
    .map((statement) => statement.replaceAll(/\s+/g, " ").trim())
    .filter((statement) => statement !== "")
  const made = new Set(statements.flatMap((statement) => /^create table (\w+)/.exec(statement)?.[1] ?? []))
  return statements.filter((statement) => !onlyAdds(statement, made))
}

function onlyAdds(statement: string, made: Set<string>): boolean {
  if (/^create (table|index) /.test(statement)) return true
  const uniqueOn = /^create unique index \w+ on (\w+)/.exec(statement)?.[1]
  if (uniqueOn) return made.has(uniqueOn)
  if (/^(insert into|update) /.test(statement)) return true
  const column = /^alter table (\w+) add column (.+)$/.exec(statement)?.[2]
  if (!column || /\b(unique|check|primary key)\b/.test(column)) return false
  return !/\bnot null\b/.test(column) || /\bdefault\b/.test(column)
}
