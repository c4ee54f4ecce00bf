import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { assign, setup } from "xstate"
import { effect } from "../../machines/effect.ts"
import type { Migration } from "../../machines/migration.ts"
import { actorEvents, actors, effects } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import {
  type Lifecycle,
  lifecycle,
  lifecycles,
  type MachineName,
} from "../../src/engine/actors/lifecycles.ts"
import { replay, sendEvent, settleEffect } from "../../src/engine/actors/runtime.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { createTestContext, insertScene, startOfTime } from "../harness/scene.ts"

/** A machine in its third version: the second added a weight, the third renamed a state. */
const parcelMachine = setup({
  types: {
    context: {} as { label: string; weight_grams: number },
    events: {} as { type: "DELIVER" } | { type: "OPEN" },
    input: {} as { label: string },
  },
  actors: { weigh: effect<{ weight_grams: number }, { label: string }>() },
  actions: {
    recordWeight: assign((_, { weight_grams }: { weight_grams: number }) => ({ weight_grams })),
  },
}).createMachine({
  id: "parcel",
  context: ({ input }) => ({ label: input?.label ?? "", weight_grams: 0 }),
  initial: "on_its_way",
  states: {
    on_its_way: {
      invoke: {
        id: "weigh",
        src: "weigh",
        input: ({ context: { label } }) => ({ label }),
        onDone: {
          target: "delivered",
          actions: { type: "recordWeight", params: ({ event }) => event.output },
        },
        onError: "delivered",
      },
      on: { DELIVER: "delivered" },
    },
    delivered: { on: { OPEN: "opened" } },
    opened: { type: "final" },
  },
})

const addWeight: Migration = (stored) => ({
  ...stored,
  context: { ...stored.context, weight_grams: 250 },
})
const renameSent: Migration = (stored) => ({
  ...stored,
  value: stored.value === "sent" ? "on_its_way" : stored.value,
})

/** Snapshots that the first two versions stored while the parcel was in transit. */
const recorded = {
  1: snapshotIn("sent", { label: "milk" }),
  2: snapshotIn("sent", { label: "milk", weight_grams: 100 }),
}

function snapshotIn(value: string, context: Record<string, unknown>) {
  const child = { status: "active", input: { label: "milk" } }
  const children = { weigh: { snapshot: child, src: "weigh", syncSnapshot: false } }
  return { status: "active", value, historyValue: {}, context, children }
}

const registry = lifecycles as Record<string, Lifecycle>
const parcel = "parcel" as MachineName

beforeAll(() => {
  registry.parcel = lifecycle({
    machine: parcelMachine,
    migrations: [addWeight, renameSent],
    journalled: true,
    async project() {},
  })
})

afterAll(() => {
  delete registry.parcel
})

describe.each(engines)("an actor stored by an earlier release, on $name,", (engine) => {
  const databases = useEngine(engine)

  async function store(machine_version: number, snapshot: unknown) {
    const db = await databases.openShared()
    const context = createTestContext(db)
    const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
    const id = newId()
    const at = { created_at: startOfTime, updated_at: startOfTime }
    const effectId = newId()
    await turn(async ({ tx }) => {
      const { organization_id } = await insertScene(tx)
      const row = { id, machine: parcel, machine_version, organization_id, snapshot }
      await tx.insert(actors).values({ ...row, status: "sent", state: "sent", version: 1, ...at })
      const init = { type: "xstate.init", input: { label: "milk" } }
      await tx
        .insert(actorEvents)
        .values({ actor_id: id, number: 1, event: init, to_state: "sent", at: startOfTime })
      await tx.insert(effects).values({
        ...{ id: effectId, actor_id: id, invoke_id: "weigh", src: "weigh", input: { label: "milk" } },
        ...{ status: "open", queue: "weigh", attempts: 0, due_at: startOfTime, created_at: startOfTime },
      })
    })
    const stored = async () => {
      const [actor] = await db.read.select().from(actors).where(eq(actors.id, id))
      const journal = await db.read
        .select()
        .from(actorEvents)
        .where(eq(actorEvents.actor_id, id))
        .orderBy(asc(actorEvents.number))
      return { actor, journal }
    }
    return { id, effectId, turn, stored }
  }

  test("handles an event with the current machine, and is stored in the current version", async () => {
    const { id, turn, stored } = await store(1, recorded[1])
    const answer = await turn((t) => sendEvent(t, id, { type: "DELIVER" }))
    expect(answer).toEqual({ status: "delivered", state: "delivered", accepted: true })
    const { actor } = await stored()
    expect(actor).toMatchObject({ machine_version: 3, version: 3, state: "delivered" })
    expect(actor?.snapshot).toMatchObject({ context: { label: "milk", weight_grams: 250 } })
  })

  test("is migrated only from its own version on", async () => {
    const { id, turn, stored } = await store(2, recorded[2])
    await turn((t) => sendEvent(t, id, { type: "DELIVER" }))
    const { actor } = await stored()
    expect(actor?.snapshot).toMatchObject({ context: { label: "milk", weight_grams: 100 } })
  })

  test("accepts the result of an effect that the earlier release requested", async () => {
    const { effectId, turn, stored } = await store(1, recorded[1])
    expect(await turn((t) => settleEffect(t, effectId, { output: { weight_grams: 700 } }))).toBe(true)
    const { actor } = await stored()
    expect(actor).toMatchObject({ state: "delivered", snapshot: { context: { weight_grams: 700 } } })
  })

  test("has the migration in its journal, from which it can be replayed", async () => {
    const { id, turn, stored } = await store(1, recorded[1])
    await turn((t) => sendEvent(t, id, { type: "DELIVER" }))
    await turn((t) => sendEvent(t, id, { type: "OPEN" }))
    const { actor, journal } = await stored()
    expect(journal.map(({ event, from_state, to_state }) => [event.type, from_state, to_state])).toEqual([
      ["xstate.init", null, "sent"],
      ["xstate.migrate", "sent", "on_its_way"],
      ["DELIVER", "on_its_way", "delivered"],
      ["OPEN", "delivered", "opened"],
    ])
    const events = journal.map(({ event }) => event)
    expect(replay(parcel, events)).toEqual(actor?.snapshot)
  })

  test("stays as stored if it rejects an event", async () => {
    const { id, turn, stored } = await store(1, recorded[1])
    const before = await stored()
    const answer = await turn((t) => sendEvent(t, id, { type: "OPEN" }))
    expect(answer).toEqual({ status: "on_its_way", state: "on_its_way", accepted: false })
    expect(await stored()).toEqual(before)
  })

  test("is not changed if a later release stored it: one line says which version to run", async () => {
    const { id, turn, stored } = await store(4, recorded[2])
    const before = await stored()
    await expect(turn((t) => sendEvent(t, id, { type: "DELIVER" }))).rejects.toThrow(
      `parcel ${id} was stored by version 4 of its machine, but this release supports only versions up to 3: run the release that stored it, or a later one`,
    )
    expect(await stored()).toEqual(before)
  })
})
