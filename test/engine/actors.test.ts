import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import fc from "fast-check"
import { assign, setup } from "xstate"
import { effect } from "../../machines/effect.ts"
import type { Database } from "../../src/db/database.ts"
import {
  actorEvents,
  actors,
  actorTimers,
  chipReplacements,
  chips,
  claims,
  collections,
  effects,
  type JournalEvent,
  sessionTokens,
  taps,
  transfers,
  units,
} from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { usageCounts } from "../../src/db/usage-schema.ts"
import {
  type Lifecycle,
  lifecycle,
  lifecycles,
  type MachineName,
} from "../../src/engine/actors/lifecycles.ts"
import {
  catchUp,
  findActor,
  fireDueTimers,
  replay,
  sendEvent,
  settleEffect,
  startActor,
} from "../../src/engine/actors/runtime.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { fireTimers } from "../../workers/watches/fire-timers.ts"
import { engines, useEngine } from "../harness/engines.ts"
import {
  chipReplacementRow,
  chipRow,
  claimRow,
  createTestContext,
  insertScene,
  type Scene,
  sessionTokenRow,
  startOfTime,
  type TestContext,
  tapRow,
  transferRow,
  unitRow,
} from "../harness/scene.ts"

/**
 * What none of the six machines combines: timers next to an effect, and a state that is left while its effect is open.
 */
const errandMachine = setup({
  types: {
    context: {} as { label: string; heard: string[] },
    events: {} as { type: "NOTE"; text: string } | { type: "CANCEL" } | { type: "SHOUT" },
    input: {} as { label: string },
  },
  actors: { runErrand: effect<{ found: string }, { label: string }>() },
  actions: {
    shout: () => {},
  },
}).createMachine({
  id: "errand",
  context: ({ input }) => ({ label: input?.label ?? "", heard: [] }),
  initial: "running",
  states: {
    running: {
      invoke: {
        id: "runErrand",
        src: "runErrand",
        input: ({ context }) => ({ label: context.label }),
        onDone: "found",
        onError: "lost",
      },
      after: {
        // In alphabetical order the second would come first.
        2000: { actions: assign({ heard: ({ context }) => [...context.heard, "2 s"] }) },
        10000: { actions: assign({ heard: ({ context }) => [...context.heard, "10 s"] }) },
        60000: "late",
      },
      on: {
        NOTE: { actions: assign({ heard: ({ context, event }) => [...context.heard, event.text] }) },
        CANCEL: "cancelled",
        SHOUT: { actions: "shout" },
      },
    },
    found: { type: "final" },
    lost: { type: "final" },
    late: {},
    cancelled: {},
  },
})

const registry = lifecycles as Record<string, Lifecycle>
const errand = "errand" as MachineName

beforeAll(() => {
  registry.errand = lifecycle({ machine: errandMachine, journalled: true, project: async () => {} })
})

afterAll(() => {
  delete registry.errand
})

const transaction_hash = "0x01"
const reverted = { error: { code: "chain.reverted", message: "The chain refused it." } }

const authorization = {
  chain_id: 31_337,
  contract_address: "0x02",
  serial: 1,
  authorization_digest: "0x03",
  authorization_nonce: 0,
  deadline_at: "2030-01-01T00:30:00.000Z",
}

/** For each journalled machine: how an actor is started, its own events, and the possible results of its effect. */
const journalled: Record<
  string,
  {
    begin: (turn: Turn, scene: Scene) => Promise<string>
    events: fc.Arbitrary<JournalEvent>
    output: fc.Arbitrary<Record<string, unknown>>
  }
