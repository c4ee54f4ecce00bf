import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { AsyncLocalStorage } from "node:async_hooks"
import type { Turn } from "../../src/db/turn.ts"
import { numberEvents } from "../../src/engine/events/numbering.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { eventsAfter } from "../../src/resources/events/service.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  besideOf,
  createCaller,
  importedChip,
  newUnit,
  type OpenService,
  openService,
  pair,
  pairedTestChip,
} from "../harness/services.ts"

// A group commit of Postgres may begin before another process changes a chip, and tap that chip afterwards.
describe.each(engines.filter(({ name }) => name === "postgres"))(
  "on $name, the feed has a tap after",
  (engine) => {
    let service: OpenService
    let caller: Caller
    /** As another process sees the same service. */
    let beside: Context
    beforeAll(async () => {
      service = await openService(engine)
      beside = besideOf(service)
      caller = await createCaller(service)
    })
    afterAll(async () => {
      await beside.db.close()
      await service.close()
    })

    test("the tap before it, which another process recorded in this instant", async () => {
      const { chip_id, unit } = await pairedTestChip(service, caller)
      const [first, second] = [await nextTap(chip_id), await nextTap(chip_id)]
      await tapInGroupAfter(second, () => inTurn(beside, null, tapping(first), "read committed"))
      const told = await eventsOf(unit?.id)
      expect(told.map(({ data }) => data.counter).slice(-2)).toEqual([1, 2])
    })

    test("the pairing of its chip, which another process recorded in this instant", async () => {
      const { chip_id, tag } = await importedChip(service, caller)
      const { id: unit_id } = await newUnit(service, caller, await activeCollection(service, caller))
      const paired = { unit_id, chip_id, ...emitSun(tag, 1) }
      const elsewhere = {
        ...service,
        turn: <T>(work: (turn: Turn) => Promise<T>) => inTurn(beside, null, work),
      }
      await tapInGroupAfter({ chip_id, ...emitSun(tag, 2) }, () => pair(elsewhere, caller, paired))
      const told = await eventsOf(unit_id)
      expect(told.map(({ type }) => type).slice(-2)).toEqual(["chip.paired", "tap.recorded"])
    })

    type Tap = { chip_id: string; e: string }

    async function nextTap(chip_id: string): Promise<Tap> {
      return await service.turn((turn) => createTestTap(turn, service.secret, caller, { chip_id }))
    }

    function tapping(tap: Tap) {
      return (turn: Turn) => createTap(turn, service.secret, caller, tap)
    }

    /** Records a tap in a group commit that has already written something when `before` begins. */
    async function tapInGroupAfter(tap: Tap, before: () => Promise<unknown>): Promise<void> {
      const outside = AsyncLocalStorage.snapshot()
      const other = await nextTap((await pairedTestChip(service, caller)).chip_id)
      const { promise: hasWritten, resolve: written } = Promise.withResolvers<void>()
      let isDone: Promise<unknown> | undefined
      const writing = async (turn: Turn) => {
        await tapping(other)(turn)
        written()
      }
      const following = async (turn: Turn) => {
        await hasWritten
        isDone ??= outside(before)
        await isDone
        await tapping(tap)(turn)
      }
      const group = [writing, following]
      await Promise.all(group.map((work) => inTurn(service.context, null, work, "read committed")))
    }

    async function eventsOf(unitId: string | undefined) {
      await numberEvents(service.context, null)
      const told = await eventsAfter(service.context.db.read, caller, { position: 0, limit: 100 })
      return told.filter(({ unit_id }) => unit_id === unitId)
    }
  },
)
