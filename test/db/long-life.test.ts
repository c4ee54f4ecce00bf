import { Database as Connection } from "bun:sqlite"
import { describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq, inArray, isNotNull } from "drizzle-orm"
import { type Address, getAddress } from "viem"
import { chainCursors } from "../../src/db/chain-schema.ts"
import type { Database, Queries } from "../../src/db/database.ts"
import { migrate } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import {
  actors,
  bulkPairings,
  collections,
  effects,
  organizations,
  transactions,
  units,
} from "../../src/db/schema.ts"
import { encodeRun } from "../../src/engine/chain/desk.ts"
import { encodeIssue } from "../../src/engine/chain/issue-call.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"
import { openTransactions, settledTransactions } from "../../src/engine/lanes/transactions.ts"
import { urgencyOf, waitingWork } from "../../src/engine/lanes/turns.ts"
import { renderMetrics } from "../../src/operator/port/render-metrics.ts"
import { readChainStatus } from "../../src/operator/verbs/chain-status.ts"
import { findStuck, mostStuck } from "../../src/operator/verbs/stuck.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { chainQueue, laneQueue } from "../../src/platform/queues.ts"
import { listUnits } from "../../src/resources/units/service.ts"
import { issueUnits } from "../../workers/jobs/issue-units.ts"
import { jobs } from "../../workers/jobs/jobs.ts"
import { watchAuthorizations } from "../../workers/watches/watch-authorizations.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { explained, rowsRead } from "../harness/explained.ts"
import { alice } from "../harness/ownership.ts"
import { createTestContext, insertScene, type Scene, startOfTime, unitRow } from "../harness/scene.ts"
import { type Watched, watchedDatabase } from "../harness/watched-database.ts"

// Frequent queries must not read everything that a long life has left in the tables.