> = {
  "unit-token": {
    begin: startUnit,
    events: fc.oneof(
      fc.record({
        type: fc.constant("PAIRED"),
        chip_id: fc.string(),
        bulk_pairing_id: fc.option(fc.uuid()),
      }),
      fc.record({ type: fc.constant("CHIP_REPLACED"), chip_id: fc.string() }),
      fc.constantFrom({ type: "RETRY" }, { type: "CLAIMED" }),
    ),
    output: fc.record({ serial: fc.nat(), transaction_hash: fc.string() }),
  },
  "collection-contract": {
    async begin(turn, { collection_id, lane_id, organization_id }) {
      const id = newId()
      const input = { collection_id, lane_id }
      await startActor(turn, { id, machine: "collection-contract", organization_id, input })
      return id
    },
    events: fc.constant({ type: "RETRY" }),
    output: fc.record({ transaction_hash: fc.string() }),
  },
  claim: {
    async begin(turn, scene) {
      const own = { ...scene, unit_id: await startUnit(turn, scene) }
      return await startClaim(turn, own, relayedClaim(own))
    },
    events: fc.constant({ type: "CLAIMED" }),
    output: fc.record({ transaction_hash: fc.string() }),
  },
  transfer: {
    begin: startTransfer,
    events: fc.constant({ type: "SUBMITTED" }),
    output: fc.oneof(
      fc.record({ outcome: fc.constantFrom("used", "superseded"), transaction_hash: fc.string() }),
      fc.constant({ outcome: "expired" }),
    ),
  },
  "chip-replacement": {
    async begin(turn, scene) {
      const own = { ...scene, unit_id: await startUnit(turn, scene) }
      return (await startReplacement(turn, own)).id
    },
    events: fc.record({ type: fc.constant("SUBMITTED"), transaction_hash: fc.string() }),
    output: fc.record({ transaction_hash: fc.string() }),
  },
}

