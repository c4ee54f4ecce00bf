import { Database } from "bun:sqlite"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Elysia, t } from "elysia"
import pg from "pg"

// The least that a server could do: what the service is measured against. Elysia without hooks, one statement where
// the service has several, the same durability. ANCHOR says which of these to be.

const environment = process.env
const tapBody = t.Object(
  {
    chip_id: t.String({ pattern: "^[0-9A-Fa-f]{10}$" }),
    e: t.String({ pattern: "^[0-9A-F]{32}$" }),
    c: t.Optional(t.String({ pattern: "^[0-9A-F]{16}$" })),
    ttl: t.Optional(t.Integer({ minimum: 60, maximum: 3_600 })),
    dry_run: t.Optional(t.Boolean()),
  },
  { additionalProperties: false },
)

const app = new Elysia().get("/health", () => "ok")
const anchor = String(environment.ANCHOR)
if (anchor === "read") serveReads()
else serveWrites(await writerFor(anchor))
app.listen({ port: Number(environment.PORT), hostname: "127.0.0.1", reusePort: false })

/** Hashes the bearer, and sends the same bytes to everybody. */
function serveReads(): void {
  const body = readFileSync(String(environment.ANSWER_FILE), "utf8")
  app.get("/v1/units/:unit_id", ({ request, set }) => {
    const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? ""
    if (createHash("sha256").update(token).digest("hex") === "") throw new Error("no bearer")
    set.headers["content-type"] = "application/json"
    return body
  })
}

type Tap = { chip_id: string; e: string }

function serveWrites(write: (tap: Tap) => Promise<unknown>): void {
  app.post(
    "/v1/taps",
    async ({ body, set }) => {
      await write(body)
      set.status = 201
      return { id: body.e }
    },
    { body: tapBody },
  )
}

async function writerFor(anchor: string): Promise<(tap: Tap) => Promise<unknown>> {
  if (anchor === "postgres") return await onPostgres()
  const db = openFile()
  return groupCommit(db, anchor === "statements" ? sameStatements(db) : oneInsert(db))
}

function openFile(): Database {
  const db = new Database(String(environment.DATABASE_URL).replace("sqlite:", ""))
  for (const setting of ["journal_mode = wal", "synchronous = full", "foreign_keys = on"])
    db.exec(`pragma ${setting}`)
  db.exec("pragma wal_autocheckpoint = 1000")
  db.exec("create table if not exists bare_taps (chip_id text not null, e text not null primary key)")
  return db
}

function groupCommit(db: Database, write: (tap: Tap) => void): (tap: Tap) => Promise<void> {
  let waiting: { tap: Tap; done: () => void }[] = []
  function commit(): void {
    const group = waiting
    waiting = []
    db.exec("begin immediate")
    for (const { tap } of group) write(tap)
    db.exec("commit")
    for (const { done } of group) done()
  }
  return (tap) =>
    new Promise((done) => {
      if (waiting.length === 0) setImmediate(commit)
      waiting.push({ tap, done })
    })
}

function oneInsert(db: Database): (tap: Tap) => void {
  const insert = db.prepare("insert into bare_taps (chip_id, e) values (?, ?)")
  return ({ chip_id, e }) => insert.run(chip_id, e)
}

/** The statements of a tap in the tables of the service, with the values they would have, but without a check. */
function sameStatements(db: Database): (tap: Tap) => void {
  // A plus hides a parameter from SQLite's planner, which would compile the statement anew for each value.
  const readTag =
    db.prepare(`select c.unit_id, c.chip_id, c.organization_id, c.is_test, c.uid, c.wrapped_keys, c.key_version,
      c.counter, c.emitted_counter, c.scan_count, c.reserved_for, c.paired_at, c.retired_at, c.created_at, c.key_set_id,
      c.next_key_version, c.mac_input, c.has_mac, c.tamper,
      u.id, u.organization_id, u.collection_id, u.product_id, u.external_id, u.name, u.attributes, u.redirect_url,
      u.token_status, u.serial, u.claimed, u.created_at, u.description, u.image_url, u.metadata, u.owner,
      u.ownership_updated_at, u.owner_block,
      l.id, l.name, l.external_id, l.redirect_url, l.chain_id, l.address, l.status,
      o.id, o.name, o.default_chain_id, o.allowed_chain_ids, o.default_redirect_url, o.cors_origins, o.quota_units,
      o.quota_collections, o.quota_chips, o.quota_taps_per_month, o.identity, o.created_at, o.suspended_at,
      p.redirect_url
    from chips c join organizations o on o.id = c.organization_id left join units u on u.id = c.unit_id
    left join products p on p.id = u.product_id left join collections l on l.id = u.collection_id
    where c.chip_id = +? and c.organization_id = +?`)
  const move = db.prepare(
    "update chips set counter = counter + 1, scan_count = scan_count + 1 where chip_id = ? and unit_id = ? returning counter",
  )
  const insertTap = db.prepare(
    "insert into taps values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning id",
  )
  const insertEvent = db.prepare(
    `insert into events (id, organization_id, type, unit_id, collection_id, is_test, data, created_at)
     values (?, ?, 'tap.recorded', ?, ?, ?, ?, ?)`,
  )
  const insertSession = db.prepare(
    `insert into session_tokens (id, organization_id, tap_id, chip_id, unit_id, hash, status, expires_at, created_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const organizationId = String(environment.ORGANIZATION_ID)
  return ({ chip_id }) => {
    const tag = readTag.values(chip_id, organizationId)[0] as unknown[]
    const unitId = tag[0] as string
    const at = new Date().toISOString()
    const [counter] = move.values(chip_id, unitId)[0] as [number]
    const tapId = Bun.randomUUIDv7()
    insertTap.values(tapId, organizationId, chip_id, unitId, 0, 1, counter, 0, at)
    const told = { id: tapId, chip_id, unit_id: unitId, is_test: false, counter, skipped: 0, created_at: at }
    insertEvent.run(
      Bun.randomUUIDv7(),
      organizationId,
      unitId,
      tag[21] as string,
      0,
      JSON.stringify(told),
      at,
    )
    const hash = createHash("sha256").update(tapId).digest("hex")
    insertSession.run(Bun.randomUUIDv7(), organizationId, tapId, chip_id, unitId, hash, "valid", at, at)
  }
}

async function onPostgres(): Promise<(tap: Tap) => Promise<void>> {
  const pool = new pg.Pool({ connectionString: environment.DATABASE_URL, max: 10 })
  await pool.query(
    "create table if not exists bare_taps (chip_id text not null, e text not null primary key)",
  )
  return async ({ chip_id, e }) => {
    const client = await pool.connect()
    await client.query("begin")
    await client.query({
      name: "insert",
      text: "insert into bare_taps values ($1, $2)",
      values: [chip_id, e],
    })
    await client.query("commit")
    client.release()
  }
}