describe.each(engines)("on $name", (engine) => {
  const databases = useEngine(engine)

  /** A database with a scene, and what is queried through `watched`. */
  async function openWatched() {
    const db = await databases.openMigrated()
    const asked: Watched[] = []
    const watched = watchedDatabase(db, (each) => asked.push(each))
    const scene = await db.transaction((tx) => insertScene(tx))
    return { db, watched, asked, scene }
  }

  /** The plans of the queries and the rows they read, after the planner's statistics are updated. */
  async function readsOf(db: Database, asked: Watched[]): Promise<string[]> {
    if (db.engine === "postgres") await db.read.ask({ text: "analyze" }, [])
    const reads = await Promise.all(asked.map((each) => explained(db, each)))
    return reads.flat()
  }

  test("a lane finds the transactions that it watches without reading all it ever sent", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { lane_id } = scene
    await insertSome(db, 2_000, (tx, numbers) =>
      tx.insert(transactions).values(numbers.map((nonce) => sentRow(lane_id, nonce))),
    )
    await openTransactions(watched.read, lane_id)
    await settledTransactions(watched.read, lane_id)
    const reads = await readsOf(db, asked)
    expect(reads).toHaveLength(2)
    for (const read of reads) expect(read).toMatch(/transactions_(watched|by_status)/)
  })

  test("a brand finds one unit of a collection by external ID without reading the others", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { collection_id, organization_id } = scene
    await insertSome(db, 2_000, (tx, numbers) =>
      tx.insert(units).values(
        numbers.map((number) => ({
          ...unitRow(scene, { collection_id, external_id: `item-${number}` }),
          // Equally many with each ownership status, so that the planner takes none for rare.
          ...(number % 3 > 0 && { token_status: "active" as const, serial: number + 1 }),
          ...(number % 3 > 1 && { claimed: true, owner: alice }),
        })),
      ),
    )
    const caller = { organization_id } as Caller
    const page = { limit: 10, after: null }
    const found = await listUnits(watched.read, caller, { collection_id, external_id: "item-7", page })
    expect(found.rows).toHaveLength(1)
    for (const read of await readsOf(db, asked)) expect(read).toMatch(/units_external_id/)
  })

  test("a bulk pairing finishes without reading other brands' waiting units", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id, lane_id, collection_id } = scene
    const [over, other] = [newId(), newId()]
    const begun = { created_at: startOfTime, issued_at: null }
    await insertSome(db, 2_000, async (tx, numbers) => {
      const rows = numbers.map((number) => ({ id: newId(), number }))
      await tx.insert(actors).values(rows.map(({ id }) => actorRow(scene, id)))
      await tx.insert(effects).values(
        rows.map(({ id, number }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "issuing", src: "issueUnit", attempts: 0 },
          ...{ queue: laneQueue(lane_id), due_at: startOfTime, created_at: startOfTime },
          input: { collection_id, chip_id: "04AABBCCDD", bulk_pairing_id: number === 0 ? over : other },
          status: number === 0 ? ("done" as const) : ("open" as const),
        })),
      )
    })
    await db.transaction((tx) =>
      tx.insert(bulkPairings).values({ id: over, organization_id, collection_id, size: 1, ...begun }),
    )
    const settled = await db.read.select().from(effects).where(eq(effects.status, "done"))
    await inTurn(createTestContext(watched), null, async (turn) => {
      await issueUnits.afterRefusal?.(turn, settled as Effect<"issueUnit">[])
    })
    const closed = await db.read.select().from(bulkPairings).where(isNotNull(bulkPairings.issued_at))
    expect(closed.map(({ id }) => id)).toEqual([over])
    const ofEffects = (await readsOf(db, asked)).filter((read) => read.includes("effects"))
    expect(ofEffects).toHaveLength(1)
    expect(ofEffects[0]).toMatch(/effects_of_bulk/)
  })

  test("a watch on a chain without news reads at most one of the waiting authorizations", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id } = scene
    await insertSome(db, 500, async (tx, numbers) => {
      const rows = numbers.map(() => newId())
      await tx.insert(actors).values(rows.map((id) => actorRow(scene, id)))
      await tx.insert(effects).values(
        rows.map((id) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "watching", src: "watchAuthorization" },
          ...{ input: {}, status: "open" as const, queue: chainQueue(31_337), attempts: 0 },
          ...{ due_at: startOfTime, created_at: startOfTime },
        })),
      )
    })
    const block = { number: 98n, hash: "0xaa", timestamp: 0n }
    await db.transaction((tx) =>
      tx.insert(chainCursors).values({
        ...{ chain_id: 31_337, block_number: 98, block_hash: block.hash, updated_at: startOfTime },
        ...{ owners_block_number: 98, owners_block_hash: block.hash },
      }),
    )
    const headers = { follow: async () => ({ number: 100n }), at: async () => block }
    const config = { confirmation_depth: 3, finality_depth: 64 }
    const chain = { chain_id: 31_337, config, headers } as never
    expect(await watchAuthorizations(createTestContext(watched), chain, () => {})).toBe("at work")
    const read = asked.flatMap(({ text, rows }) => (text.includes('"effects"') ? rows : []))
    expect(read).toHaveLength(1)
  })

  test("a lane finds its waiting work without reading work of wallets and other lanes", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id, lane_id } = scene
    await insertSome(db, 2_000, async (tx, numbers) => {
      const rows = numbers.map((number) => ({ id: newId(), number }))
      await tx.insert(actors).values(rows.map(({ id }) => actorRow(scene, id)))
      await tx.insert(effects).values(
        rows.map(({ id, number }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "work", src: "issueUnit", input: {} },
          ...{ queue: number < 10 ? laneQueue(lane_id) : chainQueue(31_337), status: "open" as const },
          ...{ attempts: 0, due_at: startOfTime, created_at: startOfTime },
        })),
      )
    })
    const lane = { context: createTestContext(watched), signer: { lane_id }, jobs } as never
    expect(await waitingWork(lane)).toHaveLength(10)
    const reads = await readsOf(db, asked)
    expect(reads.filter((read) => read.includes("effects_waiting"))).not.toEqual([])
    expect(reads.filter((read) => /effects_(open|by_status)/.test(read))).toEqual([])
  })

  test("a lane plans the first of its waiting work without reading the rest", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id, lane_id } = scene
    const [one, other] = [newId(), newId()]
    await insertSome(db, 6_000, async (tx, numbers) => {
      const rows = numbers.map((number) => ({ id: newId(), number }))
      await tx.insert(actors).values(rows.map(({ id }) => actorRow(scene, id)))
      await tx.insert(effects).values(
        rows.map(({ id, number }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "work", src: "issueUnit", attempts: 0 },
          ...{ queue: laneQueue(lane_id), status: "open" as const },
          ...{ due_at: startOfTime, created_at: startOfTime },
          input: { collection_id: number === 4_321 ? other : one },
        })),
      )
    })
    const lane = { context: createTestContext(watched), signer: { lane_id }, jobs } as never
    const waiting = (await waitingWork(lane)) as Effect<"issueUnit">[]
    expect(waiting).toHaveLength(1_600)
    // The first of another collection waits behind nothing.
    expect(waiting.at(-1)?.input.collection_id).toBe(other)
    if (db.engine === "postgres") await db.read.ask({ text: "analyze" }, [])
    for (const each of asked) {
      expect((await rowsRead(db, each, "effects_waiting")) ?? 0).toBeLessThan(2_500)
      expect((await explained(db, each)).join()).not.toMatch(/effects_open/)
    }
  }, 60_000)

  test("a lane takes waiting work in turn, however little of it is read", async () => {
    const { db, scene } = await openWatched()
    const { lane_id } = scene
    const [busy, unknown, wide, small] = [scene.organization_id, null, newId(), newId()]
    await db.transaction((tx) => tx.insert(organizations).values([wide, small].map(organizationRow)))
    const lines = [
      // One collection of a brand has more than all others together; another brand has little of many kinds.
      ...[line(busy, "issueUnit", 1_700), line(busy, "relayClaim", 40), line(unknown, "issueUnit", 60)],
      ...Array.from({ length: 150 }, () => line(wide, "issueUnit", 3)),
      ...[line(wide, "relayClaim", 200), line(small, "replaceChip", 20), line(small, "issueUnit", 30)],
    ]
    const rows = lines
      .flat()
      .map((each, index) => ({ ...each, at: (index * 7_919) % 2_500 }))
      .sort((first, second) => first.at - second.at)
      .map((each) => ({ ...each, id: newId() }))
    expect(rows.length).toBe(2_500)
    await insertSome(db, rows.length, async (tx, numbers) => {
      const some = numbers.map((number) => rows[number] as (typeof rows)[number])
      await tx.insert(actors).values(some.map(({ id }) => actorRow(scene, id)))
      await tx.insert(effects).values(
        some.map(({ id, organization_id, src, collection_id }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "work", src, input: { collection_id } },
          ...{ status: "open" as const, queue: laneQueue(lane_id), attempts: 0 },
          ...{ due_at: startOfTime, created_at: startOfTime },
        })),
      )
    })
    const lane = { context: createTestContext(db), signer: { lane_id }, jobs } as never
    const read = (await waitingWork(lane)).map(({ id }) => id)
    expect(read).toEqual(firstInTurn(rows, 1_600))
  }, 60_000)

  test("stuck work is listed without reading what wallets may still send or all that has stopped", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id } = scene
    const now = new Date(startOfTime.getTime() + 3_600_000)
    const inMinutes = (minutes: number) => new Date(now.getTime() + minutes * 60_000).toISOString()
    await insertSome(db, 2_500, async (tx, numbers) => {
      const rows = numbers.map((number) => ({ id: newId(), number }))
      const stopped = { state: "pending.stopped" }
      await tx.insert(actors).values(rows.map(({ id }) => ({ ...actorRow(scene, id), ...stopped })))
      await tx.insert(effects).values(
        rows.map(({ id, number }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "watching", src: "watchAuthorization" },
          ...{ queue: chainQueue(31_337), status: "open" as const, attempts: 0 },
          ...{ due_at: startOfTime, created_at: startOfTime },
          input: { chain_id: 31_337, deadline_at: inMinutes(number === 2_001 ? -10 : 10) },
          last_error: number === 2_002 ? "no provider answers" : null,
        })),
      )
    })
    const stuck = await findStuck(watched.read, now)
    const watching = stuck.filter(({ effect_id }) => effect_id !== null)
    expect(watching.map(({ reason }) => reason.endsWith("no provider answers")).sort()).toEqual([false, true])
    expect(stuck).toHaveLength(mostStuck + 2)
    expect(Math.max(...asked.map(({ rows }) => rows.length))).toBe(mostStuck)
    const ofEffects = asked.filter(({ text }) => text.includes('"effects"'))
    const reads = await readsOf(db, ofEffects)
    expect(reads.filter((read) => read.includes("effects_by_status"))).toEqual([])
    expect(reads.filter((read) => read.includes("effects_watched_until"))).toHaveLength(1)
    for (const each of ofEffects)
      expect((await rowsRead(db, each, "effects_watched_until")) ?? 0).toBeLessThan(3)
  }, 60_000)

  test("open work is counted from indexes alone", async () => {
    const { db, watched, asked, scene } = await openWatched()
    const { organization_id, lane_id } = scene
    await insertSome(db, 4_000, async (tx, numbers) => {
      const rows = numbers.map((number) => ({ id: newId(), number }))
      await tx.insert(actors).values(rows.map(({ id }) => actorRow(scene, id)))
      await tx.insert(effects).values(
        rows.map(({ id, number }) => ({
          ...{ id, actor_id: id, organization_id, invoke_id: "work", src: "issueUnit", input: {} },
          ...{ queue: laneQueue(lane_id), status: number < 1_000 ? ("open" as const) : ("done" as const) },
          ...{ attempts: 0, due_at: startOfTime, created_at: startOfTime },
        })),
      )
    })
    const context = createTestContext(watched)
    const told = await renderMetrics({ context, chains: new Map() } as never, null)
    expect(told).toContain('service_effects_open{src="issueUnit"} 1000')
    const { lanes } = await readChainStatus(context)
    expect(lanes.find(({ id }) => id === lane_id)?.waiting_effects).toBe(1_000)
    // An index-only scan needs rows that are visible to all transactions.
    if (db.engine === "postgres") await db.read.ask({ text: "vacuum" }, [])
    const readsFor = (param: string) =>
      readsOf(
        db,
        asked.filter(({ params }) => params.includes(param)),
      )
    const ofKind = await readsFor("issueUnit")
    const ofLane = await readsFor(laneQueue(lane_id))
    expect(ofKind.join()).toMatch(/(COVERING INDEX|Index Only Scan) effects_open_by_kind/)
    expect(ofLane.join()).toMatch(/effects_waiting/)
    expect([...ofKind, ...ofLane]).toHaveLength(2)
  }, 60_000)

  test("an issuance is planned without reading others' work in flight through the desk", async () => {
    const { db, scene } = await openWatched()
    const { organization_id, lane_id, collection_id } = scene
    const unit_id = newId()
    const input = { collection_id, chip_id: "04AABBCCDD", bulk_pairing_id: null }
    const own = encodeIssue(2, { first: 7, chip_ids: ["04AABBCCEE"] }, { asCode: false })
    const run = encodeRun([
      { to: desk, data: unreadable },
      { to: contract, data: own },
    ])
    await db.transaction(async (tx) => {
      await tx.update(collections).set({ address: contract })
      await tx.insert(transactions).values({ ...sentRow(lane_id, 0), status: "sent", to: desk, call: run })
      await tx.insert(actors).values(actorRow(scene, unit_id))
      await tx.insert(effects).values({
        ...{ id: newId(), actor_id: unit_id, organization_id, invoke_id: "issuing", src: "issueUnit", input },
        ...{ status: "open", queue: laneQueue(lane_id), attempts: 0 },
        ...{ due_at: startOfTime, created_at: startOfTime },
      })
    })
    const waiting = (await db.read.select().from(effects)) as [Effect<"issueUnit">]
    // Its own serials were returned, and the work in flight with them has to fail first.
    expect(await issueUnits.plan({} as never, db.read, waiting)).toEqual({ do: "wait", effects: waiting })
  })
})

