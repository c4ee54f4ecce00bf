import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { and, eq, ne } from "drizzle-orm"
import { effects, lanes, organizations } from "../../src/db/schema.ts"
import { consolePages } from "../../src/operator/console/routes.ts"
import { startOperatorServer } from "../../src/operator/port/server.ts"
import { actsOn } from "../../src/operator/stories/acts.ts"
import { search } from "../../src/operator/stories/search.ts"
import { inAct } from "../../src/operator/verbs/acts.ts"
import { findStory } from "../../src/operator/verbs/explain.ts"
import { findStuck } from "../../src/operator/verbs/stuck.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { engines } from "../harness/engines.ts"
import { alice, bob, claimedUnit, transfer, useOwnership } from "../harness/ownership.ts"
import { activeCollection, createCaller, newUnit } from "../harness/services.ts"

describe.each(engines)("on $name an operator", (engine) => {
  const service = useOwnership(engine)
  const found = async (text: string) => (await search(service.read(), text)).map(({ id }) => id)

  /** A unit whose issuance is queued in its lane. */
  async function unitInLine() {
    const collection = await activeCollection(service, service.caller)
    const unit = await newUnit(service, service.caller, collection)
    await service.turn((turn) =>
      pairChip(turn, service.secret, service.caller, { unit_id: unit.id, is_test: true }),
    )
    return unit
  }

  test("finds nothing for a text that the databases do not accept", async () => {
    expect(await found("Jacket\u0000")).toEqual([])
  })

  test("finds what a request started by its request ID, and is told if it started nothing", async () => {
    const collection = await activeCollection(service, service.caller)
    const { id } = await newUnit(service, service.caller, collection)
    const request = `req_${crypto.randomUUID()}`
    await inTurn(service.context, request, (turn) =>
      pairChip(turn, service.secret, service.caller, { unit_id: id, is_test: true }),
    )
    expect(await found(request)).toEqual([id])
    expect(await findStory(service.context, request)).toMatchObject({ id, machine: "unit-token" })
    const refused = findStory(service.context, `req_${crypto.randomUUID()}`)
    await expect(refused).rejects.toThrow("has started nothing: if it was refused, its line in the log")
  })

  test("finds claims and transfers by a wallet address, in either case", async () => {
    const maker = await createCaller(service)
    const { unit, session, id } = await claimedUnit(service, maker)
    const handed = await transfer(service, session, unit.id, { recipient: bob })
    for (const wallet of [alice, alice.toLowerCase()])
      expect(await found(wallet)).toEqual(expect.arrayContaining([id, handed.id]))
    expect(await found(bob)).toContain(handed.id)
    expect(await found("0x000000000000000000000000000000000000dEaD")).toEqual([])
  })

  test("finds units and collections by their full name, and an organization's by its ID and name", async () => {
    const name = `Maker ${newId()}`
    const maker = await createCaller(service, { name })
    const collection = await activeCollection(service, maker)
    const jacket = await newUnit(service, maker, collection, { name: `Jacket ${newId()}` })
    expect(await found(String(jacket.name))).toEqual([jacket.id])
    expect(await found(String(jacket.name).slice(0, -1))).toEqual([])
    for (const text of [maker.organization_id, name])
      expect((await found(text)).sort()).toEqual([collection.id, jacket.id].sort())
    const several = await findStory(service.context, name)
    expect(several).toHaveLength(2)
  })

  test("sees stuck work even if another stalled chain has a thousand older effects", async () => {
    const { id } = await unitInLine()
    const later = new Date(service.context.clock().getTime() + 6 * 60_000)
    const other = { id: `31338:${newId()}`, chain_id: 31_338, address: bob, purpose: "all" as const }
    const queue = laneQueue(other.id)
    const older = Array.from({ length: 1_000 }, () => ({
      ...{ id: newId(), actor_id: id, invoke_id: newId(), src: "issueUnit", queue, input: {} },
      ...{ status: "open" as const, attempts: 0, due_at: new Date(0), created_at: new Date(0) },
    }))
    await service.turn(async ({ tx, at: created_at }) => {
      await tx.insert(lanes).values({ ...other, created_at, status: "open", lease_epoch: 0 })
      await tx.insert(effects).values(older)
    })
    try {
      const isOfOwnLane = and(eq(effects.actor_id, id), ne(effects.queue, queue))
      const [own] = await service.read().select().from(effects).where(isOfOwnLane)
      const stuck = await findStuck(service.read(), later)
      expect(stuck.map(({ effect_id }) => effect_id)).toContain(String(own?.id))
    } finally {
      await service.turn(async ({ tx }) => {
        await tx.delete(effects).where(eq(effects.queue, queue))
        await tx.delete(lanes).where(eq(lanes.id, other.id))
      })
    }
  })

  test("sees stuck work even behind a thousand authorizations that wait for wallets", async () => {
    const { id } = await unitInLine()
    const later = new Date(service.context.clock().getTime() + 6 * 60_000)
    const offered = Array.from({ length: 1_000 }, () => ({
      ...{ id: newId(), actor_id: id, invoke_id: newId(), src: "watchAuthorization", queue: "chain:31337" },
      ...{ input: { deadline_at: later.toISOString() }, status: "open" as const, attempts: 0 },
      ...{ due_at: new Date(0), created_at: new Date(0) },
    }))
    await service.turn(({ tx }) => tx.insert(effects).values(offered))
    try {
      expect((await findStuck(service.read(), later)).map((each) => each.id)).toContain(id)
    } finally {
      await service.turn(({ tx }) => tx.delete(effects).where(eq(effects.src, "watchAuthorization")))
    }
  })

  test("sees work of a paused lane as stuck at once, and work in progress not", async () => {
    const { id } = await unitInLine()
    const now = service.context.clock()
    const held = { lease_owner: "a worker", leased_until: new Date(now.getTime() + 60_000) }
    const setLane = (change: object) =>
      service.turn(({ tx }) => tx.update(lanes).set(change).where(eq(lanes.id, "issuance")))
    const reasonNow = async () => {
      const stuck = await findStuck(service.read(), now)
      return stuck.find((each) => each.id === id)?.reason ?? null
    }
    await setLane(held)
    expect(await reasonNow()).toBeNull()
    await setLane({ status: "paused", reason: "it has no money" })
    expect(await reasonNow()).toBe("lane issuance is paused: it has no money")
    await setLane({ status: "open", reason: null, lease_owner: null, leased_until: null })
    expect(await reasonNow()).toContain("no worker holds lane issuance")
    await setLane(held)
    const later = new Date(now.getTime() + 6 * 60_000)
    await setLane({ leased_until: new Date(later.getTime() + 60_000) })
    expect((await findStuck(service.read(), later)).map((each) => each.id)).toContain(id)
  })
})

