import { Database as Connection } from "bun:sqlite"
import { describe, expect, spyOn, test } from "bun:test"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { dirname, join } from "node:path"
import { and, asc, eq, lt, type SQL, sql } from "drizzle-orm"
import { bigint, pgTable, text } from "drizzle-orm/pg-core"
import fc from "fast-check"
import pg from "pg"
import {
  afterCommit,
  type Database,
  DatabaseUnavailable,
  driverError,
  type Isolation,
  type Queries,
} from "../../src/db/database.ts"
import { migrate, migrationNames } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import { openPostgres } from "../../src/db/postgres.ts"
import { collections, units } from "../../src/db/schema.ts"
import { newId } from "../../src/platform/ids.ts"
import { until } from "../harness/engine.ts"
import { type Databases, engines, useEngine } from "../harness/engines.ts"
import { type Line, startLine } from "../harness/line.ts"
import { startPostgres } from "../harness/postgres.ts"
import { collectionRow, insertScene, startOfTime, unitRow } from "../harness/scene.ts"

const counters = pgTable("counters", {
  id: text().primaryKey(),
  value: bigint({ mode: "number" }).notNull(),
})

for (const engine of engines)
  describe(engine.name, () => {
    const databases = useEngine(engine)

    describe("a transaction", () => {
      test("returns what its callback returns", async () => {
        const { db } = await openCounters(databases)
        expect(await db.transaction(async () => 42)).toBe(42)
      })

      test("shows its rows to no one before it commits", async () => {
        const { db, other } = await openCounters(databases)
        const written = Promise.withResolvers<void>()
        const seen = Promise.withResolvers<void>()
        const writing = db.transaction(async (tx) => {
          await tx.insert(counters).values({ id: "a", value: 1 })
          written.resolve()
          await seen.promise
        })
        await written.promise
        const before = [await valuesIn(db), await valuesIn(other)]
        seen.resolve()
        await writing
        expect(before).toEqual([{}, {}])
        expect([await valuesIn(db), await valuesIn(other)]).toEqual([{ a: 1 }, { a: 1 }])
      })

      test("sees its own rows", async () => {
        const { db } = await openCounters(databases)
        const seen = await db.transaction(async (tx) => {
          await tx.insert(counters).values({ id: "a", value: 1 })
          return await tx.select().from(counters)
        })
        expect(seen).toEqual([{ id: "a", value: 1 }])
      })

      test("is rolled back when its callback throws, and rethrows the error", async () => {
        const { db } = await openCounters(databases)
        const refusal = new Error("no")
        const outcome = db.transaction(async (tx) => {
          await tx.insert(counters).values({ id: "a", value: 1 })
          throw refusal
        })
        await expect(outcome).rejects.toBe(refusal)
        expect(await valuesIn(db)).toEqual({})
      })

      test("that throws does not affect others of the same group commit", async () => {
        const { db } = await openCounters(databases)
        const outcomes = await Promise.allSettled(
          Array.from({ length: 40 }, (_, value) =>
            db.transaction(async (tx) => {
              await tx.insert(counters).values({ id: `${value}`, value })
              if (value % 4 === 3) throw new Error("no")
            }),
          ),
        )
        const stands = outcomes.map(({ status }) => status === "fulfilled")
        expect(stands).toEqual(Array.from({ length: 40 }, (_, value) => value % 4 !== 3))
        expect(Object.keys(await valuesIn(db)).length).toBe(30)
      })

      test("with a failing statement does not affect others of the same group commit", async () => {
        const { db } = await openCounters(databases)
        await add(db, "a", 1)
        const outcomes = await Promise.allSettled([add(db, "b", 1), add(db, "a", 2), add(db, "c", 1)])
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
        expect(await valuesIn(db)).toEqual({ a: 1, b: 1, c: 1 })
      })

      test("returns only when another connection can see its rows", async () => {
        const { db, other } = await openCounters(databases)
        const seen = await Promise.all(
          Array.from({ length: 30 }, async (_, value) => {
            await add(db, `${value}`, value)
            return await other.read
              .select()
              .from(counters)
              .where(eq(counters.id, `${value}`))
          }),
        )
        expect(seen).toEqual(Array.from({ length: 30 }, (_, value) => [{ id: `${value}`, value }]))
      })

      test("whose callback swallows a statement's error never succeeds without its rows", async () => {
        const { db } = await openCounters(databases)
        await add(db, "a", 1)
        const answered = await db
          .transaction(async (tx) => {
            await tx.insert(counters).values({ id: "b", value: 1 })
            await tx
              .insert(counters)
              .values({ id: "a", value: 2 })
              .catch(() => {})
          })
          .then(
            () => true,
            () => false,
          )
        expect("b" in (await valuesIn(db))).toBe(answered)
      })

      test("cannot be nested", async () => {
        const { db } = await openCounters(databases)
        const nested = db.transaction(async () => await db.transaction(async () => 1))
        await expect(nested).rejects.toThrow("a database transaction cannot be opened inside another one")
        expect(await db.transaction(async () => 2)).toBe(2)
      })

      test("cannot use the database's own read methods inside", async () => {
        const { db } = await openCounters(databases)
        const reading = db.transaction(async () => await db.read.select().from(counters))
        await expect(reading).rejects.toThrow("inside a database transaction only its tx may be used")
      })

      test("that is over no longer restricts what its callback started", async () => {
        const { db } = await openCounters(databases)
        const over = Promise.withResolvers<void>()
        const { later } = await db.transaction(async () => ({
          later: over.promise.then(async () => await valuesIn(db)),
        }))
        over.resolve()
        expect(await later).toEqual({})
      })

      test("that is over accepts no statement, which would join the next one", async () => {
        const { db } = await openCounters(databases)
        const over = Promise.withResolvers<void>()
        let late: Promise<unknown> = Promise.resolve()
        await db
          .transaction(async (tx) => {
            late = over.promise.then(async () => await tx.insert(counters).values({ id: "late", value: 1 }))
            throw new Error("no")
          })
          .catch(() => {})
        await db.transaction(async (tx) => {
          await tx.insert(counters).values({ id: "next", value: 1 })
          over.resolve()
          const refusal = await late.catch(driverError)
          expect(String(refusal)).toContain("tx is used after its database transaction ended")
        })
        expect(await valuesIn(db)).toEqual({ next: 1 })
      })

      test("reports a failing statement without its values", async () => {
        const { db } = await openCounters(databases)
        await add(db, "a secret", 1)
        const refusal = await add(db, "a secret", 1).catch((error) => error)
        expect(refusal).toBeInstanceOf(Error)
        expect(refusal.message).not.toContain("a secret")
      })
    })

    describe("an after-commit callback", () => {
      test("sees the rows on another connection", async () => {
        const { db, other } = await openCounters(databases)
        const seen = Promise.withResolvers<Record<string, number>>()
        await db.transaction(async (tx) => {
          await tx.insert(counters).values({ id: "a", value: 1 })
          afterCommit(() => void valuesIn(other).then(seen.resolve, seen.reject))
        })
        expect(await seen.promise).toEqual({ a: 1 })
      })

      test("is not called after a rollback", async () => {
        const { db } = await openCounters(databases)
        const called: string[] = []
        await Promise.allSettled([
          db.transaction(async () => {
            afterCommit(() => called.push("stands"))
          }),
          db.transaction(async () => {
            afterCommit(() => called.push("rolled back"))
            throw new Error("no")
          }),
        ])
        expect(called).toEqual(["stands"])
      })

      test("that throws affects nobody", async () => {
        const { db } = await openCounters(databases)
        const called: string[] = []
        const throwing = db.transaction(async () => {
          afterCommit(() => {
            throw new Error("no")
          })
          afterCommit(() => called.push("second callback"))
          return 1
        })
        const outcomes = await Promise.all([throwing, add(db, "a", 1)])
        await add(db, "b", 1)
        expect(outcomes[0]).toBe(1)
        expect(called).toEqual(["second callback"])
        expect(await valuesIn(db)).toEqual({ a: 1, b: 1 })
      })

      test("cannot be registered outside a transaction", () => {
        expect(() => afterCommit(() => {})).toThrow("afterCommit is called outside a database transaction")
      })
    })

    describe("concurrently", () => {
      test("sixty transactions on two connections that each add one to what they read make sixty", async () => {
        const { db, other } = await openCounters(databases)
        await add(db, "a", 0)
        let followed = 0
        await Promise.all(
          Array.from({ length: 60 }, (_, index) =>
            (index % 2 ? db : other).transaction(async (tx) => {
              const [row] = await tx.select().from(counters).where(eq(counters.id, "a"))
              await tx.update(counters).set({ value: (row?.value ?? 0) + 1 })
              afterCommit(() => followed++)
            }),
          ),
        )
        expect(await valuesIn(db)).toEqual({ a: 60 })
        expect(followed).toBe(60)
      })

      test("of two that each leave only if the other stays, one leaves", async () => {
        const { db, other } = await openCounters(databases)
        await add(db, "a", 1)
        await add(db, "b", 1)
        const leave = (database: Database, id: string) =>
          database.transaction(async (tx) => {
            const present = await tx.select().from(counters).where(eq(counters.value, 1))
            if (present.length === 2) await tx.update(counters).set({ value: 0 }).where(eq(counters.id, id))
          })
        await Promise.all([leave(db, "a"), leave(other, "b")])
        expect(Object.values(await valuesIn(db)).sort()).toEqual([0, 1])
      })

      test("of a hundred that move a counter up to the same value, one succeeds", async () => {
        const { db, other } = await openCounters(databases)
        await add(db, "a", 0)
        const moved = await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            (index % 2 ? db : other).transaction(
              async (tx) =>
                await tx
                  .update(counters)
                  .set({ value: 7 })
                  .where(and(eq(counters.id, "a"), lt(counters.value, 7)))
                  .returning(),
            ),
          ),
        )
        expect(moved.flat()).toEqual([{ id: "a", value: 7 }])
      })

      test("of a hundred that insert the same key, one succeeds and the others return no row", async () => {
        const { db, other } = await openCounters(databases)
        const inserted = await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            (index % 2 ? db : other).transaction(
              async (tx) =>
                await tx
                  .insert(counters)
                  .values({ id: "a", value: index })
                  .onConflictDoNothing()
                  .returning({ id: counters.id }),
            ),
          ),
        )
        expect(inserted.flat()).toEqual([{ id: "a" }])
      })

      test("an insert that returns no row because of a conflict leaves the transaction usable", async () => {
        const { db } = await openCounters(databases)
        await add(db, "a", 1)
        const rows = await db.transaction(async (tx) => {
          const taken = await tx
            .insert(counters)
            .values({ id: "a", value: 2 })
            .onConflictDoNothing()
            .returning()
          await tx.insert(counters).values({ id: "b", value: 3 })
          return taken
        })
        expect(rows).toEqual([])
        expect(await valuesIn(db)).toEqual({ a: 1, b: 3 })
      })
    })

    describe("values are read as they were written", () => {
      test("true and false, null and strings", async () => {
        const db = await databases.openMigrated()
        const scene = await db.transaction(insertScene)
        const rows = [
          unitRow(scene, { claimed: true, name: "Ω ≠ 'quoted' \"twice\" ; -- 🧣", external_id: "1e3" }),
          unitRow(scene, { claimed: false, name: null, external_id: "007" }),
        ]
        await db.transaction(async (tx) => await tx.insert(units).values(rows))
        const shown = { claimed: units.claimed, name: units.name, external_id: units.external_id }
        for (const row of rows)
          expect(await db.read.select(shown).from(units).where(eq(units.id, row.id))).toEqual([
            { claimed: row.claimed, name: row.name ?? null, external_id: row.external_id ?? null },
          ])
        expect(await db.read.select({ id: units.id }).from(units).where(eq(units.claimed, true))).toEqual([
          { id: rows[0]?.id ?? "" },
        ])
      })

      test("integers up to the exact limit of a number", async () => {
        const db = await databases.openMigrated()
        const scene = await db.transaction(insertScene)
        const numbers = [0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, -1, Number.MIN_SAFE_INTEGER]
        for (const next_serial of numbers) {
          const row = collectionRow(scene, { next_serial })
          await db.transaction(async (tx) => await tx.insert(collections).values(row))
          const shown = { next_serial: collections.next_serial }
          expect(await db.read.select(shown).from(collections).where(eq(collections.id, row.id))).toEqual([
            { next_serial },
          ])
        }
      })

      test("any JSON that both engines can store", async () => {
        const db = await databases.openMigrated()
        const scene = await db.transaction(insertScene)
        const json = fc
          .jsonValue({ stringUnit: "grapheme" })
          .filter((value) => !/\\u0000/.test(JSON.stringify(value)))
        await fc.assert(
          fc.asyncProperty(
            fc.dictionary(fc.string({ minLength: 1 }), json, { noNullPrototype: true }),
            async (attributes) => {
              const row = unitRow(scene, { attributes })
              await db.transaction(async (tx) => await tx.insert(units).values(row))
              const [stored] = await db.read.select().from(units).where(eq(units.id, row.id))
              expect(stored?.attributes).toEqual(JSON.parse(JSON.stringify(attributes)))
            },
          ),
          { numRuns: 60 },
        )
      })

      test("times to the millisecond, sorted and compared as times", async () => {
        const db = await databases.openMigrated()
        const scene = await db.transaction(insertScene)
        const time = fc.date({
          min: new Date("1970-01-01T00:00:00.000Z"),
          max: new Date("9999-12-31T23:59:59.999Z"),
          noInvalidDate: true,
        })
        await fc.assert(
          fc.asyncProperty(
            fc.uniqueArray(time, { minLength: 2, maxLength: 8, selector: Number }),
            async (times) => {
              const collection = collectionRow(scene)
              await db.transaction(async (tx) => {
                await tx.insert(collections).values(collection)
                for (const created_at of times)
                  await tx.insert(units).values(unitRow(scene, { collection_id: collection.id, created_at }))
              })
              const here = eq(units.collection_id, collection.id)
              const shown = { at: units.created_at }
              const sorted = times.toSorted((one, other) => Number(one) - Number(other))
              const [first = startOfTime] = times
              const all = await db.read.select(shown).from(units).where(here).orderBy(asc(units.created_at))
              const earlier = await db.read
                .select(shown)
                .from(units)
                .where(and(here, lt(units.created_at, first)))
              expect(all.map(({ at }) => at)).toEqual(sorted)
              expect(earlier.length).toBe(sorted.findIndex((at) => Number(at) === Number(first)))
            },
          ),
          { numRuns: 25 },
        )
      })
    })

    describe("migrate", () => {
      test("executes every migration once", async () => {
        const db = databases.open(await databases.newDatabase())
        expect(await migrate(db, startOfTime)).toEqual(migrationNames())
        expect(await migrate(db, startOfTime)).toEqual([])
      })

      test("executes every migration once in three concurrent processes", async () => {
        const url = await databases.newDatabase()
        const ran = await Promise.all([1, 2, 3].map(() => runScript(migrateScript, url)))
        expect(ran.flatMap((answer) => JSON.parse(answer)).sort()).toEqual(migrationNames())
        const db = databases.open(url)
        await db.transaction(insertScene)
      })
    })

    describe("close", () => {
      test("waits for running transactions and accepts no new ones", async () => {
        const { db, other } = await openCounters(databases)
        const adding = Promise.all([add(db, "a", 1), add(db, "b", 1)])
        const closing = db.close()
        await expect(add(db, "c", 1)).rejects.toBeInstanceOf(DatabaseUnavailable)
        await Promise.all([adding, closing])
        expect(await valuesIn(other)).toEqual({ a: 1, b: 1 })
      })

      test("ends reads, too", async () => {
        const { db } = await openCounters(databases)
        await valuesIn(db)
        await db.close()
        expect(await valuesIn(db).catch(driverError)).toBeInstanceOf(DatabaseUnavailable)
      })

      test("may be called twice", async () => {
        const { db } = await openCounters(databases)
        await db.close()
        await db.close()
      })
    })
  })