test("on sqlite no statement is cached for each length of a list of values", async () => {
  const folder = mkdtempSync(join(tmpdir(), "long-life-"))
  const prepare = Connection.prototype.prepare
  const kept = new Set<object>()
  Connection.prototype.prepare = function (this: Connection, ...asked: Parameters<typeof prepare>) {
    const statement = prepare.apply(this, asked)
    const finalize = statement.finalize.bind(statement)
    kept.add(statement)
    statement.finalize = () => {
      kept.delete(statement)
      finalize()
    }
    return statement
  } as typeof prepare
  const db = await openDatabase(`sqlite:${join(folder, "service.db")}`)
  try {
    await migrate(db, startOfTime)
    const before = kept.size
    for (let listed = 1; listed <= 1_000; listed++) {
      const ids = Array.from({ length: listed }, newId)
      const rows = db.read.select({ id: effects.id }).from(effects).where(inArray(effects.id, ids))
      expect(await rows).toEqual([])
    }
    expect(kept.size - before).toBeLessThan(300)
  } finally {
    Connection.prototype.prepare = prepare
    await db.close()
    rmSync(folder, { recursive: true })
  }
  expect(kept.size).toBe(0)
}, 60_000)

const contract = alice as Address
const desk = getAddress(`0x${"de".repeat(20)}`)
/** What takes time to read, or cannot be read. */
const unreadable = "0x"

