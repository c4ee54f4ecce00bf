import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { and, asc, eq, gt, sql } from "drizzle-orm"
import { events } from "../../src/db/event-schema.ts"
import { numberEvents } from "../../src/engine/events/numbering.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { eventsAfter } from "../../src/resources/events/service.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, type OpenService, openService } from "../harness/services.ts"

// Sixteen writers in three processes. FEED_EVENTS sets how many events they write: 1000000 takes about 15 minutes.

const wanted = Number(process.env.FEED_EVENTS ?? 1_600)
const writersOf = [6, 5, 5]
const writers = writersOf.reduce((sum, each) => sum + each)
const ofEach = wanted / writers
const isLong = wanted > 100_000
const atOnce = isLong ? 100 : 2
const pages = isLong ? ([100, 500, 1_000] as const) : ([7, 100, 1_000] as const)

/** The events that a writer commits. */
const kept = Array.from({ length: ofEach }, (_, number) => number).filter(
  (number) => Math.floor(number / atOnce) % 13 !== 5,
)

describe.each(engines)("on $name", (engine) => {
  let service: OpenService
  let caller: Caller
  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
  }, 60_000)
  afterAll(() => service.close())

  test(
    "readers next to sixteen writers in three processes see each event once, and each writer's in order",
    async () => {
      const { organization_id } = caller
      const { promise: haveSkipped, resolve: skip } = Promise.withResolvers<void>()
      // SQLite has one writer, so there its IDs are in commit order.
      const late = engine.name === "postgres" ? await commitLate(haveSkipped) : null
      const order = { url: service.database_url, organization_id, events: ofEach, at_once: atOnce }
      const children = writersOf.map((writers) =>
        Bun.spawn(
          [process.execPath, join(import.meta.dir, "write-events.ts"), JSON.stringify({ ...order, writers })],
          { stderr: "inherit" },
        ),
      )
      let isOver = false
      const written = Promise.all([late?.committed, ...children.map(({ exited }) => exited)]).then(
        ([, ...codes]) => {
          isOver = true
          expect(codes).toEqual(children.map(() => 0))
        },
      )
      // Each polls on its own, and all of them number what they find.
      const [small, usual, large, skipping] = await Promise.all([
        read(pages[0], feed(), () => isOver),
        read(pages[1], feed(), () => isOver),
        read(pages[2], feed(), () => isOver),
        read(100, byIds(skip), () => isOver),
      ])
      await written
      const others = (noted: Noted[]) => noted.filter(({ unit_id }) => unit_id !== late?.unit_id)
      expect([small, usual, large].map(others).map(faultsOf)).toEqual([[], [], []])
      const metLate = (noted: Noted[]) => noted.length - others(noted).length
      if (late) expect([small, usual, large, skipping].map(metLate)).toEqual([1, 1, 1, 0])
    },
    isLong ? 3_600_000 : 120_000,
  )

  /** Reads from a position, assigning positions itself. */
  function feed(): ReadOn {
    let position = 0
    return async (_last, limit, isLast) => {
      await numberEvents(service.context, isLast ? null : caller.organization_id)
      const rows = await eventsAfter(service.context.db.read, caller, { position, limit })
      position = rows.at(-1)?.position ?? position
      return rows
    }
  }

  /**
   * The control: what a reader that continues after the greatest ID it has seen would see. Calls `skip` once it has seen
   * an event.
   */
  function byIds(skip: () => void): ReadOn {
    return async (last, limit) => {
      if (last) skip()
      return await service.context.db.read
        .select({ id: events.id, unit_id: events.unit_id, data: events.data })
        .from(events)
        .where(and(eq(events.organization_id, caller.organization_id), last && gt(events.id, last.id)))
        .orderBy(asc(events.id))
        .limit(limit)
    }
  }

  /** Records an event before all others and commits it when it may. */
  async function commitLate(mayCommit: Promise<void>) {
    const unit_id = newId()
    const { promise: isRecorded, resolve: recorded } = Promise.withResolvers<void>()
    const committed = inTurn(
      service.context,
      null,
      async (turn) => {
        await turn.tx.execute(sql`set local idle_in_transaction_session_timeout = 0`)
        await recordEvent(turn, {
          ...{ type: "unit.created", organization_id: caller.organization_id, unit_id, collection_id: null },
          ...{ is_test: false, data: { number: 0 }, endpoint_id: null },
        })
        recorded()
        await mayCommit
      },
      "read committed alone",
    )
    await Promise.race([isRecorded, committed])
    return { unit_id, committed }
  }
})

type Seen = { id: string; unit_id: string | null; data: Record<string, unknown> }
type ReadOn = (last: Seen | undefined, limit: number, isLast: boolean) => Promise<Seen[]>

/** What a reader keeps of each event. */
type Noted = { unit_id: string | null; number: number }

async function read(limit: number, readOn: ReadOn, isOver: () => boolean): Promise<Noted[]> {
  const noted: Noted[] = []
  let last: Seen | undefined
  for (;;) {
    const isLast = isOver()
    const rows = await readOn(last, limit, isLast)
    for (const { unit_id, data } of rows) noted.push({ unit_id, number: Number(data.number) })
    last = rows.at(-1) ?? last
    if (rows.length === 0 && isLast) return noted
    if (rows.length === 0) await Bun.sleep(1)
  }
}

/** Lists events that were skipped, seen twice or seen out of their writer's order. */
function faultsOf(noted: Noted[]): string[] {
  const faults: string[] = []
  const ofUnits = Map.groupBy(noted, ({ unit_id }) => unit_id)
  if (ofUnits.size !== writers) faults.push(`met ${ofUnits.size} writers of ${writers}`)
  for (const [unitId, ofUnit] of ofUnits) {
    const wrong = kept.findIndex((number, index) => ofUnit[index]?.number !== number)
    if (wrong >= 0) faults.push(`unit ${unitId}: met ${ofUnit[wrong]?.number} for ${kept[wrong]}`)
    if (ofUnit.length > kept.length) faults.push(`unit ${unitId}: met ${ofUnit.length} of ${kept.length}`)
  }
  return faults
}