describe.each(engines)("on $name the console", (engine) => {
  const service = useOwnership(engine)
  let server: ReturnType<typeof startOperatorServer>
  beforeAll(() => {
    const context = { ...service.context, config: { ...service.context.config, operator_port: 0 } }
    server = startOperatorServer(context, [consolePages(context)])
  })
  afterAll(() => server.stop())
  const page = async (path: string) => await (await fetch(server.url + path)).text()

  test("shows problems first, such as a paused lane with its reason", async () => {
    await service.turn(({ tx }) => tx.update(lanes).set({ status: "paused", reason: "it has no money" }))
    const text = await page("/console")
    expect(text).toContain('<li class="wrong"><b>!</b> lane issuance is paused: it has no money')
    expect(text.indexOf('class="wrong"')).toBeLessThan(text.indexOf('class="right"'))
    expect(text.indexOf('class="signs"')).toBeLessThan(text.indexOf("<h1>Lifecycles"))
  })

  test("finds a unit by an external ID as long as they may be", async () => {
    const collection = await activeCollection(service, service.caller)
    for (const external_id of ["J".repeat(256), "🧥".repeat(256)]) {
      const { id } = await newUnit(service, service.caller, collection, { external_id })
      const address = `${server.url}/console/search?q=${encodeURIComponent(external_id)}`
      const response = await fetch(address, { redirect: "manual" })
      expect(response.headers.get("location")).toBe(`/console/actors/${id}`)
    }
  })

  test("lists actors with the names of their resources", async () => {
    const maker = await createCaller(service, { name: "Maker & Daughters" })
    const collection = await activeCollection(service, maker)
    await newUnit(service, maker, collection, { name: "Jacket <1>", external_id: "J-1" })
    const units = await page("/console/machines/unit-token/states/pending")
    for (const cell of ["<td>Jacket &lt;1&gt;</td>", "<td>J-1</td>", "Maker &amp; Daughters</td>"])
      expect(units).toContain(cell)
    expect(await page("/console/machines/collection-contract/states/active")).toContain(
      `<td>${collection.name}</td>`,
    )
    const { id, unit } = await claimedUnit(service, maker)
    expect(await page(`/console/actors/${unit.id}`)).toContain(`<dt>Owner</dt><dd>${alice}</dd>`)
    const claims = await page("/console/machines/claim/states/claimed")
    expect(claims).toContain(id)
    expect(claims).toContain("Maker &amp; Daughters</td>")
  })
})

