import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createWebSocketReceiver, type StatelyInspectionEvent } from "@statelyai/inspect"
import { and, asc, eq } from "drizzle-orm"
import { type AnyStateMachine, type AnyStateNode, createMachine } from "xstate"
import { actorEvents, actors, claims, effects } from "../../src/db/schema.ts"
import { lifecycles, type MachineName } from "../../src/engine/actors/lifecycles.ts"
import { startActor } from "../../src/engine/actors/runtime.ts"
import { type InspectionFeed, startInspectionFeed } from "../../src/operator/inspection/feed.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { newId } from "../../src/platform/ids.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { engines } from "../harness/engines.ts"
import { claimRow } from "../harness/scene.ts"
import {
  activeCollection,
  createCaller,
  newUnit,
  openService,
  pair,
  settle,
  type TestService,
} from "../harness/services.ts"

setDefaultTimeout(60_000)

let service: TestService
let caller: Caller
let feeds: InspectionFeed[] = []

beforeAll(async () => {
  const [sqlite] = engines
  if (!sqlite) throw new Error("there is no engine")
  service = await openService(sqlite)
  caller = await createCaller(service)
})
afterEach(async () => {
  await Promise.all(feeds.map((feed) => feed.stop()))
  feeds = []
})
afterAll(() => service.close())

function startFeed(ids: string[] = [], port = 0): InspectionFeed {
  const feed = startInspectionFeed(service.context, { port, ids, every_milliseconds: 20 })
  feeds.push(feed)
  return feed
}

/** Connects with the inspector package's own receiver. */
function receive(feed: InspectionFeed) {
  const received: StatelyInspectionEvent[] = []
  createWebSocketReceiver({ server: feed.feed_url }).subscribe((event) => received.push(event))
  return {
    received,
    async until(isThere: (event: StatelyInspectionEvent) => boolean): Promise<StatelyInspectionEvent> {
      for (;;) {
        const found = received.find(isThere)
        if (found) return found
        await Bun.sleep(5)
      }
    },
  }
}

function stateIs(sessionId: string, value: unknown) {
  return (event: StatelyInspectionEvent) =>
    event.sessionId === sessionId &&
    event.type === "@xstate.snapshot" &&
    Bun.deepEquals((event.snapshot as { value?: unknown }).value, value)
}

function waitsFor(event: StatelyInspectionEvent): string[] {
  if (event.type !== "@xstate.snapshot") return []
  const { context } = event.snapshot as { context?: { waits_for?: string } }
  return context?.waits_for ? [context.waits_for] : []
}

async function pairedUnit(): Promise<string> {
  const unit = await newUnit(service, caller, await activeCollection(service, caller))
  await pair(service, caller, { unit_id: unit.id, is_test: true })
  return unit.id
}

function issued(serial: number) {
  return { serial, transaction_hash: `0x0${serial}` }
}

async function startRelayedClaim(unit_id: string): Promise<{ id: string; recipient: string }> {
  const { organization_id } = caller
  const row = claimRow({ organization_id, unit_id, lane_id: "issuance", collection_id: "" })
  await service.turn(async (turn) => {
    await turn.tx.insert(claims).values(row)
    const input = { unit_id, recipient: row.recipient, relay: { lane_id: "issuance" }, authorization: null }
    await startActor(turn, { id: row.id, machine: "claim", organization_id, input })
  })
  return row
}