describe("a SQLite file", () => {
  const [sqlite] = engines
  if (!sqlite) throw new Error("SQLite is the first engine")
  const databases = useEngine(sqlite)

  test("that is a folder is unavailable", async () => {
    const path = pathIn(await databases.newDatabase())
    mkdirSync(path)
    expect(() => openDatabase(`sqlite:${path}`)).toThrow(DatabaseUnavailable)
  })

  test("that is not a database is unavailable", async () => {
    const path = pathIn(await databases.newDatabase())
    writeFileSync(path, "not a database, though it is long enough to be taken for one\n".repeat(100))
    expect(() => openDatabase(`sqlite:${path}`)).toThrow(DatabaseUnavailable)
  })

  test("below a file is unavailable, and the message names the folder", async () => {
    const path = pathIn(await databases.newDatabase())
    writeFileSync(path, "")
    expect(() => openDatabase(`sqlite:${join(path, "service.db")}`)).toThrow(path)
  })

  test("in a missing folder creates the folder", async () => {
    const path = pathIn(await databases.newDatabase())
    const db = databases.open(`sqlite:${join(path, "deep", "service.db")}`)
    expect(await migrate(db, startOfTime)).toEqual(migrationNames())
  })

  test("is a single file again after it is closed", async () => {
    const folder = pathIn(await databases.newDatabase())
    const db = databases.open(`sqlite:${join(folder, "service.db")}`)
    await migrate(db, startOfTime)
    await db.close()
    expect(readdirSync(folder)).toEqual(["service.db"])
  })

  test("has every commit on disk before the transaction returns", async () => {
    const { db } = await openCounters(databases)
    const settings = await db.transaction(async (tx) => [
      ...(await tx.execute(sql`pragma journal_mode`)),
      ...(await tx.execute(sql`pragma synchronous`)),
    ])
    const full = 2
    expect<unknown[]>(settings).toEqual([["wal"], [full]])
  })

  test("whose group commit fails rejects all transactions in it, and accepts the next", async () => {
    const db = await databases.openMigrated()
    const scene = await db.transaction(insertScene)
    const good = unitRow(scene)
    const dangling = unitRow(scene, { organization_id: newId() })
    const outcomes = await Promise.allSettled([
      db.transaction(async (tx) => await tx.insert(units).values(good)),
      db.transaction(async (tx) => {
        await tx.execute(sql`pragma defer_foreign_keys = on`)
        await tx.insert(units).values(dangling)
      }),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"])
    await db.transaction(async (tx) => await tx.insert(units).values(good))
    expect(await db.read.select().from(units).where(eq(units.id, good.id))).toHaveLength(1)
  })

  test("that another process is writing to is waited for without blocking the event loop", async () => {
    const { db, url } = await openCounters(databases)
    const holder = Bun.spawn([process.execPath, "-e", holdScript, pathIn(url)], {
      stdin: "pipe",
      stdout: "pipe",
    })
    const said = holder.stdout.getReader()
    await said.read()
    const undisturbed = await fortyPauses()
    let answered = false
    const adding = add(db, "b", 1).then(() => {
      answered = true
    })
    const whileWaiting = await fortyPauses()
    const answeredEarly = answered
    holder.stdin.write("go on\n")
    holder.stdin.end()
    await adding
    await holder.exited
    expect(answeredEarly).toBe(false)
    // Blocking the event loop would take two seconds.
    expect(whileWaiting).toBeLessThan(undisturbed + 1_000)
    expect(await valuesIn(db)).toEqual({ held: 1, b: 1 })
  })

  test("whose disk fails a rollback for a moment works again afterwards", async () => {
    const { db } = await openCounters(databases)
    const { exec } = Connection.prototype
    let refusals = 0
    const disk = spyOn(Connection.prototype, "exec").mockImplementation(function (this: Connection, text) {
      if (text !== "rollback" || refusals === 2) return exec.call(this, text)
      refusals += 1
      throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" })
    })
    const failing = db.transaction(async (tx) => {
      await tx.insert(counters).values({ id: "lost", value: 1 })
      throw new Error("after a write")
    })
    await expect(failing).rejects.toThrow()
    await add(db, "kept", 1)
    disk.mockRestore()
    expect(refusals).toBe(2)
    expect(await valuesIn(db)).toEqual({ kept: 1 })
  })

  test("on a full disk is unavailable for writes, and keeps what was committed", async () => {
    const { db, url } = await openCounters(databases)
    await db.close()
    // The process limits its file size, which to SQLite looks like a full disk.
    const limited = ["bash", "-c", `trap "" XFSZ; ulimit -f 300; exec "$@"`, "bash"]
    const child = Bun.spawn([...limited, process.execPath, "-e", fillScript, url], {
      cwd: projectRoot,
      stdout: "pipe",
      stderr: "pipe",
    })
    const complaint = await child.stderr.text()
    const answer = JSON.parse((await child.stdout.text()) || `"${complaint}"`)
    const again = databases.open(url)
    const [kept] = await again.read.select({ rows: sql<number>`count(*)` }).from(counters)
    expect(answer.refusal).toBe("DatabaseUnavailable")
    expect(answer.answered).toBeGreaterThan(0)
    expect(answer.readable).toBe(answer.answered)
    expect(kept?.rows).toBe(answer.answered)
  })
})

describe("a Postgres server", () => {
  const postgres = engines[1]
  if (!postgres) throw new Error("Postgres is the second engine")
  const databases = useEngine(postgres)

  test("that does not exist is unavailable for transactions and reads", async () => {
    const db = databases.open("postgres://nobody:a-secret@127.0.0.1:1/nothing")
    const refusal = await db.transaction(async () => 1).catch((error) => error)
    expect(refusal).toBeInstanceOf(DatabaseUnavailable)
    expect(refusal.message).not.toContain("a-secret")
    expect(await valuesIn(db).catch(driverError)).toBeInstanceOf(DatabaseUnavailable)
  })

  test.each([
    ["whose name cannot be resolved", "postgres://db.example.test/shop", "getaddrinfo EAI_AGAIN"],
    ["without TLS", "/shop?sslmode=verify-full", "The server does not support SSL connections"],
    [
      "whose certificate authority file is missing",
      "/shop?sslmode=verify-full&sslrootcert=/no/ca.pem",
      "/no/ca.pem",
    ],
  ])("%s is unavailable for transactions and reads, with a reason", async (_what, place, said) => {
    const { origin } = new URL((await databases.newDatabase()).replace("postgres:", "http:"))
    const url = place.startsWith("/") ? `${origin.replace("http:", "postgres:")}${place}` : place
    const told = JSON.parse(await runScript(refusedScript, url))
    for (const { name, message } of told) {
      expect(name).toBe("DatabaseUnavailable")
      expect(message).toMatch(/^Postgres cannot be reached: /)
      expect(message).toContain(said)
    }
  })

  test("that asks for a password that is not configured is unavailable, with a reason", async () => {
    const server = await openAskingForPassword()
    const told = JSON.parse(await runScript(refusedScript, server.url))
    server.close()
    const refusal = {
      name: "DatabaseUnavailable",
      message: "Postgres cannot be reached: it requires a password",
    }
    expect(told).toEqual([refusal, refusal, refusal])
  })

  test("without the database is unavailable, with a reason", async () => {
    const db = databases.open(`${await databases.newDatabase()}-of-nobody`)
    const refusal = await db.transaction(async () => 1).catch((error) => error)
    expect(refusal).toBeInstanceOf(DatabaseUnavailable)
    expect(refusal.message).toMatch(
      /^Postgres refuses the connection \(3D000\): database ".+" does not exist$/,
    )
  })

  test("whose database encoding is not UTF-8 is rejected, with a remedy", async () => {
    const url = await databases.newDatabase()
    const { db: maker } = await openCounters(databases)
    for (const [encoding, ran] of [
      ["LATIN1", null],
      ["SQL_ASCII", migrationNames()],
    ] as const) {
      const name = `${new URL(url).pathname.slice(1)}_${encoding.toLowerCase()}`
      await maker.read.execute(
        sql.raw(`create database ${name} encoding '${encoding}' template template0 locale 'C'`),
      )
      const db = databases.open(url.replace(/[^/]+$/, name))
      const begun = migrate(db, new Date())
      if (ran) expect(await begun).toEqual(ran)
      else await expect(begun).rejects.toThrow("has the encoding LATIN1")
    }
  }, 30_000)

  test("whose role may not create or read tables is unavailable, with a reason", async () => {
    const { url, db: owner } = await openCounters(databases)
    const name = new URL(url).pathname.slice(1)
    await owner.read.execute(sql.raw(`create role guest_of_${name} login`))
    await owner.read.execute(sql.raw("revoke usage on schema public from public"))
    const guest = databases.open(url.replace("tester@", `guest_of_${name}@`))
    const lost = await migrate(guest, new Date()).catch((error) => error)
    await owner.read.execute(sql.raw(`grant usage on schema public to guest_of_${name}`))
    const making = await migrate(guest, new Date()).catch((error) => error)
    const reading = driverError(await valuesIn(guest).catch((error) => error))
    for (const refusal of [lost, making, reading]) expect(refusal).toBeInstanceOf(DatabaseUnavailable)
    expect(
      [lost, making, reading].map(({ message }) =>
        message.replace("Postgres does not permit this user to do this", ""),
      ),
    ).toEqual([
      " (3F000): no schema has been selected to create in",
      " (42501): permission denied for schema public",
      " (42501): permission denied for table counters",
    ])
  })

  test("whose role may not write to one table still executes the other transactions", async () => {
    const { url, db: owner } = await openCounters(databases)
    const guest = `writer_of_${new URL(url).pathname.slice(1)}`
    for (const statement of [
      `create role ${guest} login`,
      `grant usage on schema public to ${guest}`,
      `grant select, insert on counters to ${guest}`,
      "create table forbidden (id text)",
    ])
      await owner.read.execute(sql.raw(statement))
    const db = databases.open(url.replace("tester@", `${guest}@`))
    const insertInto = (statement: string) =>
      db.transaction(async (tx) => await tx.execute(sql.raw(statement)), "read committed")
    const [refused, beside] = await Promise.allSettled([
      insertInto("insert into forbidden values ('a')"),
      insertInto("insert into counters values ('a', 1)"),
    ])
    expect(refused).toMatchObject({ status: "rejected", reason: expect.any(DatabaseUnavailable) })
    expect(beside.status).toBe("fulfilled")
    expect(await valuesIn(db)).toEqual({ a: 1 })
  })

  test("that closes a connection in the middle of a transaction is unavailable, and works again later", async () => {
    const { db, other } = await openCounters(databases)
    const pid = Promise.withResolvers<unknown>()
    const terminated = Promise.withResolvers<void>()
    const cut = db.transaction(async (tx) => {
      pid.resolve(await one(tx, "select pg_backend_pid()"))
      await tx.insert(counters).values({ id: "a", value: 1 })
      await terminated.promise
      await tx.insert(counters).values({ id: "b", value: 1 })
    })
    await other.read.execute(sql`select pg_terminate_backend(${await pid.promise})`)
    terminated.resolve()
    await expect(cut).rejects.toBeInstanceOf(DatabaseUnavailable)
    await add(db, "c", 1)
    expect(await valuesIn(db)).toEqual({ c: 1 })
  })

  test("whose statement is cancelled is unavailable, and works again later", async () => {
    const { db, other } = await openCounters(databases)
    const pid = Promise.withResolvers<unknown>()
    const cancelled = db.transaction(async (tx) => {
      await tx.insert(counters).values({ id: "a", value: 1 })
      pid.resolve(await one(tx, "select pg_backend_pid()"))
      await one(tx, "select pg_sleep(30)")
    })
    cancelled.catch(() => {})
    await cancelSleep(other, await pid.promise)
    await expect(cancelled).rejects.toBeInstanceOf(DatabaseUnavailable)
    await add(db, "c", 1)
    expect(await valuesIn(db)).toEqual({ c: 1 })
  })

  test("whose statement is cancelled still executes concurrent transactions", async () => {
    const { db, other } = await openCounters(databases)
    const pid = Promise.withResolvers<unknown>()
    let runs = 0
    const cancelled = db.transaction(async (tx) => {
      pid.resolve(await one(tx, "select pg_backend_pid()"))
      runs += 1
      await one(tx, runs === 1 ? "select pg_sleep(30)" : "select 1")
    }, "read committed")
    const beside = db.transaction(
      async (tx) => await tx.insert(counters).values({ id: "a", value: 1 }),
      "read committed",
    )
    await cancelSleep(other, await pid.promise)
    await Promise.all([cancelled, beside])
    expect(await valuesIn(db)).toEqual({ a: 1 })
  })

  test("repeats a transaction that deletes a row after a concurrent one came to refer to it", async () => {
    const { db, other } = await openCounters(databases)
    await other.transaction(
      async (tx) => await tx.execute(sql.raw("create table marks (id text references counters (id))")),
    )
    await add(db, "a", 1)
    const looked = Promise.withResolvers<void>()
    const referred = Promise.withResolvers<void>()
    const deleted = db.transaction(async (tx) => {
      if ((await tx.execute(sql`select id from marks`)).length > 0) return "left alone"
      looked.resolve()
      await referred.promise
      await tx.delete(counters).where(eq(counters.id, "a"))
      return "deleted"
    })
    await looked.promise
    await other.transaction(
      async (tx) => await tx.execute(sql`insert into marks values ('a')`),
      "read committed",
    )
    referred.resolve()
    expect(await deleted).toBe("left alone")
    const wrong = db.transaction(async (tx) => await tx.execute(sql`insert into marks values ('nobody')`))
    await expect(wrong).rejects.toMatchObject({ code: "23503" })
  })

  test("waits as long as the client wants, whatever timeouts a role has", async () => {
    const url = await databases.newDatabase()
    const name = new URL(url).pathname.slice(1)
    const { db } = await openCounters(databases)
    // The last one was added in Postgres 17.
    const limits = (await db.read.execute(
      sql`select name from pg_settings where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout')`,
    )) as unknown as string[][]
    for (const [limit] of limits)
      await db.read.execute(sql.raw(`alter database "${name}" set ${limit} = '7s'`))
    const limited = openPostgres(url)
    for (const [limit] of limits) expect(await one(limited.read, `show ${limit}`)).toBe("0")
    await limited.close()
  })

  test("returns times in the usual format, whatever DateStyle a role has", async () => {
    const url = await databases.newDatabase()
    const name = new URL(url).pathname.slice(1)
    const { db } = await openCounters(databases)
    for (const form of ["SQL, DMY", "German"]) {
      await db.read.execute(sql.raw(`alter database "${name}" set datestyle = '${form}'`))
      const formed = openPostgres(url)
      expect(await one(formed.read, "select timestamptz '2026-03-04T05:06:07.089Z'")).toBe(
        "2026-03-04T05:06:07.089Z",
      )
      await formed.close()
    }
  })

  test("fails no read because of concurrent writes, whatever isolation level a role has", async () => {
    const { url, db: other } = await openCounters(databases)
    for (const id of ["a", "b"]) await add(other, id, 1)
    await other.read.execute(
      sql.raw(
        `alter database "${new URL(url).pathname.slice(1)}" set default_transaction_isolation = 'serializable'`,
      ),
    )
    const db = databases.open(url)
    const looked = Promise.withResolvers<void>()
    const goesOn = Promise.withResolvers<void>()
    const between = other.transaction(async (tx) => {
      await tx.select().from(counters).where(eq(counters.id, "a"))
      looked.resolve()
      await goesOn.promise
      await tx.update(counters).set({ value: 2 }).where(eq(counters.id, "b"))
    })
    await looked.promise
    await other.transaction(
      async (tx) => await tx.update(counters).set({ value: 2 }).where(eq(counters.id, "a")),
    )
    const { isHeld, giveUp } = holdBy(other, sql`select pg_advisory_xact_lock(1)`, "read committed alone")
    await isHeld
    const waiting = "select pg_advisory_xact_lock(1)::text || (select value from counters where id = 'b')"
    const reading = one(db.read, waiting)
    await until(async () => (await sessionsOf(url, "active")) === 1)
    goesOn.resolve()
    await between
    await giveUp()
    expect(await reading).toBe("1")
  })

  test.each(isolations)(
    "takes the locks from an idle %s transaction, gives them to those that wait, and repeats it",
    async (isolation) => {
      const { db, other } = await openCounters(databases)
      await add(db, "a", 1)
      expect(await one(db.read, "show idle_in_transaction_session_timeout")).toBe("10s")
      const holds = Promise.withResolvers<void>()
      const goesOn = Promise.withResolvers<void>()
      let runs = 0
      const still = db.transaction(async (tx) => {
        runs += 1
        // On the second run a busy machine may take longer.
        if (runs === 1) await tx.execute(sql`set local idle_in_transaction_session_timeout = 100`)
        await tx.update(counters).set({ value: sql`${counters.value} * 2` })
        holds.resolve()
        await goesOn.promise
        await tx.insert(counters).values({ id: "b", value: 1 })
      }, isolation)
      await holds.promise
      await other.transaction(async (tx) => await tx.update(counters).set({ value: 3 }))
      expect(await valuesIn(other)).toEqual({ a: 3 })
      goesOn.resolve()
      await still
      expect(runs).toBe(2)
      expect(await valuesIn(db)).toEqual({ a: 6, b: 1 })
    },
  )

  test("repeats the transactions of a group that it rolled back before their connection was lost", async () => {
    const { db, other } = await openCounters(databases)
    const rolledBack = Promise.withResolvers<unknown>()
    const terminated = Promise.withResolvers<void>()
    let runs = 0
    const beside = db.transaction(async (tx) => {
      await tx.insert(counters).values({ id: "a", value: 1 })
      await terminated.promise
      await tx.insert(counters).values({ id: "b", value: 1 })
    }, "read committed")
    const repeated = db.transaction(async (tx) => {
      runs += 1
      const pid = await one(tx, "select pg_backend_pid()")
      const ended = sql`do $$ begin raise 'as if it had been idle' using errcode = '25P03'; end $$`
      if (runs === 1) await tx.execute(ended).finally(() => rolledBack.resolve(pid))
    }, "read committed")
    await other.read.execute(sql`select pg_terminate_backend(${await rolledBack.promise}, 30000)`)
    terminated.resolve()
    await Promise.all([beside, repeated])
    expect(runs).toBe(2)
    expect(await valuesIn(db)).toEqual({ a: 1, b: 1 })
  })

  test.each(isolations)(
    "retries a %s transaction whose session it ended while the whole process was suspended",
    async (isolation) => {
      const { db } = await openCounters(databases)
      let runs = 0
      const still = db.transaction(async (tx) => {
        runs += 1
        // On the second run a busy machine may take longer.
        if (runs === 1) await tx.execute(sql`set local idle_in_transaction_session_timeout = 100`)
        await tx.insert(counters).values({ id: "a", value: 1 })
        // Like a suspended process, it continues before it learns that its session has ended.
        if (runs === 1) Bun.sleepSync(1_000)
        await tx.insert(counters).values({ id: "b", value: 1 })
      }, isolation)
      await still
      expect(runs).toBe(2)
      expect(await valuesIn(db)).toEqual({ a: 1, b: 1 })
    },
  )

  test("that stops responding is unavailable to waiting requests, and is reached again on another connection", async () => {
    const { url } = await openCounters(databases)
    const { db, line } = await openOverLine(url)
    await Promise.all(Array.from({ length: 10 }, () => valuesIn(db)))
    const isGone = Promise.withResolvers<void>()
    const works = isolations.map((isolation) =>
      db.transaction(async (tx) => {
        await tx.select().from(counters)
        await isGone.promise
        await tx.insert(counters).values({ id: isolation, value: 1 })
      }, isolation),
    )
    const worked = Promise.allSettled(works)
    await until(async () => (await sessionsOf(url, "idle in transaction")) === 2)
    line.fallSilent()
    isGone.resolve()
    const reads = Array.from({ length: 8 }, () => valuesIn(db))
    for (const ended of [...(await worked), ...(await Promise.allSettled(reads))])
      expect(driverError((ended as PromiseRejectedResult).reason)).toBeInstanceOf(DatabaseUnavailable)
    await add(db, "a", 1)
    expect(await valuesIn(db)).toEqual({ a: 1 })
    await db.close()
    line.stop()
  })

  test("that stops responding during a commit is unavailable, and the transaction is not repeated", async () => {
    const { url, db: other } = await openCounters(databases)
    const { db, line } = await openOverLine(url)
    for (const isolation of isolations) {
      let runs = 0
      const lost = db.transaction(async (tx) => {
        runs += 1
        await tx.insert(counters).values({ id: isolation, value: 1 })
        line.fallSilent()
      }, isolation)
      await expect(lost).rejects.toBeInstanceOf(DatabaseUnavailable)
      expect(runs).toBe(1)
    }
    await db.close()
    line.stop()
    await add(other, "serializable", 2)
    expect(await valuesIn(other)).toEqual({ serializable: 2 })
  })

  test("is waited for by a slow statement as long as the statement's timeout", async () => {
    const db = openPostgres(await databases.newDatabase(), shortPatience)
    const text = `select pg_sleep(${(1.5 * shortPatience) / 1_000})`
    expect(await db.read.ask({ text, patience_milliseconds: 60_000 }, [])).toEqual([[""]])
    const impatient = async () => await db.read.ask({ text }, [])
    await expect(impatient()).rejects.toBeInstanceOf(DatabaseUnavailable)
    await db.close()
  })

  test("that another process is migrating is waited for", async () => {
    const url = await databases.newDatabase()
    const other = databases.open(url)
    const ledger =
      "create table schema_migrations (name text primary key, applied_at timestamptz(3) not null)"
    await other.transaction((tx) => tx.execute(sql.raw(ledger)))
    const claim = sql`insert into schema_migrations values (${migrationNames()[0]}, ${startOfTime.toISOString()})`
    const { isHeld, giveUp } = holdBy(other, claim)
    await isHeld
    const db = openPostgres(url, shortPatience)
    const migrating = migrate(db, startOfTime)
    await until(async () => (await sessionsOf(url, "active", 1.5 * shortPatience)) === 1)
    await giveUp()
    expect(await migrating).toEqual(migrationNames())
    await db.close()
  })

  test("whose tables are in use is migrated once they are free, and serves their users meanwhile", async () => {
    const url = await databases.newDatabase()
    const other = databases.open(url)
    const name = "0016_promised_factory.sql"
    const { isHeld, giveUp } = await holdBeforeMigration(other, name)
    await isHeld
    const said: string[] = []
    const tell = (_fields: unknown, message: string) => said.push(message)
    const migrating = migrate(databases.open(url), startOfTime, { info: tell, warn: tell })
    const waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    await until(async () => (await one(other.read, waiting)) !== "0")
    expect(await other.read.execute(sql`select id from collections`)).toEqual([])
    await until(async () => said.length === 2)
    await giveUp()
    expect(await migrating).toEqual([name])
    expect(said).toEqual([
      expect.stringContaining("is next"),
      expect.stringContaining("is in use"),
      "the migration is done",
    ])
  }, 20_000)

  test("whose tables are in use serves any number of writes to other tables while the migration waits", async () => {
    const { db, url } = await openCounters(databases)
    const other = databases.open(url)
    const name = "0016_promised_factory.sql"
    const { isHeld, giveUp } = await holdBeforeMigration(other, name)
    await isHeld
    const said: string[] = []
    const tell = (_fields: unknown, message: string) => said.push(message)
    const migrating = migrate(databases.open(url), startOfTime, { info: tell, warn: tell })
    await until(async () => said.length === 2)
    // Postgres keeps what serializable transactions have read while an older one is open, and has limited room for it.
    const write = (id: string) =>
      db.transaction(async (tx) => {
        await tx.insert(counters).values({ id, value: 1 })
        await tx.update(counters).set({ value: 2 }).where(eq(counters.id, id))
      })
    for (let written = 0; written < 8_000; written += 100)
      await Promise.all(Array.from({ length: 100 }, (_, index) => write(`${written + index}`)))
    await giveUp()
    expect(await migrating).toEqual([name])
  }, 60_000)

  test("lets requests read units while a migration fills in what is known of their owners", async () => {
    const url = await databases.newDatabase()
    const other = databases.open(url)
    const earlier = migrationNames().filter((name) => name < "0010")
    await migrateBy(other, earlier)
    const { isHeld, giveUp } = holdBy(other, sql`lock table actors in access exclusive mode`)
    await isHeld
    const migrating = migrate(databases.open(url), startOfTime)
    const waitsSince = () =>
      one(
        other.read,
        `select waitstart::text from pg_locks where not granted and relation = 'actors'::regclass`,
      )
    await until(async () => {
      const since = await waitsSince()
      expect(await one(other.read, "select count(*) from units")).toBe("0")
      // Otherwise the migration may have given way for this read.
      return since !== undefined && since !== null && (await waitsSince()) === since
    })
    await giveUp()
    expect(await migrating).toEqual(migrationNames().slice(earlier.length))
  }, 30_000)

  test("cancels a statement that waits for locks when its client has given up", async () => {
    const { url, db: other } = await openCounters(databases)
    await add(other, "a", 1)
    const { isHeld, giveUp } = holdBy(other, sql`update counters set value = 2`)
    await isHeld
    const db = openPostgres(url, shortPatience)
    const waiting = db.transaction(async (tx) => await tx.update(counters).set({ value: 3 }))
    waiting.catch(() => {})
    await until(async () => (await sessionsOf(url, "active")) === 1)
    await expect(waiting).rejects.toBeInstanceOf(DatabaseUnavailable)
    await until(async () => (await sessionsOf(url, "active")) === 0)
    await giveUp()
    await db.close()
  })

  test("that is read-only is unavailable for writes, with a reason, and is reached again on another connection", async () => {
    const { url, db: other } = await openCounters(databases)
    const database = sql.identifier(new URL(url).pathname.slice(1))
    for (const isolation of isolations) {
      const db = databases.open(url)
      const insert = () =>
        db.transaction(async (tx) => await tx.insert(counters).values({ id: isolation, value: 1 }), isolation)
      await other.read.execute(sql`alter database ${database} set default_transaction_read_only = on`)
      const refusal = await insert().catch((error) => error)
      await other.read.execute(sql`alter database ${database} reset default_transaction_read_only`)
      expect(refusal).toBeInstanceOf(DatabaseUnavailable)
      expect(refusal.message).toMatch(
        /^Postgres cannot do this on this server \(25006\): .+ in a read-only transaction$/,
      )
      await insert()
    }
    expect(Object.keys(await valuesIn(other)).sort()).toEqual(isolations.toSorted())
  })

  test("with a full disk is unavailable, with a reason", async () => {
    const { db } = await openCounters(databases)
    const said = "could not extend file: No space left on device"
    const full = sql.raw(`do $$ begin raise '${said}' using errcode = '53100'; end $$`)
    for (const isolation of isolations) {
      const refused = db.transaction(async (tx) => await tx.execute(full), isolation)
      await expect(refused).rejects.toMatchObject({
        name: "DatabaseUnavailable",
        message: `Postgres cannot answer now (53100): ${said}`,
      })
    }
  })

  test("that cannot serve a connection, like a standby behind a pooler, is reached again on another one", async () => {
    const { db } = await openCounters(databases)
    const pids: unknown[] = []
    const refused = db.transaction(async (tx) => {
      pids.push(await one(tx, "select pg_backend_pid()"))
      await tx.execute(sql`do $$ begin raise 'no serializable mode here' using errcode = '0A000'; end $$`)
    })
    await expect(refused).rejects.toBeInstanceOf(DatabaseUnavailable)
    pids.push(await one(db.read, "select pg_backend_pid()"))
    expect(new Set(pids).size).toBe(2)
  })

  test("gets no startup parameters that a pooler rejects", async () => {
    const { db, told } = await openThroughPooler()
    await expect(valuesIn(db)).rejects.toThrow()
    await db.close()
    expect(told).toContain("user")
    expect(told).not.toContain("options")
  })

  test("behind a pooler that rejects the connection is unavailable, with a reason", async () => {
    const { db } = await openThroughPooler()
    const refusal = driverError(await valuesIn(db).catch((error) => error))
    expect(refusal).toBeInstanceOf(DatabaseUnavailable)
    expect((refusal as Error).message).toBe("Postgres refuses the connection (08P01): no such database: shop")
    await db.close()
  })

  test("that does not support client_connection_check_interval, as on Windows, still works", async () => {
    const { url, db: other } = await openCounters(databases)
    await add(other, "a", 1)
    const { db, line } = await openOverLine(url, (sent) =>
      Buffer.from(
        sent.toString("latin1").replace(/(client_connection_check_interval = )\d/, "$1-"),
        "latin1",
      ),
    )
    expect(await valuesIn(db)).toEqual({ a: 1 })
    expect(await one(db.read, "show client_connection_check_interval")).toBe("0")
    await db.close()
    line.stop()
  })

  test("behind a pooler in transaction mode is unavailable, with a remedy", async () => {
    const db = databases.open(await databases.newDatabase())
    const askByName = async () => await db.read.ask({ text: "select 1", name: "one" }, [])
    await askByName()
    await db.read.ask({ text: "deallocate all" }, [])
    const refusal = driverError(await askByName().catch((error) => error))
    expect(refusal).toBeInstanceOf(DatabaseUnavailable)
    expect((refusal as Error).message).toBe(
      "Postgres loses the prepared statements (26000) of its session: DATABASE_URL must connect to it directly, or through a pooler in session mode",
    )
  })

  test("behind a pooler in transaction mode is unavailable also to transactions after one that failed", async () => {
    const db = databases.open(await databases.newDatabase())
    const named = { text: "select 1", name: "one" }
    const loses = "Postgres loses the prepared statements (26000) of its session"
    for (const isolation of isolations) {
      const failing = db.transaction(async (tx) => await tx.ask({ text: "select 1 / 0" }, []))
      await expect(failing).rejects.toMatchObject({ code: "22012" })
      await db.read.ask(named, [])
      await db.read.ask({ text: "deallocate all" }, [])
      const asking = db.transaction(async (tx) => await tx.ask(named, []), isolation)
      await expect(asking).rejects.toThrow(loses)
    }
  })

  test("executes the transactions of a group whose statements it did not prepare because another's had failed", async () => {
    const { db } = await openCounters(databases)
    await add(db, "a", 1)
    const failed = Promise.withResolvers<void>()
    const unprepared = Promise.withResolvers<void>()
    const named = { text: "select value from counters", name: "values" }
    /** Sends its statement right after another one, and returns what it read. */
    const askAfter = (another: Promise<void>, sent?: () => void) =>
      db.transaction(async (tx) => {
        await another
        const answer = tx.ask(named, [])
        sent?.()
        return await answer
      }, "read committed")
    const outcomes = await Promise.allSettled([
      askAfter(unprepared.promise),
      askAfter(failed.promise, unprepared.resolve),
      db.transaction(async (tx) => {
        const answer = tx.ask({ text: "insert into counters values ('a', 2)" }, [])
        failed.resolve()
        await answer
      }, "read committed"),
    ])
    expect(outcomes).toMatchObject([{ value: [["1"]] }, { value: [["1"]] }, { reason: { code: "23505" } }])
  })

  test("behind a pooler that resets the session's time zone is rejected", async () => {
    const db = databases.open(await databases.newDatabase())
    const told = db.transaction(async (tx) => {
      await tx.execute(sql`set local timezone = 'Asia/Kolkata'`)
      await tx.execute(sql`select now()`)
    })
    await expect(told).rejects.toThrow("through a pooler in session mode")
  })

  test("that is a standby returns nothing, and works again as a primary", async () => {
    const server = await startPostgres()
    const url = server.url("postgres")
    const db = databases.open(url)
    const table = "create table counters (id text primary key, value bigint not null)"
    await db.transaction((tx) => tx.execute(sql.raw(table)))
    await server.restart("standby")
    const fresh = databases.open(url)
    const reading = valuesIn(fresh).catch(driverError)
    const writing = add(fresh, "a", 1).catch((error) => error)
    for (const refusal of await Promise.all([reading, writing])) {
      expect(refusal).toBeInstanceOf(DatabaseUnavailable)
      expect((refusal as Error).message).toBe("Postgres is a standby and accepts no writes")
    }
    await server.restart("primary")
    await add(fresh, "a", 1)
    expect(await valuesIn(db)).toEqual({ a: 1 })
    await Promise.all([db.close(), fresh.close()])
    await server.stop()
  }, 30_000)
})

const projectRoot = dirname(dirname(import.meta.dir))

async function openCounters(databases: Databases) {
  const url = await databases.newDatabase()
  const db = databases.open(url)
  await db.transaction(
    async (tx) =>
      await tx.execute(sql.raw("create table counters (id text primary key, value bigint not null)")),
  )
  return { url, db, other: databases.open(url) }
}

const isolations = ["serializable", "read committed"] as const

/** Long enough for a busy machine to execute a statement. */
const shortPatience = 1_000

/** A database whose server can stop responding. */
async function openOverLine(
  url: string,
  change?: (sent: Buffer) => Buffer,
): Promise<{ db: Database; line: Line }> {
  const direct = new URL(url)
  const line = await startLine(Number(direct.port), change)
  direct.port = String(line.port)
  return { db: openPostgres(direct.href, shortPatience), line }
}

/** A server that asks each client for a password (SASL: PostgreSQL manual, 55.3.1). */
async function openAskingForPassword(): Promise<{ url: string; close(): void }> {
  const server = createServer((socket) => {
    const answers = ["R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0", "R\0\0\0\x0a\0\0\0\x0br="]
    socket.on("data", () => socket.write(Buffer.from(answers.shift() ?? "", "latin1")))
    socket.on("error", () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { url: `postgres://someone@127.0.0.1:${port}/shop`, close: () => void server.close() }
}

/** PgBouncer rejecting an unknown database (ErrorResponse: PostgreSQL manual, 55.7), and what it was sent. */
async function openThroughPooler(): Promise<{ db: Database; told: string[] }> {
  const told: string[] = []
  const server = createServer((socket) =>
    socket.once("data", (sent: Buffer) => {
      told.push(...sent.subarray(8).toString("latin1").split("\0"))
      const fields = Buffer.from("SFATAL\0C08P01\0Mno such database: shop\0\0")
      const length = Buffer.alloc(4)
      length.writeUInt32BE(4 + fields.length)
      socket.end(Buffer.concat([Buffer.from("E"), length, fields]))
    }),
  ).unref()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { db: openPostgres(`postgres://someone@127.0.0.1:${port}/shop`), told }
}

/** Executes all migrations but one, and holds a read lock on the table that it changes, as a back-up does. */
async function holdBeforeMigration(db: Database, name: string) {
  const all = sql.raw(
    migrationNames()
      .map((each) => `('${each}', now())`)
      .join(", "),
  )
  await db.transaction(async (tx) => {
    await tx.execute(sql`create table schema_migrations (name text primary key, applied_at timestamptz(3))`)
    await tx.execute(sql`insert into schema_migrations values ${all}`)
    await tx.execute(sql`delete from schema_migrations where name = ${name}`)
    await tx.execute(sql`create table collections (id text primary key)`)
  })
  return holdBy(db, sql`select id from collections`, "read committed alone")
}

/** Runs some migrations, as a release did that had no others. */
async function migrateBy(db: Database, names: string[]): Promise<void> {
  const folder = new URL("../../migrations/", import.meta.url)
  const texts = names.map((name) => readFileSync(new URL(name, folder), "utf8"))
  const ledger = "create table schema_migrations (name text primary key, applied_at timestamptz(3) not null)"
  const known = names.map((name) => `insert into schema_migrations values ('${name}', now())`)
  const statements = [
    ledger,
    ...known,
    ...texts
      .join("\n")
      .replaceAll(/^--.*$/gm, "")
      .split(";"),
  ]
  await db.transaction(async (tx) => {
    for (const statement of statements) if (statement.trim() !== "") await tx.execute(sql.raw(statement))
  }, "read committed alone")
}

/** Holds the locks of a statement until it is given up. */
function holdBy(db: Database, statement: SQL, isolation?: Isolation) {
  const isHeld = Promise.withResolvers<void>()
  const isOver = Promise.withResolvers<never>()
  const holding = db.transaction(async (tx) => {
    await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`)
    await tx.execute(statement)
    isHeld.resolve()
    await isOver.promise
  }, isolation)
  return {
    isHeld: Promise.race([isHeld.promise, holding]),
    async giveUp() {
      isOver.reject(new Error("given up"))
      await holding.catch(() => {})
    },
  }
}

/** Counts a database's sessions that have been in a state for this long. */
async function sessionsOf(url: string, state: string, milliseconds = 0): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(
    `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
       and state = $1 and state_change < clock_timestamp() - make_interval(secs => $2)`,
    [state, milliseconds / 1_000],
  )
  await client.end()
  return Number(rows[0].count)
}

/** The single value that a statement returns. */
async function one(queries: Queries, text: string): Promise<unknown> {
  return (await queries.ask({ text }, []))[0]?.[0]
}

/** Cancels the statement as soon as its backend sleeps. */
async function cancelSleep({ read }: Database, pid: unknown): Promise<void> {
  const asleep = sql`select 1 from pg_stat_activity where pid = ${pid} and query like '%pg_sleep%' and state = 'active'`
  while ((await read.execute(asleep)).length === 0) await Bun.sleep(5)
  await read.execute(sql`select pg_cancel_backend(${pid})`)
}

async function add(db: Database, id: string, value: number): Promise<void> {
  await db.transaction(async (tx) => await tx.insert(counters).values({ id, value }))
}

async function valuesIn(db: Database): Promise<Record<string, number>> {
  const rows = await db.read.select().from(counters)
  return Object.fromEntries(rows.map(({ id, value }) => [id, value]))
}

/** How many milliseconds forty pauses of five take: much longer if something blocks the event loop. */
async function fortyPauses(): Promise<number> {
  const before = performance.now()
  for (let pauses = 0; pauses < 40; pauses++) await Bun.sleep(5)
  return performance.now() - before
}

function pathIn(url: string): string {
  return url.replace("sqlite:", "")
}

/** Runs a script with one argument in a process of its own; returns its output. */
async function runScript(script: string, argument: string): Promise<string> {
  const child = Bun.spawn([process.execPath, "-e", script, argument], {
    cwd: projectRoot,
    stdout: "pipe",
    stderr: "pipe",
  })
  const [said, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complaint)
  return said
}

const migrateScript = `
  import { openDatabase } from "./src/db/open.ts"
  import { migrate } from "./src/db/migrate.ts"
  const db = openDatabase(process.argv.at(-1))
  const ran = await migrate(db, new Date())
  await db.close()
  process.stdout.write(JSON.stringify(ran))
`

/** Resolves no name: every lookup fails as if the resolver did not respond. */
const refusedScript = `
  import net from "node:net"
  const connect = net.Socket.prototype.connect
  net.Socket.prototype.connect = function (...given) {
    if (!given.includes("db.example.test")) return connect.apply(this, given)
    const error = Object.assign(new Error("getaddrinfo EAI_AGAIN db.example.test"), { code: "EAI_AGAIN" })
    setImmediate(() => this.destroy(error))
    return this
  }
  import { openDatabase } from "./src/db/open.ts"
  const db = openDatabase(process.argv.at(-1))
  const asked = [db.transaction(async () => 1), db.transaction(async () => 1, "read committed"), db.read.ask({ text: "select 1" }, [])]
  const told = await Promise.allSettled(asked)
  process.stdout.write(JSON.stringify(told.map(({ reason }) => ({ name: reason?.name, message: reason?.message }))))
  process.exit(0)
`

const holdScript = `
  import { Database } from "bun:sqlite"
  const file = new Database(process.argv.at(-1))
  file.exec("begin immediate")
  file.exec("insert into counters values ('held', 1)")
  process.stdout.write("holding")
  for await (const line of process.stdin) break
  file.exec("commit")
  process.exit(0)
`

const fillScript = `
  import { sql } from "drizzle-orm"
  import { openDatabase } from "./src/db/open.ts"
  const db = openDatabase(process.argv.at(-1))
  let answered = 0
  let refusal
  while (!refusal && answered < 2000) {
    const id = "x".repeat(4000) + answered
    await db.transaction(async (tx) => await tx.execute(sql\`insert into counters values (\${id}, 1)\`)).then(
      () => answered++,
      (error) => { refusal = error.name },
    )
  }
  const [[readable]] = await db.read.execute(sql\`select count(*) from counters\`)
  process.stdout.write(JSON.stringify({ answered, refusal, readable }))
  process.exit(0)
`