describe.each(engines)("on $name an operator's act", (engine) => {
  const service = useOwnership(engine)
  let server: ReturnType<typeof startOperatorServer>
  beforeAll(() => {
    const context = { ...service.context, config: { ...service.context.config, operator_port: 0 } }
    server = startOperatorServer(context, [consolePages(context)])
  })
  afterAll(() => server.stop())
  const act = (name: string, id: string) =>
    fetch(`${server.url}/console/${name}`, {
      method: "POST",
      body: new URLSearchParams({ id }),
      redirect: "manual",
    })

  test("is recorded with the operator and the time, and a rejected one is not", async () => {
    const { organization_id } = await createCaller(service, { name: "Maker & Daughters" })
    const setLane = (change: object) =>
      service.turn(({ tx }) => tx.update(lanes).set(change).where(eq(lanes.id, "issuance")))
    await setLane({ status: "halted", reason: "somebody else uses the key" })
    expect((await act("retry", "issuance")).status).toBe(303)
    expect((await act("retry", "issuance")).status).toBe(409)
    expect((await act("suspend", organization_id)).status).toBe(303)
    const [suspended] = await service
      .read()
      .select()
      .from(organizations)
      .where(eq(organizations.id, organization_id))
    expect(suspended?.suspended_at).toEqual(service.context.clock())
    expect((await act("resume", organization_id)).status).toBe(303)
    expect((await act("suspend", newId())).status).toBe(409)
    expect((await act("cancel", newId())).status).toBe(409)
    await inAct(service.context, { act: "cancel", subject: "x", actor: "maria on desk" }, async () => {})
    const at = service.context.clock()
    const noted = (await actsOn(service.read(), null)).map(({ id: _id, ...each }) => each)
    const here = "console, from 127.0.0.1"
    expect(noted).toEqual([
      { at, actor: "maria on desk", act: "cancel", subject: "x" },
      { at, actor: here, act: "resume", subject: organization_id },
      { at, actor: here, act: "suspend", subject: organization_id },
      { at, actor: here, act: "retry", subject: "issuance" },
    ])
    expect(await actsOn(service.read(), [organization_id])).toHaveLength(2)
  })

  test("links to its target only if the console shows that", async () => {
    const { organization_id } = await createCaller(service)
    const { unit } = await claimedUnit(service, await createCaller(service))
    const acts = { suspend: organization_id, retry: unit.id, "revoke key": newId(), restored: "database" }
    for (const [name, subject] of Object.entries(acts))
      await inAct(service.context, { act: name, subject, actor: "maria on desk" }, async () => {})
    const text = await (await fetch(`${server.url}/console/acts`)).text()
    const targets = [...text.matchAll(/<a class="mono" href="([^"]+)">/g)].map(([, address]) => address)
    expect(targets).toContain(`/console/organizations/${organization_id}`)
    expect(targets).toContain(`/console/search?q=${unit.id}`)
    for (const address of targets) {
      const page = await fetch(server.url + address)
      expect([page.status, (await page.text()).includes("Nothing was found")]).toEqual([200, false])
    }
  })

  test("is not recorded if its transaction is rolled back", async () => {
    const before = await actsOn(service.read(), null)
    const broken = inAct(service.context, { act: "retry", subject: "x" }, async () => {
      throw new Error("it broke")
    })
    await expect(broken).rejects.toThrow("it broke")
    expect(await actsOn(service.read(), null)).toEqual(before)
  })
})

describe("the operator port", () => {
  const [engine] = engines
  if (!engine) throw new Error("there is no engine")
  const service = useOwnership(engine)
  const token = "a token of tests that is long enough: 0123"
  let server: ReturnType<typeof startOperatorServer>
  beforeAll(() => {
    const config = { ...service.context.config, operator_port: 0, operator_token: token }
    server = startOperatorServer({ ...service.context, config }, [])
  })
  afterAll(() => server.stop())

  test("rejects an invalid Host before anything else, without logging an error", async () => {
    const { port } = new URL(server.url)
    for (const host of ["127.0.0.1@x", "127.0.0.1:99999", "127.999.0.1", "a b", "[::1", "x/y"])
      expect([host, await statusOf(Number(port), host)]).toEqual([host, 400])
    for (const host of [`127.0.0.1:${port}`, "localhost", "[::1]:80", "operator.example"])
      expect([host, await statusOf(Number(port), host)]).toEqual([host, 200])
  })

  test("lets a client IP address try ten wrong tokens a minute, and then for six seconds not even the right one", async () => {
    const logIn = (text: string) =>
      fetch(`${server.url}/login`, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ token: text }),
        headers: { origin: server.url },
      })
    expect((await logIn(token)).status).toBe(303)
    for (let wrong = 1; wrong <= 10; wrong++) expect((await logIn(`wrong ${wrong}`)).status).toBe(403)
    for (const text of ["wrong", token]) {
      const refused = await logIn(text)
      expect(refused.status).toBe(429)
      expect(refused.headers.get("retry-after")).toBe("6")
    }
    const bearer = { headers: { authorization: `Bearer ${token}` } }
    expect((await fetch(`${server.url}/nothing`, bearer)).status).toBe(404)
    service.setTime(new Date(service.context.clock().getTime() + 6_000))
    expect([(await logIn("wrong")).status, (await logIn(token)).status]).toEqual([403, 429])
    service.setTime(new Date(service.context.clock().getTime() + 6_000))
    expect((await logIn(token)).status).toBe(303)
  })
})

/** Returns the status of `GET /livez` on the port with this Host header. */
async function statusOf(port: number, host: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_socket, chunk) => resolve(chunk.toString("latin1")),
      close: () => resolve(""),
      error: () => resolve(""),
    },
  })
  socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const answer = await promise
  socket.end()
  return Number(/^HTTP\/1.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}
