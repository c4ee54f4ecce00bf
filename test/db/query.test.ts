import { beforeAll, describe, expect, test } from "bun:test"
import { and, asc, eq, gt, inArray, sql } from "drizzle-orm"
import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core"
import { type Database, Outrun, type Queries, queriesOver } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { collections, units } from "../../src/db/schema.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { insertScene, type Scene, unitRow } from "../harness/scene.ts"

const counters = pgTable("counters", {
  id: text().primaryKey(),
  value: bigint({ mode: "number" }).notNull(),
  changed_at: timestamp({ withTimezone: true, precision: 3, mode: "date" }),
})
type Counter = typeof counters.$inferSelect

const insertCounter = query((db, counter: Given<Counter>) => db.insert(counters).values(counter))
const counterOf = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(counters).where(eq(counters.id, id)),
)
const moveCounter = query((db, given: Given<{ id: string; from: number; to: number }>) =>
  db
    .update(counters)
    .set({ value: given.to })
    .where(and(eq(counters.id, given.id), eq(counters.value, given.from)))
    .returning({ id: counters.id }),
)
type Filter = { above?: number | undefined; id?: string; at?: Date; limit: number }
const countersWhere = query((db, given: Given<Filter>) =>
  db
    .select({ id: counters.id })
    .from(counters)
    .where(
      and(
        given.above && gt(counters.value, given.above),
        given.id && eq(counters.id, given.id),
        given.at && eq(counters.changed_at, given.at),
      ),
    )
    .orderBy(asc(counters.id))
    .limit(given.limit),
)