for (const engine of engines)
  describe(engine.name, () => {
    const databases = useEngine(engine)

    /** A new scene with a clock of its own; every turn belongs to the request `req_1`. */
    async function open() {
      const db = await databases.openShared()
      const context = createTestContext(db)
      const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, "req_1", work)
      const scene = await db.transaction(insertScene)
      return { db, context, turn, scene }
    }

    async function openWithErrand() {
      const { db, context, turn, scene } = await open()
      const id = newId()
      await turn((turn) => startErrand(turn, scene, id))
      context.woken.length = 0
      return { db, context, turn, scene, id }
    }

    describe("an actor that starts", () => {
      test("is stored with its first state, its effect and its timers", async () => {
        const { db, id } = await openWithErrand()
        expect(await actorIn(db, id)).toMatchObject({
          machine: "errand",
          machine_version: 1,
          status: "running",
          version: 1,
        })
        expect(await effectsIn(db, id)).toMatchObject([
          {
            invoke_id: "runErrand",
            src: "runErrand",
            input: { label: "milk" },
            status: "open",
            queue: "runErrand",
            attempts: 0,
            due_at: startOfTime,
            closed_at: null,
          },
        ])
        expect((await timersIn(db, id)).map(({ due_at }) => due_at)).toEqual([
          later(2_000),
          later(10_000),
          later(60_000),
        ])
      })

      test("writes its status to the row that it governs", async () => {
        const { db, turn, scene } = await open()
        const { collection_id, lane_id, organization_id } = scene
        const answer = await turn((turn) =>
          startActor(turn, {
            id: collection_id,
            machine: "collection-contract",
            organization_id,
            input: { collection_id, lane_id },
          }),
        )
        expect(answer).toEqual({ status: "deploying", state: "deploying" })
        expect(await statusIn(db, collections, collection_id)).toBe("deploying")
      })

      test("in a transaction that is rolled back leaves no rows and wakes no queue", async () => {
        const { db, context, turn, scene } = await open()
        const id = newId()
        const started = turn(async (turn) => {
          await startErrand(turn, scene, id)
          throw new Error("no")
        })
        await expect(started).rejects.toThrow("no")
        expect(await actorIn(db, id)).toBeUndefined()
        expect([await effectsIn(db, id), await timersIn(db, id), await journalIn(db, id)]).toEqual([
          [],
          [],
          [],
        ])
        expect(context.woken).toEqual([])
      })

      test("wakes its effect's queue after the commit, not before", async () => {
        const { db, context, turn, scene } = await open()
        const seen: Promise<unknown[]>[] = []
        const id = newId()
        context.wake = () => seen.push(effectsIn(db, id))
        await turn(async (turn) => {
          await startErrand(turn, scene, id)
          expect(seen).toEqual([])
        })
        const [rows] = await Promise.all(seen)
        expect(rows?.length).toBe(1)
      })

      test("puts work for a lane into the lane's queue, and a watch into the chain's", async () => {
        const { db, turn, scene } = await open()
        const relayed = await turn((turn) => startClaim(turn, scene, relayedClaim(scene)))
        const other = { ...scene, unit_id: await turn((turn) => startUnit(turn, scene)) }
        const watched = await turn((turn) => startClaim(turn, other, watchedClaim(other)))
        const queues = [await effectsIn(db, relayed), await effectsIn(db, watched)]
          .flat()
          .map(({ queue }) => queue)
        expect(queues).toEqual([`lane:${scene.lane_id}`, "chain:31337"])
      })
    })

    describe("an event", () => {
      test("that the state allows changes it", async () => {
        const { db, turn, id } = await openWithErrand()
        const answer = await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        expect(answer).toEqual({ status: "cancelled", state: "cancelled", accepted: true })
        expect(await actorIn(db, id)).toMatchObject({ status: "cancelled", version: 2 })
      })

      test("that the state does not allow changes nothing and is not journalled", async () => {
        const { db, turn, id } = await openWithErrand()
        await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        const before = await everythingOf(db, id)
        const answer = await turn((turn) => sendEvent(turn, id, { type: "NOTE", text: "too late" }))
        expect(answer).toEqual({ status: "cancelled", state: "cancelled", accepted: false })
        expect(await everythingOf(db, id)).toEqual(before)
      })

      test("for an unknown actor is an error", async () => {
        const { turn } = await open()
        const id = newId()
        await expect(turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))).rejects.toThrow(
          `there is no actor ${id} for CANCEL`,
        )
      })

      test("sent twenty times concurrently is applied twenty times, numbered without gaps", async () => {
        const { db, turn, id } = await openWithErrand()
        await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            turn((turn) => sendEvent(turn, id, { type: "NOTE", text: `${index}` })),
          ),
        )
        expect((await heardBy(db, id)).length).toBe(20)
        expect((await journalIn(db, id)).map(({ number }) => number)).toEqual(
          Array.from({ length: 21 }, (_, index) => index + 1),
        )
      })

      test("that the state allows only once is accepted once if it is sent twice concurrently", async () => {
        const { turn, id } = await openWithErrand()
        const answers = await Promise.all(
          [1, 2].map(() => turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))),
        )
        expect(answers.map(({ accepted }) => accepted).sort()).toEqual([false, true])
      })

      test("whose machine requests an unsupported action fails and leaves no rows", async () => {
        const { db, turn, id } = await openWithErrand()
        const before = await everythingOf(db, id)
        await expect(turn((turn) => sendEvent(turn, id, { type: "SHOUT" }))).rejects.toThrow(
          "a machine requested shout, which the runtime does not support",
        )
        expect(await everythingOf(db, id)).toEqual(before)
      })

      test("that is an unhandled error fails and leaves no rows", async () => {
        const { db, turn, id } = await openWithErrand()
        await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        const before = await everythingOf(db, id)
        const stray = { type: "xstate.error.actor.runErrand", error: reverted.error }
        await expect(turn((turn) => sendEvent(turn, id, stray))).rejects.toThrow("has no transition for")
        expect(await everythingOf(db, id)).toEqual(before)
      })
    })

    describe("an effect", () => {
      test("that is done is closed and advances its actor", async () => {
        const { db, context, turn, id } = await openWithErrand()
        context.advance(500)
        const effectId = await openEffectOf(db, id)
        expect(await turn((turn) => settleEffect(turn, effectId, { output: { found: "milk" } }))).toBe(true)
        expect((await actorIn(db, id))?.status).toBe("found")
        const [effect] = await effectsIn(db, id)
        expect(effect).toMatchObject({ status: "done", last_error: null })
        expect(effect?.closed_at).toEqual(later(500))
      })

      test("that failed is closed with its reason and advances its actor", async () => {
        const { db, turn, id } = await openWithErrand()
        const effectId = await openEffectOf(db, id)
        expect(await turn((turn) => settleEffect(turn, effectId, reverted))).toBe(true)
        expect((await actorIn(db, id))?.status).toBe("lost")
        const [effect] = await effectsIn(db, id)
        expect(effect).toMatchObject({ status: "failed", last_error: reverted.error.message })
        expect(effect?.closed_at).toEqual(startOfTime)
      })

      test("settled twice concurrently is applied once", async () => {
        const { db, turn, id } = await openWithErrand()
        const effectId = await openEffectOf(db, id)
        const answers = await Promise.all([
          turn((turn) => settleEffect(turn, effectId, { output: { found: "milk" } })),
          turn((turn) => settleEffect(turn, effectId, reverted)),
        ])
        expect(answers.sort()).toEqual([false, true])
        expect((await journalIn(db, id)).length).toBe(2)
      })

      test("is cancelled when its state is left, and its late result is dropped", async () => {
        const { db, turn, id } = await openWithErrand()
        const effectId = await openEffectOf(db, id)
        await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        const before = await everythingOf(db, id)
        expect(before.effects.map(({ status, closed_at }) => [status, closed_at])).toEqual([
          ["cancelled", startOfTime],
        ])
        for (const result of [{ output: { found: "milk" } }, reverted])
          expect(await turn((turn) => settleEffect(turn, effectId, result))).toBe(false)
        expect(await everythingOf(db, id)).toEqual(before)
      })

      test("whose result arrives after its actor timed out is dropped, even if it is an error", async () => {
        const { db, context, turn, id } = await openWithErrand()
        const effectId = await openEffectOf(db, id)
        context.advance(60_000)
        expect(await turn((turn) => settleEffect(turn, effectId, reverted))).toBe(false)
        expect((await actorIn(db, id))?.status).toBe("late")
        expect(await effectsIn(db, id)).toMatchObject([{ status: "cancelled" }])
      })

      test("that does not exist cannot be settled", async () => {
        const { turn } = await open()
        expect(await turn((turn) => settleEffect(turn, newId(), reverted))).toBe(false)
      })

      test("is requested again when its state is entered again", async () => {
        const { db, turn, scene } = await open()
        const { collection_id, lane_id, organization_id } = scene
        const input = { collection_id, lane_id }
        await turn((turn) =>
          startActor(turn, { id: collection_id, machine: "collection-contract", organization_id, input }),
        )
        const first = await openEffectOf(db, collection_id)
        await turn((turn) => settleEffect(turn, first, reverted))
        expect(await statusIn(db, collections, collection_id)).toBe("failed")
        await turn((turn) => sendEvent(turn, collection_id, { type: "RETRY" }))
        expect(await statusIn(db, collections, collection_id)).toBe("deploying")
        const second = await openEffectOf(db, collection_id)
        expect(second).not.toBe(first)
        await turn((turn) => settleEffect(turn, second, { output: { transaction_hash } }))
        expect(await statusIn(db, collections, collection_id)).toBe("active")
      })
    })

    describe("a timer", () => {
      test("does nothing before it is due", async () => {
        const { db, context, turn, id } = await openWithErrand()
        context.advance(1_999)
        expect(await turn((turn) => fireDueTimers(turn, id))).toBe(0)
        expect((await actorIn(db, id))?.version).toBe(1)
      })

      test("fires once when it is due, and is deleted", async () => {
        const { db, context, turn, id } = await openWithErrand()
        context.advance(2_000)
        expect(await turn((turn) => fireDueTimers(turn, id))).toBe(1)
        expect(await turn((turn) => fireDueTimers(turn, id))).toBe(0)
        expect(await heardBy(db, id)).toEqual(["2 s"])
      })

      test("fires after earlier ones and before any other event", async () => {
        const { db, context, turn, id } = await openWithErrand()
        context.advance(15_000)
        await turn((turn) => sendEvent(turn, id, { type: "NOTE", text: "after 15 s" }))
        expect(await heardBy(db, id)).toEqual(["2 s", "10 s", "after 15 s"])
      })

      test("is deleted when its state is left", async () => {
        const { db, turn, id } = await openWithErrand()
        await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        expect(await timersIn(db, id)).toEqual([])
      })

      test("that is due is applied before an event that arrives later", async () => {
        const { context, turn, id } = await openWithErrand()
        context.advance(60_000)
        expect(await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))).toEqual({
          status: "late",
          state: "late",
          accepted: false,
        })
      })

      test("fires even if nothing reads its actor", async () => {
        const { db, context, turn, scene, id } = await openWithErrand()
        const other = newId()
        await turn((turn) => startErrand(turn, scene, other))
        context.advance(60_000)
        await fireTimers(context)
        expect((await actorIn(db, id))?.status).toBe("late")
        expect((await actorIn(db, other))?.status).toBe("late")
        expect([await timersIn(db, id), await timersIn(db, other)]).toEqual([[], []])
      })

      test("of a session expires it to the millisecond, even if the actor was never stored", async () => {
        const { db, context, turn, scene } = await open()
        const id = await turn((turn) => insertSession(turn, scene))
        context.advance(599_999)
        await turn((turn) => catchUp(turn, id))
        expect(await statusIn(db, sessionTokens, id)).toBe("valid")
        const other = await turn((turn) => insertSession(turn, scene))
        context.advance(600_001)
        const answers = [
          await turn((turn) => sendEvent(turn, id, { type: "REVOKE" })),
          await turn((turn) => sendEvent(turn, other, { type: "REVOKE" })),
        ]
        const ended = { status: "expired", state: "expired", accepted: false }
        expect(answers).toEqual([ended, ended])
        expect(await statusIn(db, sessionTokens, id)).toBe("expired")
        expect(await statusIn(db, sessionTokens, other)).toBe("expired")
        expect([await timersIn(db, id), await timersIn(db, other)]).toEqual([[], []])
      })

      test("expires a session to the millisecond", async () => {
        const { db, context, turn, scene } = await open()
        const id = await turn((turn) => startSession(turn, scene))
        context.advance(599_999)
        await turn((turn) => fireDueTimers(turn, id))
        expect(await statusIn(db, sessionTokens, id)).toBe("valid")
        context.advance(1)
        const answer = await turn((turn) => sendEvent(turn, id, { type: "REVOKE" }))
        expect(answer).toEqual({ status: "expired", state: "expired", accepted: false })
        expect(await statusIn(db, sessionTokens, id)).toBe("expired")
      })
    })

    describe("an actor without any event", () => {
      test("is loaded as it would be stored, and stored with its first event", async () => {
        const { db, turn, scene } = await open()
        const [implied, started] = [
          await turn((turn) => insertSession(turn, scene)),
          await turn((turn) => startSession(turn, scene)),
        ]
        expect(await actorIn(db, implied)).toBeUndefined()
        const found = await findActor(db.read, implied)
        expect(found).toEqual({ ...(await actorIn(db, started)), id: implied } as never)
        expect(found?.snapshot).toEqual(
          replay("session-token", [{ type: "xstate.init", input: { ttl_seconds: 600 } }]),
        )

        const events = [implied, started].map((id) => turn((turn) => sendEvent(turn, id, { type: "REVOKE" })))
        expect(await Promise.all(events)).toEqual(
          events.map(() => ({ status: "revoked", state: "revoked", accepted: true })),
        )
        const stored = await everythingOf(db, implied)
        const { actor, ...rows } = await everythingOf(db, started)
        expect(stored).toEqual({ ...rows, actor: actor && { ...actor, id: implied } })
        expect(await findActor(db.read, implied)).toEqual(stored.actor ?? null)
        expect(await statusIn(db, sessionTokens, implied)).toBe("revoked")
      })

      test("accepts one of two mutually exclusive concurrent events", async () => {
        const { db, turn, scene } = await open()
        const id = await turn((turn) => insertSession(turn, scene))
        const answers = await Promise.all(
          Array.from({ length: 6 }, () => turn((turn) => sendEvent(turn, id, { type: "REVOKE" }))),
        )
        expect(answers.filter(({ accepted }) => accepted)).toHaveLength(1)
        expect((await actorIn(db, id))?.version).toBe(2)
      })

      test("does not exist without its row", async () => {
        const { db } = await open()
        expect(await findActor(db.read, newId())).toBeNull()
      })
    })

    describe("an actor in a final state", () => {
      test("accepts no event, not even one that its machine handles in every state", async () => {
        const { db, turn, scene } = await open()
        const { id } = await turn((turn) => startReplacement(turn, scene))
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, { output: { transaction_hash } }))
        const before = await everythingOf(db, id)
        const events = [
          { type: "SUBMITTED", transaction_hash: "0x02" },
          { type: "xstate.done.actor.replaceChip", output: { transaction_hash: "0x02" } },
          { type: "xstate.error.actor.replaceChip", error: reverted.error },
        ]
        for (const event of events)
          expect((await turn((turn) => sendEvent(turn, id, event))).accepted).toBe(false)
        expect(await everythingOf(db, id)).toEqual(before)
      })
    })

    describe("the row shows", () => {
      test("an issued unit as active, with its serial", async () => {
        const { db, context, turn, scene } = await open()
        const id = await turn((turn) => startUnit(turn, scene))
        await turn((turn) =>
          sendEvent(turn, id, { type: "PAIRED", chip_id: "0000000001", bulk_pairing_id: null }),
        )
        context.advance(1_000)
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, { output: { serial: 7, transaction_hash } }))
        const unit = await unitIn(db, id)
        expect(unit).toMatchObject({ token_status: "active", serial: 7, claimed: false })
        expect(unit?.ownership_updated_at).toEqual(later(1_000))
      })

      test("a claim that the chain confirmed as claimed, and its unit, too", async () => {
        const { db, turn, scene } = await open()
        const unit_id = await issueUnit(db, turn, scene)
        const id = await turn((turn) =>
          startClaim(turn, { ...scene, unit_id }, relayedClaim({ ...scene, unit_id })),
        )
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, { output: { transaction_hash } }))
        const [claim] = await db.read.select().from(claims).where(eq(claims.id, id))
        expect(claim).toMatchObject({ status: "claimed", transaction_hash, failure: null })
        expect(await unitIn(db, unit_id)).toMatchObject({ claimed: true })
      })

      test("a failed claim with its reason, and its unit as unclaimed", async () => {
        const { db, turn, scene } = await open()
        const unit_id = await issueUnit(db, turn, scene)
        const id = await turn((turn) =>
          startClaim(turn, { ...scene, unit_id }, relayedClaim({ ...scene, unit_id })),
        )
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, reverted))
        const [claim] = await db.read.select().from(claims).where(eq(claims.id, id))
        expect(claim).toMatchObject({ status: "failed", transaction_hash: null, failure: reverted.error })
        expect(await unitIn(db, unit_id)).toMatchObject({ claimed: false })
      })

      test("a confirmed chip replacement: the new chip is paired, with its counter unchanged", async () => {
        const { db, context, turn, scene } = await open()
        const { organization_id } = scene
        const counted = { organization_id, quota: "chips", since: startOfTime } as const
        await turn(({ tx }) => tx.insert(usageCounts).values({ ...counted, used: 1 }))
        const unit_id = await issueUnit(db, turn, scene)
        const { id, previous, next } = await turn((turn) => startReplacement(turn, { ...scene, unit_id }))
        await turn((turn) => sendEvent(turn, id, { type: "SUBMITTED", transaction_hash: "0x02" }))
        expect(await statusIn(db, chipReplacements, id)).toBe("submitted")
        context.advance(1_000)
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, { output: { transaction_hash } }))
        expect(await statusIn(db, chipReplacements, id)).toBe("confirmed")
        const [old, paired] = [await chipIn(db, previous), await chipIn(db, next)]
        expect([old?.unit_id, old?.retired_at]).toEqual([null, later(1_000)])
        expect([paired?.unit_id, paired?.reserved_for]).toEqual([unit_id, null])
        expect(paired?.paired_at).toEqual(later(1_000))
        expect(await db.read.select().from(usageCounts)).toEqual([{ ...counted, used: 1 }])
      })

      test("a failed chip replacement: the reserved chip is available again", async () => {
        const { db, turn, scene } = await open()
        const unit_id = await issueUnit(db, turn, scene)
        const { id, previous, next } = await turn((turn) => startReplacement(turn, { ...scene, unit_id }))
        const effectId = await openEffectOf(db, id)
        await turn((turn) => settleEffect(turn, effectId, reverted))
        expect(await statusIn(db, chipReplacements, id)).toBe("failed")
        expect(await chipIn(db, previous)).toMatchObject({ unit_id, retired_at: null })
        expect(await chipIn(db, next)).toMatchObject({ unit_id: null, reserved_for: null })
      })
    })

    describe("the journal", () => {
      test("records each step: number, event, from and to state, time and request", async () => {
        const { db, context, turn, id } = await openWithErrand()
        context.advance(10)
        await turn((turn) => sendEvent(turn, id, { type: "CANCEL" }))
        expect(await journalIn(db, id)).toEqual([
          {
            actor_id: id,
            number: 1,
            event: { type: "xstate.init", input: { label: "milk" } },
            from_state: null,
            to_state: "running",
            request_id: "req_1",
            at: startOfTime,
          },
          {
            actor_id: id,
            number: 2,
            event: { type: "CANCEL" },
            from_state: "running",
            to_state: "cancelled",
            request_id: "req_1",
            at: later(10),
          },
        ])
      })

      test("and the effect name the request, even if the result arrives outside any request", async () => {
        const { db, context, id } = await openWithErrand()
        const [effect] = await effectsIn(db, id)
        expect(effect?.request_id).toBe("req_1")
        const result = { output: { found: "milk" } }
        await inTurn(context, null, (turn) => settleEffect(turn, String(effect?.id), result))
        expect((await journalIn(db, id)).at(-1)).toMatchObject({ to_state: "found", request_id: "req_1" })
      })

      test("is not kept for sessions", async () => {
        const { db, turn, scene } = await open()
        const id = await turn((turn) => startSession(turn, scene))
        await turn((turn) => sendEvent(turn, id, { type: "REVOKE" }))
        expect(await journalIn(db, id)).toEqual([])
      })

      test("that does not start at the beginning is not replayed", () => {
        expect(() => replay(errand, [{ type: "CANCEL" }])).toThrow("a journal must begin with xstate.init")
      })

      for (const [name, { begin, events, output }] of Object.entries(journalled))
        test(`of any ${name} replays to the stored snapshot`, async () => {
          const { db, context, turn, scene } = await open()
          await fc.assert(
            fc.asyncProperty(stepsOf(events, output), async (steps) => {
              const id = await turn((turn) => begin(turn, scene))
              for (const step of steps) await take(db, context, id, step)
              await expectConsistent(db, name, id)
            }),
            { numRuns: engine.name === "sqlite" ? 40 : 10 },
          )
        })
    })
  })