function sentRow(lane_id: string, nonce: number): typeof transactions.$inferInsert {
  return {
    ...{ id: newId(), lane_id, chain_id: 31_337, kind: "issueUnit", nonce, to: "0x01", call: "0x" },
    ...{ gas: 1, max_fee_per_gas: "1", max_priority_fee_per_gas: "1", status: "final" },
    ...{ created_at: startOfTime, updated_at: startOfTime },
  }
}

function actorRow({ organization_id }: Scene, id: string): typeof actors.$inferInsert {
  return {
    ...{ id, machine: "unit-token", machine_version: 1, organization_id, snapshot: {}, version: 1 },
    ...{ status: "pending", state: "pending.issuing", created_at: startOfTime, updated_at: startOfTime },
  }
}

type InLine = { organization_id: string | null; src: string; collection_id: string }

/** This many effects of one kind and collection. */
function line(organization_id: string | null, src: string, length: number): InLine[] {
  const collection_id = newId()
  return Array.from({ length }, () => ({ organization_id, src, collection_id }))
}

/** The IDs of the effects whose turn comes first, oldest first, found by sorting all of them. */
function firstInTurn(rows: (InLine & { id: string })[], most: number): string[] {
  const inLine = [...Map.groupBy(rows, ({ collection_id }) => collection_id).values()].flatMap((own) =>
    own.map((row, line_place) => ({ ...row, line_place })),
  )
  const inTurn = [...Map.groupBy(inLine, ({ organization_id }) => organization_id).values()].flatMap((own) =>
    own
      .sort(
        (one, other) =>
          urgencyOf(one.src) - urgencyOf(other.src) ||
          one.line_place - other.line_place ||
          (one.id < other.id ? -1 : 1),
      )
      .map((row, place) => ({ ...row, place })),
  )
  return inTurn
    .sort((one, other) => one.place - other.place || (one.id < other.id ? -1 : 1))
    .slice(0, most)
    .map(({ id }) => id)
    .sort()
}

function organizationRow(id: string): typeof organizations.$inferInsert {
  return { id, name: "A brand", allowed_chain_ids: [], cors_origins: [], created_at: startOfTime }
}

/** Inserts rows numbered from 0. */
async function insertSome(
  db: Database,
  rows: number,
  insert: (tx: Queries, numbers: number[]) => PromiseLike<unknown>,
): Promise<void> {
  for (let first = 0; first < rows; first += rowsAtOnce) {
    const numbers = Array.from({ length: rowsAtOnce }, (_, index) => first + index)
    await db.transaction(async (tx) => {
      await insert(tx, numbers)
    })
  }
}

const rowsAtOnce = 500