describe("the inspector's receiver", () => {
  test("receives an actor's journal and then live events, in order", async () => {
    const id = await pairedUnit()
    const { received, until } = receive(startFeed([id]))
    await until(stateIs(id, { pending: "issuing" }))
    await settle(service, id, { serial: 1, transaction_hash: "0x01" })
    await until(stateIs(id, { active: "unclaimed" }))
    const journal = await service.context.db.read
      .select()
      .from(actorEvents)
      .where(eq(actorEvents.actor_id, id))
      .orderBy(asc(actorEvents.number))
    const own = received.filter(({ sessionId }) => sessionId === id)
    expect(own.map(({ type }) => type)).toEqual([
      "@xstate.actor",
      ...journal.slice(1).flatMap(() => ["@xstate.event", "@xstate.snapshot"] as const),
    ])
    const told = own.filter((event) => event.type === "@xstate.event")
    expect(told.map(({ event }) => event.type)).toEqual(journal.slice(1).map(({ event }) => event.type))
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length)
  })

  test("receives each event once, even if its transaction began before one that was already sent and committed after it", async () => {
    const [slow, quick] = [await pairedUnit(), await pairedUnit()]
    const { received, until } = receive(startFeed())
    await until(stateIs(slow, { pending: "issuing" }))
    const later = { ...service.context, clock: () => new Date(service.context.clock().getTime() + 2_000) }
    await settle({ ...service, turn: (work) => inTurn(later, null, work) }, quick, issued(7))
    await until(stateIs(quick, { active: "unclaimed" }))
    await settle(service, slow, issued(8))
    await until(stateIs(slow, { active: "unclaimed" }))
    await Bun.sleep(200)
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length)
  })

  test("that connects later receives the most recently changed actors, however many changed just before", async () => {
    for (let made = 0; made < 140; made++) {
      service.setTime(new Date(service.context.clock().getTime() + 10))
      await startRelayedClaim(await pairedUnit())
    }
    const last = await pairedUnit()
    const feed = startFeed()
    const early = receive(feed)
    await early.until(stateIs(last, { pending: "issuing" }))
    const next = await pairedUnit()
    await early.until(stateIs(next, { pending: "issuing" }))
    const { received, until } = receive(feed)
    await until(stateIs(next, { pending: "issuing" }))
    expect(received.some(({ sessionId }) => sessionId === last)).toBe(true)
  })

  test("ends up with the stored snapshot", async () => {
    const id = await pairedUnit()
    await settle(service, id, { serial: 2, transaction_hash: "0x02" })
    const { until } = receive(startFeed([id]))
    const last = await until(stateIs(id, { active: "unclaimed" }))
    const [actor] = await service.context.db.read.select().from(actors).where(eq(actors.id, id))
    const stored = actor?.snapshot as { status: string; value: unknown; context: object }
    expect(last).toMatchObject({ snapshot: { status: stored.status, value: stored.value } })
  })

  test("sees each actor as a root, and each effect as a child of its actor", async () => {
    const id = await pairedUnit()
    const isOpen = and(eq(effects.actor_id, id), eq(effects.status, "open"))
    const [effect] = await service.context.db.read.select().from(effects).where(isOpen)
    const { received, until } = receive(startFeed([id]))
    const child = await until(({ sessionId }) => sessionId === effect?.id)
    expect(child).toMatchObject({ type: "@xstate.actor", name: "issueUnit", parentId: id, rootId: id })
    const root = received.find(({ sessionId }) => sessionId === id)
    expect(root).toMatchObject({ type: "@xstate.actor", name: "unit-token", rootId: id })
    expect(root).not.toHaveProperty("parentId")
    await settle(service, id, { serial: 3, transaction_hash: "0x03" })
    const end = await until(
      (event) => event.sessionId === effect?.id && "event" in event && event.event.type === "effect.done",
    )
    expect(end).toMatchObject({ rootId: id, snapshot: { status: "done" } })
    const result = await until((event) => event.type === "@xstate.event" && event.event.type.includes("done"))
    expect(result).toMatchObject({ sourceId: effect?.id, sessionId: id, rootId: id })
  })

  test("receives what open work waits for, again whenever that changes, until it is done", async () => {
    const { id, recipient } = await startRelayedClaim(await pairedUnit())
    const [effect] = await service.context.db.read.select().from(effects).where(eq(effects.actor_id, id))
    if (!effect) throw new Error("the claim has no effect")
    const note = (last_error: string | null) =>
      service.turn((turn) => turn.tx.update(effects).set({ last_error }).where(eq(effects.id, effect.id)))
    const feed = startFeed()
    const { received, until } = receive(feed)
    const reasons = () => received.filter(({ sessionId }) => sessionId === effect.id).flatMap(waitsFor)
    const untilReasons = async (number: number) => {
      await until(() => reasons().length === number)
    }
    await untilReasons(1)
    await note(`the node said: no funds for ${recipient}`)
    await untilReasons(2)
    await note(null)
    await untilReasons(3)
    await Bun.sleep(100)
    const before = expect.stringContaining("lane issuance")
    const meanwhile = expect.stringContaining("the node said: no funds for 0x…")
    expect(reasons()).toEqual([before, meanwhile, before])
    await settle(service, id, { transaction_hash: "0x06" })
    await until(stateIs(id, "claimed"))
    const late = receive(feed)
    await late.until(stateIs(id, "claimed"))
    await Bun.sleep(100)
    const [last] = late.received.filter(({ sessionId }) => sessionId === effect.id).slice(-1)
    expect(last).toMatchObject({ snapshot: { status: "done" } })
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length)
  })

  test("sees the states and events of the machine definition", async () => {
    const ids = [await pairedUnit()]
    ids.push((await startRelayedClaim(String(ids[0]))).id)
    const { until } = receive(startFeed(ids))
    for (const id of ids) {
      const told = await until(({ sessionId, type }) => sessionId === id && type === "@xstate.actor")
      if (told.type !== "@xstate.actor") throw new Error("this is no actor")
      const config = JSON.parse(String(told.definition))
      expect(config).not.toHaveProperty("context")
      const definition: AnyStateMachine = lifecycles[told.name as MachineName].machine
      expect(statesOf(createMachine(config).root)).toEqual(statesOf(definition.root))
      expect(createMachine(config).events.toSorted()).toEqual(definition.events.toSorted())
    }
  })

  test("receives no wallet address in any field", async () => {
    const unitId = await pairedUnit()
    const { id, recipient } = await startRelayedClaim(unitId)
    const { received, until } = receive(startFeed([id]))
    await until(({ sessionId, type }) => sessionId === id && type === "@xstate.actor")
    await settle(service, id, { transaction_hash: "0x04" })
    await until(stateIs(id, "claimed"))
    const text = JSON.stringify(received)
    expect(text).toContain(unitId)
    expect(text).not.toContain(recipient)
    expect(text).not.toContain('"authorization"')
  })

  test("receives everything again after it or the feed was disconnected", async () => {
    const id = await pairedUnit()
    const first = startFeed([], await freePort())
    const before = receive(first)
    await before.until(stateIs(id, { pending: "issuing" }))
    await first.stop()
    feeds = []
    await settle(service, id, { serial: 4, transaction_hash: "0x05" })
    const again = startFeed([], Number(new URL(first.url).port))
    for (const { until, received } of [receive(again), receive(again)]) {
      await until(stateIs(id, { active: "unclaimed" }))
      const ids = received.filter(({ sessionId }) => sessionId === id).map((event) => event.id)
      for (const told of before.received.filter(({ sessionId }) => sessionId === id))
        expect(ids).toContain(told.id)
    }
  })
})