type Step =
  | { kind: "send"; event: JournalEvent }
  | { kind: "settle"; result: { output: Record<string, unknown> } | typeof reverted }
  | { kind: "wait"; milliseconds: number }

function stepsOf(
  events: fc.Arbitrary<JournalEvent>,
  output: fc.Arbitrary<Record<string, unknown>>,
): fc.Arbitrary<Step[]> {
  // NUL and lone surrogates never get this far, and Postgres cannot store them.
  const canBeKept = (step: Step) => !/\\u0000|\\ud[89a-f]/.test(JSON.stringify(step))
  const asJson = (step: Step): Step => JSON.parse(JSON.stringify(step))
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant("send" as const), event: events }),
    fc.record({ kind: fc.constant("send" as const), event: fc.constant({ type: "UNKNOWN" }) }),
    fc.record({
      kind: fc.constant("settle" as const),
      result: fc.oneof(fc.record({ output }), fc.constant(reverted)),
    }),
    fc.record({ kind: fc.constant("wait" as const), milliseconds: fc.nat(1_000_000) }),
  )
  return fc.array(step.filter(canBeKept).map(asJson), { maxLength: 10 })
}

async function take(db: Database, context: TestContext, id: string, step: Step): Promise<void> {
  if (step.kind === "wait") return context.advance(step.milliseconds)
  if (step.kind === "send") {
    await inTurn(context, null, (turn) => sendEvent(turn, id, step.event))
    return
  }
  // The newest effect, open or closed: duplicate and late results are part of the test.
  const newest = (await effectsIn(db, id)).at(-1)
  if (newest) await inTurn(context, null, (turn) => settleEffect(turn, newest.id, step.result))
}

