import { Database } from "bun:sqlite"
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import type { SoftwareTag, TamperWire } from "./software-tag.ts"

/** A tag with the chip id in its address, and the first read that showed its wire broken, or null. */
export type BoxedTag = SoftwareTag & { chip_id: string; broken_since: number | null }

/** Software tags in a file. Parallel readers never get the same counter. */
export type TagBox = {
  /** Stores tags, all or none, replacing those with the same chip ids. */
  put(tags: Iterable<BoxedTag>): void
  /** Advances the counter. Null if there is no such tag, or too few reads are left. */
  read(chipId: string, reads: number): BoxedTag | null
  find(chipId: string): BoxedTag | null
  breakWire(chipId: string): void
  list(): Iterable<BoxedTag>
  close(): void
}

const MAX_COUNTER = 0xffffff

/** Opens the box, creating it if needed. */
export function openTagBox(path: string): TagBox {
  mkdirSync(dirname(path), { recursive: true })
  const db = new Database(path, { create: true, strict: true })
  db.exec("pragma busy_timeout = 5000")
  db.exec(`create table if not exists tags (
    chip_id text not null primary key, uid text not null, ndef_hex text not null, file_settings_hex text not null,
    keys text not null, counter integer not null, tamper text not null
  ) strict`)
  addBrokenSince(db)
  const upsert = db.query(`insert into tags values
    ($chip_id, $uid, $ndef_hex, $file_settings_hex, $keys, $counter, $tamper, $broken_since)
    on conflict (chip_id) do update set ndef_hex = excluded.ndef_hex, keys = excluded.keys,
      file_settings_hex = excluded.file_settings_hex, counter = excluded.counter,
      broken_since = min(broken_since, excluded.counter + 1)`)
  const putAll = db.transaction((tags: Iterable<BoxedTag>) => {
    for (const tag of tags) upsert.run({ ...tag, keys: JSON.stringify(tag.keys) })
  })
  const one = (row: unknown) => (row ? tagOf(row as TagRow) : null)
  return {
    put: (tags) => putAll.immediate(tags),
    read: (chipId, reads) =>
      one(
        db
          .query(
            "update tags set counter = counter + $reads where chip_id = $chipId and counter + $reads <= $most returning *",
          )
          .get({ chipId, reads, most: MAX_COUNTER }),
      ),
    find: (chipId) => one(db.query("select * from tags where chip_id = $chipId").get({ chipId })),
    breakWire: (chipId) => {
      db.query(
        "update tags set tamper = 'OO', broken_since = counter + 1 where chip_id = $chipId and tamper <> 'OO'",
      ).run({ chipId })
    },
    *list() {
      for (const row of db.query("select * from tags order by rowid").iterate()) yield tagOf(row as TagRow)
    },
    close: () => db.close(),
  }
}

/** Boxes of earlier releases lack the column. */
function addBrokenSince(db: Database): void {
  const add = db.transaction(() => {
    const found = db.query("select 1 from pragma_table_info('tags') where name = 'broken_since'").get()
    if (!found) db.exec("alter table tags add column broken_since integer")
  })
  add.immediate()
}

type TagRow = Omit<BoxedTag, "keys"> & { keys: string; tamper: TamperWire }

function tagOf(row: TagRow): BoxedTag {
  return { ...row, keys: JSON.parse(row.keys) }
}