describe("the feed", () => {
  test("accepts connections from pages on this machine only", async () => {
    const { url } = startFeed()
    const statusOf = async (headers: Record<string, string>) =>
      (await fetch(`${url}/feed`, { headers })).status
    const upgrade = { upgrade: "websocket", connection: "upgrade" }
    expect(await statusOf({ ...upgrade, origin: "https://stately.ai" })).toBe(403)
    expect(await statusOf({ ...upgrade, origin: "http://localhost:3000" })).toBe(403)
    expect(await statusOf({ host: "evil.example" })).toBe(403)
    expect(await (await fetch(url)).text()).toContain("nothing leaves this machine")
  })
})

describe("the inspect command", () => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), "inspect-"))
  afterAll(() => rmSync(DATA_DIR, { recursive: true }))

  async function inspect(...words: string[]) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/inspect.ts"), ...words], {
      env: { PATH: process.env.PATH, DATA_DIR, SERVICE_SECRET: "a secret of tests that is long enough" },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const said = [await child.stdout.text(), await child.stderr.text()]
    return [await child.exited, ...said]
  }

  test("prints its usage with exit code 0, or 1 after a wrong argument", async () => {
    const usage = "usage: inspect [ID …] [--port N]\n"
    expect(await inspect("--help")).toEqual([0, usage, ""])
    expect(await inspect("--all")).toEqual([1, "", usage])
    expect(await inspect("--port", "none")).toEqual([1, "", `--port takes a number up to 65535; ${usage}`])
  })

  test("ends with exit code 1 and one line with the next step if no actor has an id", async () => {
    const id = newId()
    expect(await inspect(id, "--port", "0")).toEqual([
      1,
      "",
      `no actor has the id ${id}; if an effect, a transaction or an organization has it, this names the actors: operator explain ${id}\n`,
    ])
  })
})

describe("the feed's page", () => {
  const browser = useBrowser()

  test("says that it is connected before anything has happened, and again after the feed was down", async () => {
    const nobody = [newId()]
    const first = startFeed(nobody, await freePort())
    const { page } = await browser.newPage()
    await page.goto(first.url)
    await page.locator("#status:has-text('Connected; nothing has happened yet')").waitFor()
    await first.stop()
    feeds = []
    await page.locator("#status:has-text('connecting again')").waitFor()
    startFeed(nobody, Number(new URL(first.url).port))
    await page.locator("#status:has-text('Connected; nothing has happened yet')").waitFor()
  })

  test("reconnects after the feed was down, and contacts no other host until its button is pressed", async () => {
    await pairedUnit()
    const first = startFeed([], await freePort())
    const visited = await browser.newPage()
    const { page, requested } = visited
    const contacted: string[] = [...requested]
    page.on("websocket", (socket) => contacted.push(socket.url()))
    await page.goto(first.url)
    await page.locator("#status:has-text('messages so far')").waitFor()
    expect(await flawsOf(visited, "inspection")).toEqual([])
    await first.stop()
    feeds = []
    await page.locator("#status:has-text('connecting again')").waitFor()
    await pairedUnit()
    startFeed([], Number(new URL(first.url).port))
    await page.locator("#status:has-text('messages so far')").waitFor()
    contacted.push(...requested)
    expect(contacted.filter((address) => new URL(address).hostname !== "127.0.0.1")).toEqual([])
  })
})

function statesOf(node: AnyStateNode): string[] {
  return [node.id, ...Object.values(node.states).flatMap(statesOf)]
}