async function expectConsistent(db: Database, name: string, id: string): Promise<void> {
  const actor = await actorIn(db, id)
  const journal = await journalIn(db, id)
  const events = journal.map(({ event }) => event)
  expect(replay(name as MachineName, events)).toEqual(actor?.snapshot)
  expect(journal.map(({ number }) => number)).toEqual(journal.map((_, index) => index + 1))
  expect(actor?.version).toBe(journal.length)
  expect(journal.slice(1).map(({ from_state }) => from_state)).toEqual(
    journal.slice(0, -1).map(({ to_state }) => to_state),
  )
  expect(journal.at(-1)?.to_state.split(".")[0]).toBe(actor?.status ?? "")
  const snapshot = actor?.snapshot as { status: string; children: object }
  const expected = snapshot.status === "active" ? Object.keys(snapshot.children) : []
  const open = (await effectsIn(db, id)).filter(({ status }) => status === "open")
  expect(open.map(({ invoke_id }) => invoke_id)).toEqual(expected)
}

async function startErrand(turn: Turn, { organization_id }: Scene, id: string): Promise<void> {
  await startActor(turn, { id, machine: errand, organization_id, input: { label: "milk" } })
}

/** Inserts and starts a separate unit without a collection, so that any serial is available. */
async function startUnit(turn: Turn, scene: Scene): Promise<string> {
  const { collection_id, lane_id, organization_id } = scene
  const row = unitRow(scene)
  await turn.tx.insert(units).values(row)
  const input = { collection_id, lane_id }
  await startActor(turn, { id: row.id, machine: "unit-token", organization_id, input })
  return row.id
}