for (const engine of engines)
  describe(engine.name, () => {
    const databases = useEngine(engine)

    async function openCounters(): Promise<{ db: Database; other: Database }> {
      const url = await databases.newDatabase()
      const db = databases.open(url)
      const table =
        "create table counters (id text primary key, value bigint not null, changed_at timestamptz(3))"
      await db.transaction(async (tx) => await tx.execute(sql.raw(table)))
      return { db, other: databases.open(url) }
    }

    const add = (db: Database, id: string, value: number, changed_at: Date | null = null) =>
      db.transaction(async (tx) => await insertCounter(tx, { id, value, changed_at }))

    describe("a query", () => {
      test("returns rows with the types of their columns", async () => {
        const { db } = await openCounters()
        const at = new Date("2026-01-02T03:04:05.678Z")
        await add(db, "a", 2 ** 40, at)
        await add(db, "b", 0)
        expect(await counterOf(db.read, { id: "a" })).toEqual([{ id: "a", value: 2 ** 40, changed_at: at }])
        expect(await counterOf(db.read, { id: "b" })).toEqual([{ id: "b", value: 0, changed_at: null }])
        expect(await counterOf(db.read, { id: "c" })).toEqual([])
      })

      test("omits conditions that are undefined", async () => {
        const { db } = await openCounters()
        const at = new Date("2026-01-02T03:04:05.678Z")
        for (const [index, id] of ["a", "b", "c"].entries()) await add(db, id, index, index === 2 ? at : null)
        const ids = async (given: Parameters<typeof countersWhere>[1]) =>
          (await countersWhere(db.read, given)).map(({ id }) => id)
        expect(await ids({ limit: 9 })).toEqual(["a", "b", "c"])
        expect(await ids({ limit: 2 })).toEqual(["a", "b"])
        expect(await ids({ above: 0, limit: 9 })).toEqual(["b", "c"])
        expect(await ids({ above: 0, id: "a", limit: 9 })).toEqual([])
        expect(await ids({ above: undefined, id: "a", limit: 9 })).toEqual(["a"])
        expect(await ids({ at, limit: 9 })).toEqual(["c"])
      })

      test("accepts a list of any length, even an empty one", async () => {
        const { db } = await openCounters()
        for (const id of ["a", "b", "c", "d", "e", "f"]) await add(db, id, 1)
        const texts = new Set<string>()
        const watched = queriesOver((statement, params) => {
          texts.add(statement.text)
          return db.read.ask(statement, params)
        })
        const counted = query((builder, { ids, value }: Given<{ ids: string[]; value: number }>) =>
          builder
            .select({ id: counters.id })
            .from(counters)
            .where(and(inArray(counters.id, ids), eq(counters.value, value)))
            .orderBy(asc(counters.id)),
        )
        const among = async (...ids: string[]) =>
          (await counted(watched, { ids, value: 1 })).map(({ id }) => id).join("")
        expect(await among()).toBe("")
        expect(await among("c")).toBe("c")
        expect(await among("c", "a")).toBe("ac")
        expect(await among("f", "c", "a")).toBe("acf")
        expect(await among("f", "x", "c", "a")).toBe("acf")
        expect(await among("f", "e", "c", "b", "a")).toBe("abcef")
        expect([...texts].map((text) => text.match(/\$\d+/g)?.length)).toEqual([2, 3, 5, 9])
      })

      test("fails with the driver's own error, without the values", async () => {
        const { db } = await openCounters()
        await add(db, "a secret", 1)
        const refusal = await add(db, "a secret", 1).catch((error) => error)
        expect(refusal).toBeInstanceOf(Error)
        expect(refusal.message).not.toContain("a secret")
      })

      test("has only varying values as parameters: constants are in its text, properly quoted", async () => {
        const { db } = await openCounters()
        for (const id of ["it's $1", "b", "c"]) await add(db, id, 7)
        const asked: { text: string; params: unknown[] }[] = []
        const watched = queriesOver((statement, params) => {
          asked.push({ text: statement.text, params })
          return db.read.ask(statement, params)
        })
        const found = query((builder, { value }: Given<{ value: number }>) =>
          builder
            .select({ id: counters.id, said: sql<string>`${"it's $2"}` })
            .from(counters)
            .where(and(eq(counters.id, "it's $1"), eq(counters.value, value)))
            .limit(1),
        )
        expect(await found(watched, { value: 7 })).toEqual([{ id: "it's $1", said: "it's $2" }])
        expect(await found(watched, { value: 8 })).toEqual([])
        expect(asked.map(({ params }) => params)).toEqual([[7], [8]])
        expect(asked[0]?.text).toEndWith("limit 1")
      })

      test("is built once, however often it is executed", async () => {
        const { db } = await openCounters()
        let built = 0
        const all = query((builder, given: Given<{ id?: string }>) => {
          built++
          return builder
            .select()
            .from(counters)
            .where(given.id && eq(counters.id, given.id))
        })
        for (let time = 0; time < 5; time++) {
          await all(db.read, {})
          await all(db.read, { id: "a" })
          await db.transaction(async (tx) => await all(tx, { id: "b" }))
        }
        expect(built).toBe(2)
      })
    })

    describe("a query returns what drizzle returns", () => {
      let db: Database
      let scene: Scene
      beforeAll(async () => {
        db = await databases.openShared()
        scene = await db.transaction(insertScene)
        const attributes = { colour: "green", sizes: [1, 2] }
        await db.transaction(async (tx) => {
          await tx
            .insert(units)
            .values([
              unitRow(scene, { claimed: true, attributes, name: "Ω", collection_id: scene.collection_id }),
              unitRow(scene, { claimed: false, attributes: null, collection_id: null }),
            ])
        })
      })

      const joined = (queries: Pick<Queries, "select">) =>
        queries
          .select({
            unit: units,
            collection: collections,
            name: units.name,
            twice: sql<number>`${units.claimed}`,
          })
          .from(units)
          .leftJoin(collections, eq(collections.id, units.collection_id))
          .orderBy(asc(units.id))

      test("for every column type, and for a joined table with and without a row", async () => {
        const rows = await query((builder, _given: Given<object>) => joined(builder))(db.read, {})
        expect(rows).toEqual(await joined(db.read))
        expect(rows.some(({ collection }) => collection === null)).toBe(true)
        expect(rows.some(({ collection }) => collection?.id === scene.collection_id)).toBe(true)
      })
    })

    describe("read committed transactions", () => {
      const addOne = (db: Database, id: string) =>
        db.transaction(async (tx) => {
          const [row] = await counterOf(tx, { id })
          const from = row?.value ?? 0
          const moved = await moveCounter(tx, { id, from, to: from + 1 })
          if (moved.length === 0) throw new Outrun("the counter has moved")
          return from + 1
        }, "read committed")

      test("on one row, each a compare-and-set, all succeed once, from two processes", async () => {
        const { db, other } = await openCounters()
        await add(db, "a", 0)
        const moved = await Promise.all(
          Array.from({ length: 40 }, (_, index) => addOne(index % 2 ? db : other, "a")),
        )
        expect(moved.sort((one, other) => one - other)).toEqual(
          Array.from({ length: 40 }, (_, index) => index + 1),
        )
        expect(await counterOf(db.read, { id: "a" })).toMatchObject([{ value: 40 }])
      })

      test("on two rows in opposite orders, from two processes, all finish", async () => {
        const { db, other } = await openCounters()
        const ids = Array.from({ length: 8 }, (_, index) => `${index}`)
        for (const id of ids) await add(db, id, 0)
        await Promise.all([
          ...ids.map((id) => addOne(db, id)),
          ...ids.toReversed().map((id) => addOne(other, id)),
        ])
        const rows = await db.read.select().from(counters)
        expect(rows.map(({ value }) => value)).toEqual(ids.map(() => 2))
      })

      test("roll back only themselves when they throw, before or after a write", async () => {
        const { db } = await openCounters()
        await add(db, "known", 1)
        const outcomes = await Promise.allSettled(
          Array.from({ length: 24 }, (_, value) =>
            db.transaction(async (tx) => {
              if (value % 4 === 0) throw new Error("before")
              await insertCounter(tx, { id: value % 4 === 1 ? "known" : `${value}`, value, changed_at: null })
              if (value % 4 === 2) throw new Error("after")
              return value
            }, "read committed"),
          ),
        )
        const stands = outcomes.map(({ status }) => status === "fulfilled")
        expect(stands).toEqual(Array.from({ length: 24 }, (_, value) => value % 4 === 3))
        const rows = await db.read.select({ id: counters.id }).from(counters)
        const kept = Array.from({ length: 24 }, (_, value) => value).filter((value) => value % 4 === 3)
        expect(rows.map(({ id }) => id).sort()).toEqual([...kept.map(String), "known"].sort())
      })

      test("return only when another connection can see their rows", async () => {
        const { db, other } = await openCounters()
        const seen = await Promise.all(
          Array.from({ length: 30 }, async (_, value) => {
            const id = newId()
            await db.transaction(async (tx) => {
              await insertCounter(tx, { id, value, changed_at: null })
            }, "read committed")
            return (await counterOf(other.read, { id })).length
          }),
        )
        expect(seen).toEqual(Array.from({ length: 30 }, () => 1))
      })
    })
  })

test("a query is one statement, with a name under which the database can prepare it", async () => {
  const asked: unknown[] = []
  const queries = queriesOver(({ text, name }, params) => {
    asked.push([text, typeof name, params])
    return []
  })
  await counterOf(queries, { id: "a" })
  const text = `select "id", "value", "changed_at" from "counters" where "counters"."id" = $1`
  expect(asked).toEqual([[text, "string", ["a"]]])
})