async function issueUnit(
  db: Database,
  turn: <T>(work: (turn: Turn) => Promise<T>) => Promise<T>,
  scene: Scene,
): Promise<string> {
  const id = await turn((turn) => startUnit(turn, scene))
  await turn((turn) => sendEvent(turn, id, { type: "PAIRED", chip_id: "0000000001", bulk_pairing_id: null }))
  const effectId = await openEffectOf(db, id)
  await turn((turn) => settleEffect(turn, effectId, { output: { serial: 1, transaction_hash } }))
  return id
}

function relayedClaim({ unit_id, lane_id }: Scene) {
  return { unit_id, recipient: "0x04", relay: { lane_id }, authorization: null }
}

function watchedClaim({ unit_id }: Scene) {
  return { unit_id, recipient: "0x04", relay: null, authorization }
}

async function startClaim(turn: Turn, scene: Scene, input: Record<string, unknown>): Promise<string> {
  const row = claimRow(scene)
  await turn.tx.insert(claims).values(row)
  await startActor(turn, { id: row.id, machine: "claim", organization_id: scene.organization_id, input })
  return row.id
}

async function startTransfer(turn: Turn, scene: Scene): Promise<string> {
  const own = { ...scene, unit_id: await startUnit(turn, scene) }
  const row = transferRow(own)
  await turn.tx.insert(transfers).values(row)
  const input = { unit_id: own.unit_id, authorization }
  await startActor(turn, { id: row.id, machine: "transfer", organization_id: scene.organization_id, input })
  return row.id
}

/** Inserts a replacement of the scene's chip by one that is reserved for it. */
async function startReplacement(turn: Turn, scene: Scene) {
  const { lane_id, organization_id, unit_id } = scene
  const previous = chipRow(scene, { unit_id, paired_at: startOfTime })
  const id = newId()
  const next = chipRow(scene, { reserved_for: id })
  await turn.tx.insert(chips).values([previous, next])
  const swap = { previous_chip_id: previous.chip_id, chip_id: next.chip_id }
  await turn.tx.insert(chipReplacements).values(chipReplacementRow(scene, swap, { id }))
  if (!(await turn.tx.select().from(actors).where(eq(actors.id, unit_id))).length) {
    const input = { collection_id: scene.collection_id, lane_id }
    await startActor(turn, { id: unit_id, machine: "unit-token", organization_id, input })
  }
  await startActor(turn, {
    id,
    machine: "chip-replacement",
    organization_id,
    input: { lane_id, unit_id, ...swap },
  })
  return { id, previous: previous.chip_id, next: next.chip_id }
}

async function startSession(turn: Turn, scene: Scene): Promise<string> {
  const id = await insertSession(turn, scene)
  const { organization_id } = scene
  await startActor(turn, { id, machine: "session-token", organization_id, input: { ttl_seconds: 600 } })
  return id
}

async function insertSession(turn: Turn, scene: Scene): Promise<string> {
  const chip = chipRow(scene)
  const tap = tapRow(scene, chip.chip_id)
  const session = sessionTokenRow(scene, tap)
  await turn.tx.insert(chips).values(chip)
  await turn.tx.insert(taps).values(tap)
  await turn.tx.insert(sessionTokens).values(session)
  return session.id
}

function later(milliseconds: number): Date {
  return new Date(startOfTime.getTime() + milliseconds)
}

async function actorIn(db: Database, id: string) {
  const [actor] = await db.read.select().from(actors).where(eq(actors.id, id))
  return actor
}

async function heardBy(db: Database, id: string): Promise<string[]> {
  const actor = await actorIn(db, id)
  const snapshot = actor?.snapshot as { context: { heard: string[] } } | undefined
  return snapshot?.context.heard ?? []
}

async function effectsIn(db: Database, id: string) {
  return await db.read.select().from(effects).where(eq(effects.actor_id, id)).orderBy(asc(effects.id))
}

async function openEffectOf(db: Database, id: string): Promise<string> {
  const open = (await effectsIn(db, id)).find(({ status }) => status === "open")
  if (!open) throw new Error(`actor ${id} has no open effect`)
  return open.id
}

async function timersIn(db: Database, id: string) {
  return await db.read
    .select()
    .from(actorTimers)
    .where(eq(actorTimers.actor_id, id))
    .orderBy(asc(actorTimers.due_at))
}

async function journalIn(db: Database, id: string) {
  return await db.read
    .select()
    .from(actorEvents)
    .where(eq(actorEvents.actor_id, id))
    .orderBy(asc(actorEvents.number))
}

async function everythingOf(db: Database, id: string) {
  return {
    actor: await actorIn(db, id),
    effects: await effectsIn(db, id),
    timers: await timersIn(db, id),
    journal: await journalIn(db, id),
  }
}

async function statusIn(
  db: Database,
  table: typeof collections | typeof sessionTokens | typeof chipReplacements,
  id: string,
): Promise<string | undefined> {
  const [row] = await db.read.select({ status: table.status }).from(table).where(eq(table.id, id))
  return row?.status
}

async function unitIn(db: Database, id: string) {
  const [unit] = await db.read.select().from(units).where(eq(units.id, id))
  return unit
}

async function chipIn(db: Database, chipId: string) {
  const [chip] = await db.read.select().from(chips).where(eq(chips.chip_id, chipId))
  return chip
}
