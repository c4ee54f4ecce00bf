import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { and, asc, count, eq } from "drizzle-orm"
import type { Locator, Page } from "playwright-core"
import type { AnyStateMachine, AnyStateNode } from "xstate"
import { openDatabase } from "../../src/db/open.ts"
import {
  actorEvents,
  actors,
  chips,
  claims,
  effects,
  lanes,
  organizations,
  transactionAttempts,
  transactions,
} from "../../src/db/schema.ts"
import { lifecycles, type MachineName } from "../../src/engine/actors/lifecycles.ts"
import { pathOf, settleEffect, startActor } from "../../src/engine/actors/runtime.ts"
import { consolePages } from "../../src/operator/console/routes.ts"
import { type OperatorServer, startOperatorServer } from "../../src/operator/port/server.ts"
import { search } from "../../src/operator/stories/search.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { resolveHost } from "../../src/platform/public-address.ts"
import { sendWebhook } from "../../workers/webhooks/send.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { chainSettings } from "../harness/chain-settings.ts"
import { newFolder, removeDevServices, root, startDev, stopGently } from "../harness/dev-service.ts"
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

const [sqlite] = engines
const machines = Object.keys(lifecycles) as MachineName[]
const sentId = newId()
const sentHash = `0x${"ab".repeat(32)}`
const walletHash = `0x${"cd".repeat(32)}`
const requestId = "req_0b6c2f8e-6a51-4a5f-9a53-2f6b6c8f4f10"

/** A service with actors in many states. */
type Scene = {
  service: TestService
  caller: Caller
  server: OperatorServer
  unpaired: string
  stopped: string
  sending: string
  claimed: string
  failedClaim: string
  walletClaim: string
  chip_id: string
}

setDefaultTimeout(60_000)
const browser = useBrowser()
let scene: Scene

beforeAll(async () => {
  if (!sqlite) throw new Error("there is no engine")
  scene = await createScene(await openService(sqlite))
}, 30_000)
afterAll(async () => {
  await scene.server.stop()
  await scene.service.close()
  await removeDevServices()
})

async function createScene(service: TestService): Promise<Scene> {
  const caller = await createCaller(service)
  const collection = await activeCollection(service, caller)
  const units = []
  for (const name of ["unpaired", "stopped", "sending", "claimed", "failed", "wallet"])
    units.push(await newUnit(service, caller, collection, { external_id: `jacket <b>${name}</b>` }))
  const [unpaired, stopped, sending, claimed, failed, wallet] = units.map(({ id }) => id) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const chipIds = []
  for (const unit_id of [stopped, sending, claimed, failed, wallet])
    chipIds.push((await pair(service, caller, { unit_id, is_test: true })).chip_id)
  await fail(service, stopped, { code: "issue.reverted", message: "<script>alert(1)</script> SerialGap" })
  await sendTransaction(service, sending)
  for (const [index, id] of [claimed, failed, wallet].entries())
    await settle(service, id, { serial: 41 + index, transaction_hash: "0x02" })
  const claim = await startClaim(service, caller, claimed)
  await settle(service, claim, { transaction_hash: "0x03" })
  const failedClaim = await startClaim(service, caller, failed)
  await fail(service, failedClaim, { code: "claim.reverted", message: "The contract refused it." })
  const walletClaim = await startClaim(service, caller, wallet)
  await settle(service, walletClaim, { transaction_hash: walletHash })
  return {
    service,
    caller,
    server: startServer(service),
    unpaired,
    stopped,
    sending,
    claimed,
    failedClaim,
    walletClaim,
    chip_id: String(chipIds[1]),
  }
}

function startServer(service: TestService, settings: { operator_token?: string } = {}): OperatorServer {
  const config = { ...service.context.config, operator_port: 0, ...settings }
  const context = { ...service.context, config }
  return startOperatorServer(context, [consolePages(context)])
}

async function startClaim(service: TestService, { organization_id }: Caller, unit_id: string) {
  const row = claimRow({ organization_id, unit_id, lane_id: "issuance", collection_id: "" })
  await inTurn(service.context, requestId, async (turn) => {
    await turn.tx.insert(claims).values(row)
    const input = { unit_id, recipient: row.recipient, relay: { lane_id: "issuance" }, authorization: null }
    await startActor(turn, { id: row.id, machine: "claim", organization_id, input })
  })
  return row.id
}

async function openEffect(service: TestService, actorId: string): Promise<string> {
  const isOpen = and(eq(effects.actor_id, actorId), eq(effects.status, "open"))
  const [effect] = await service.context.db.read.select().from(effects).where(isOpen)
  return String(effect?.id)
}

async function fail(service: TestService, actorId: string, error: { code: string; message: string }) {
  const id = await openEffect(service, actorId)
  await service.turn((turn) => settleEffect(turn, id, { error }))
}

async function sendTransaction(service: TestService, actorId: string): Promise<void> {
  const effectId = await openEffect(service, actorId)
  const id = sentId
  const fees = { max_fee_per_gas: "1", max_priority_fee_per_gas: "1" }
  await service.turn(async ({ tx, at }) => {
    await tx.insert(transactions).values({
      ...{ id, lane_id: "issuance", chain_id: 31_337, kind: "issueUnit", nonce: 7, to: "0x01", call: "0x" },
      ...{ gas: 100_000, ...fees, status: "sent", hash: sentHash, created_at: at, updated_at: at },
    })
    await tx.insert(transactionAttempts).values({
      ...{ hash: sentHash, transaction_id: id, kind: "first", raw: "0xsecret", ...fees, send_count: 2 },
      ...{ last_error: "nonce too low", created_at: at },
    })
    await tx.update(effects).set({ transaction_id: id, attempts: 1 }).where(eq(effects.id, effectId))
  })
}

/** Returns one attribute of each element, in document order. */
async function attributeOfEach(page: Page, selector: string, name: string): Promise<(string | null)[]> {
  return await Promise.all((await page.locator(selector).all()).map((element) => element.getAttribute(name)))
}

describe("the charts", () => {
  for (const machine of machines)
    test(`of ${machine} show every state and transition of its definition`, async () => {
      const { page } = await browser.newPage()
      await page.goto(`${scene.server.url}/console`)
      const drawn = page.locator(`[data-machine="${machine}"]`)
      const definition: AnyStateMachine = lifecycles[machine].machine
      const states = nodesOf(definition.root).filter(({ path }) => path.length > 0)
      expect(await attributes(drawn, ".state:not(.anywhere)", ["data-state"])).toEqual(
        states.map(({ path }) => path.join(".")).sort(),
      )
      expect(await attributes(drawn, ".transition", ["data-source", "data-event", "data-target"])).toEqual(
        nodesOf(definition.root).flatMap(transitionsOf).sort(),
      )
      expect(await invisible(drawn)).toBe(0)
    })

  test("have the number of actors in each state, and update it", async () => {
    const { page, complaints } = await browser.newPage()
    await page.goto(`${scene.server.url}/console`)
    const unpaired = countOf(page, "unit-token", "pending.unpaired")
    expect(await unpaired.textContent()).toBe("1")
    expect(await countOf(page, "unit-token", "pending").textContent()).toBe("3")
    expect(await countOf(page, "claim", "failed").textContent()).toBe("1")
    const { id } = await newUnit(
      scene.service,
      scene.caller,
      await activeCollection(scene.service, scene.caller),
    )
    await page
      .locator('[data-machine="unit-token"] [data-count-of="pending.unpaired"]:text-is("2")')
      .waitFor()
    await pair(scene.service, scene.caller, { unit_id: id, is_test: true })
    await page
      .locator('[data-machine="unit-token"] [data-count-of="pending.unpaired"]:text-is("1")')
      .waitFor()
    await settle(scene.service, id, { serial: 1, transaction_hash: "0x04" })
    expect(complaints).toEqual([])
  })

  test("show zero counts muted and other counts prominently", async () => {
    const { page } = await browser.newPage()
    await page.goto(`${scene.server.url}/console`)
    const texts = await page.locator(".chart .count").allTextContents()
    const quiet = await page.locator(".chart .count.zero").allTextContents()
    expect(quiet).not.toBeEmpty()
    expect(quiet).toEqual(texts.filter((text) => text === "0"))
  })

  test("lead from a state to its oldest actors, and from an actor to its story, by keyboard alone", async () => {
    const { page } = await browser.newPage()
    await page.goto(`${scene.server.url}/console`)
    await page.locator('[data-machine="claim"] a:has([data-state="failed"])').focus()
    await page.keyboard.press("Enter")
    await page.waitForURL("**/console/machines/claim/states/failed")
    await page.locator(`table a:text("${scene.failedClaim}")`).focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/console/actors/${scene.failedClaim}`)
    expect(await page.locator("[data-waits-for]").textContent()).toContain("The contract refused it.")
  })
})

test("actors are counted by the state of their snapshots", async () => {
  const rows = await scene.service.context.db.read.select().from(actors)
  expect(rows.length).toBeGreaterThan(9)
  for (const { state, snapshot } of rows) expect(state).toBe(pathOf((snapshot as { value: unknown }).value))
})

describe("an actor's page", () => {
  test("has a timeline that equals the journal", async () => {
    const { page } = await browser.newPage()
    for (const id of [scene.failedClaim, scene.stopped, scene.claimed]) {
      await page.goto(`${scene.server.url}/console/actors/${id}`)
      const journal = await scene.service.context.db.read
        .select()
        .from(actorEvents)
        .where(eq(actorEvents.actor_id, id))
        .orderBy(asc(actorEvents.number))
      const entries = await page.locator(".timeline > li").all()
      const shown = await Promise.all(
        entries.map(async (entry) => {
          const [details] = await entry.locator("pre").allTextContents()
          return {
            number: Number(await entry.getAttribute("data-number")),
            event: { type: await entry.getAttribute("data-event"), ...JSON.parse(details ?? "{}") },
            from_state: (await entry.getAttribute("data-from")) || null,
            to_state: await entry.getAttribute("data-to"),
            at: await entry.locator("time").getAttribute("datetime"),
          }
        }),
      )
      expect(shown).toEqual(
        journal.map(({ number, event, from_state, to_state, at }) => ({
          ...{ number, event, from_state, to_state, at: at.toISOString() },
        })),
      )
    }
  })

  test("names the request, the transaction and its attempts, and what the actor waits for", async () => {
    const { page } = await browser.newPage()
    await page.goto(`${scene.server.url}/console/actors/${scene.failedClaim}`)
    expect(await page.locator(".timeline").textContent()).toContain(requestId)
    await page.goto(`${scene.server.url}/console/actors/${scene.sending}`)
    expect(await page.locator(".attempts").textContent()).toContain(`${sentHash} first, sent 2 times`)
    expect(await page.locator("[data-waits-for]").textContent()).toContain(
      "with nonce 7 is sent and not mined",
    )
    expect(await page.content()).not.toContain("0xsecret")
  })

  test("draws the actor's path into the chart, with the time spent in each state", async () => {
    const { service, caller } = scene
    const unit = await newUnit(service, caller, await activeCollection(service, caller))
    await pair(service, caller, { unit_id: unit.id, is_test: true })
    service.setTime(new Date(service.context.clock().getTime() + 90_000))
    await settle(service, unit.id, { serial: 1, transaction_hash: "0x06" })
    service.setTime(new Date(service.context.clock().getTime() + 3 * 3_600_000))
    const { page } = await browser.newPage()
    await page.goto(`${scene.server.url}/console/actors/${unit.id}`)
    const stays = await page.locator(".chart .visited .count").allTextContents()
    const visited = await attributeOfEach(page, ".chart .visited", "data-state")
    expect(Object.fromEntries(visited.map((state, index) => [String(state), stays[index]]))).toEqual({
      pending: "90 s",
      "pending.unpaired": "0 ms",
      "pending.issuing": "90 s",
      active: "3 h",
      "active.unclaimed": "3 h",
    })
    const taken = await attributeOfEach(page, ".chart .taken", "data-event")
    expect(taken.sort()).toEqual(["PAIRED", "xstate.done.actor.issueUnit"])
    expect(await page.locator(".timeline > li").last().textContent()).toContain("after 90 s")
  })

  test("escapes text from outside", async () => {
    const { page, complaints } = await browser.newPage()
    await page.goto(`${scene.server.url}/console/actors/${scene.stopped}`)
    expect(await page.locator("main").textContent()).toContain("<script>alert(1)</script> SerialGap")
    await page.goto(
      `${scene.server.url}/console/search?q=${encodeURIComponent("<img src=x onerror=alert(1)>")}`,
    )
    expect(await page.locator("main").textContent()).toContain("<img src=x onerror=alert(1)>")
    expect(complaints).toEqual([])
  })

  test("retries what the operator CLI can retry, and shows the outcome", async () => {
    const { service, caller } = scene
    const { page } = await browser.newPage()
    const unit = await newUnit(service, caller, await activeCollection(service, caller))
    await pair(service, caller, { unit_id: unit.id, is_test: true })
    await fail(service, unit.id, { code: "issue.reverted", message: "It reverted." })
    await page.goto(`${scene.server.url}/console/actors/${unit.id}`)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.locator('h1 .badge:text-is("pending.issuing")').waitFor()
    await page.locator("#entry-2 summary").press("Enter")
    await settle(service, unit.id, { serial: 1, transaction_hash: "0x05" })
    await page.locator('h1 .badge:text-is("active.unclaimed")').waitFor()
    expect(await page.locator("#entry-2[open] summary:focus").count()).toBe(1)
  })

  test("reopens the halted lane that the actor waits for", async () => {
    const { service, server } = scene
    const { page } = await browser.newPage()
    const halted = { status: "halted", reason: "somebody else uses the key" } as const
    await service.turn(({ tx }) => tx.update(lanes).set(halted))
    await page.goto(`${server.url}/console/actors/${scene.sending}`)
    await page.getByRole("button", { name: "Reopen lane issuance" }).click()
    await page.locator("role=status >> text=It will be tried again.").waitFor()
    const [lane] = await service.context.db.read.select().from(lanes)
    expect(lane?.status).toBe("open")
  })

  test("says that the chain does not respond if the actor waits for it", async () => {
    const { service } = scene
    const config = { ...service.context.config, operator_port: 0, chains: [chainSettings] }
    const context = { ...service.context, config }
    const server = startOperatorServer(context, [consolePages(context)])
    const text = await (await fetch(`${server.url}/console/actors/${scene.sending}`)).text()
    await server.stop()
    expect(text).toContain("chain 31337 does not answer (")
  })
})

describe("all pages", () => {
  const paths = () => ({
    overview: "/console",
    state: "/console/machines/unit-token/states/active",
    stopped: `/console/actors/${scene.stopped}`,
    sending: `/console/actors/${scene.sending}`,
    nobody: "/console/search?q=nobody",
    webhooks: "/console/webhooks",
    acts: "/console/acts",
    login: "/login",
  })

  test("fit phone and desktop screens and are accessible in light and dark mode", async () => {
    const visited = await browser.newPage()
    for (const [name, path] of Object.entries({ ...paths(), missing: "/nothing" })) {
      await visited.page.goto(scene.server.url + path)
      expect(await flawsOf(visited, `console-${name}`)).toEqual([])
    }
  })

  test("fit a phone with work in the queue of a real lane, whose id is long", async () => {
    const queue = "lane:31337:0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
    const setQueue = (name: string) =>
      scene.service.turn(({ tx }) =>
        tx.update(effects).set({ queue: name }).where(eq(effects.actor_id, scene.sending)),
      )
    const visited = await browser.newPage()
    await setQueue(queue)
    await visited.page.goto(scene.server.url + paths().sending)
    const shown = await visited.page.textContent(".work")
    const flaws = await flawsOf(visited, "console-lane")
    await setQueue("lane:issuance")
    expect(shown).toContain(queue)
    expect(flaws).toEqual([])
  })

  test("load nothing from other hosts, and comply with their own content security policy", async () => {
    const { page, requested, complaints } = await browser.newPage()
    for (const path of Object.values(paths())) {
      await page.goto(scene.server.url + path)
      if (path === "/console") await page.waitForResponse("**/console/counts")
    }
    expect(requested.filter((address) => !address.startsWith(scene.server.url))).toEqual([])
    expect(complaints).toEqual([])
  })
})

for (const engine of engines)
  describe(`a search on ${engine.name}`, () => {
    let found: Scene
    beforeAll(async () => {
      found = await createScene(await openService(engine))
    }, 30_000)
    afterAll(async () => {
      await found.server.stop()
      await found.service.close()
    })

    const cases: [by: string, text: () => string, id: () => string][] = [
      ["unit id", () => found.unpaired.toUpperCase(), () => found.unpaired],
      ["external id", () => "jacket <b>claimed</b>", () => found.claimed],
      ["chip", () => found.chip_id.toLowerCase(), () => found.sending],
      ["serial", () => "41", () => found.claimed],
      ["id of a transaction that a lane sent", () => sentId.toUpperCase(), () => found.sending],
      [
        "hash of a transaction sent by a lane",
        () => sentHash.toUpperCase().replace("X", "x"),
        () => found.sending,
      ],
      ["hash of a transaction sent by a wallet", () => walletHash, () => found.walletClaim],
    ]
    for (const [by, text, id] of cases)
      test(`by ${by} finds the actor`, async () => {
        const response = await fetch(
          `${found.server.url}/console/search?q=${encodeURIComponent(` ${text()} `)}`,
          { redirect: "manual" },
        )
        expect(response.headers.get("location")).toBe(`/console/actors/${id()}`)
      })

    test("by the UID of a chip finds its unit, and by an unknown text nothing", async () => {
      const { read } = found.service.context.db
      const [chip] = await read.select().from(chips).where(eq(chips.chip_id, found.chip_id))
      expect((await search(read, String(chip?.uid))).map(({ id }) => id)).toEqual([found.sending])
      for (const text of ["", "%", "'", "0x", "99999999999999999999"])
        expect(await search(read, text)).toEqual([])
    })

    test("and a list show the oldest actors first, page by page, each once", async () => {
      const seen: string[] = []
      let address = `${found.server.url}/console/machines/unit-token/states/active`
      for (let at = 1; at <= 60; at++)
        await found.service.turn((turn) =>
          startActor(
            { ...turn, at: new Date(Date.UTC(2026, 3, 1, 0, 0, at % 7)) },
            {
              ...{ id: newId(), machine: "session-token", organization_id: found.caller.organization_id },
              input: { ttl_seconds: 600 },
            },
          ),
        )
      address = `${found.server.url}/console/machines/session-token/states/valid`
      for (let pages = 0; address !== "" && pages < 9; pages++) {
        const text = await (await fetch(address)).text()
        seen.push(
          ...[...text.matchAll(/<a class="mono" href="\/console\/actors\/([^"]+)"/g)].map(([, id]) =>
            String(id),
          ),
        )
        const next = /href="([^"]+)" rel="next"/.exec(text)?.[1]
        address = next ? found.server.url + next.replaceAll("&amp;", "&") : ""
      }
      const expected = await found.service.context.db.read
        .select({ id: actors.id })
        .from(actors)
        .where(eq(actors.machine, "session-token"))
        .orderBy(asc(actors.updated_at), asc(actors.id))
      expect(seen).toEqual(expected.map(({ id }) => id))
    })
  })

describe("while a demo runs", () => {
  test("the charts end up with the counts of the database", async () => {
    const folder = newFolder()
    const dev = await startDev(folder)
    const { page, requested } = await browser.newPage()
    await page.goto(`${dev.service.operator_url}/console`)
    const demo = Bun.spawn([process.execPath, join(root, "src/demo.ts"), "--json"], {
      env: { ...process.env, DATA_DIR: folder },
      stdout: "ignore",
      stderr: "inherit",
    })
    expect(await demo.exited).toBe(0)
    const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
    const rows = await db.read
      .select({ machine: actors.machine, state: actors.state, number: count() })
      .from(actors)
      .groupBy(actors.machine, actors.state)
    await db.close()
    expect(rows).toContainEqual({ machine: "unit-token", state: "active.claimed", number: 1 })
    for (const { machine, state, number } of rows)
      await page
        .locator(`[data-machine="${machine}"] [data-count-of="${state}"]:text-is("${number}")`)
        .waitFor()
    expect(requested.filter((address) => !address.startsWith(String(dev.service.operator_url)))).toEqual([])
    expect(await stopGently(dev.child)).toBe(0)
  }, 120_000)
})

describe("the operator port", () => {
  const token = "f3a9c1d7e5b80246f3a9c1d7e5b80246"

  test("requires the token if one is configured, except for probes", async () => {
    const server = startServer(scene.service, { operator_token: token })
    const statusOf = async (path: string, headers: Record<string, string>) =>
      (await fetch(server.url + path, { headers, redirect: "manual" })).status
    expect(await statusOf("/console", {})).toBe(401)
    expect(await statusOf("/console", { authorization: `Bearer ${token}x` })).toBe(401)
    expect(await statusOf("/console", { authorization: `Bearer ${token}` })).toBe(200)
    expect(await statusOf("/console", { accept: "text/html" })).toBe(303)
    expect(await statusOf("/nothing", {})).toBe(401)
    expect(await statusOf("/livez", {})).toBe(200)
    expect(await statusOf("/readyz", {})).toBe(200)
    await server.stop()
  })

  test("answers probes without a Host header, as load balancers send with HTTP/1.0, but shows them no page", async () => {
    const server = startServer(scene.service, { operator_token: token })
    const statusOf = async (path: string) => {
      const answer = Promise.withResolvers<string>()
      const socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: Number(new URL(server.url).port),
        socket: { data: (_socket, chunk) => answer.resolve(chunk.toString()) },
      })
      socket.write(`GET ${path} HTTP/1.0\r\n\r\n`)
      const text = await answer.promise
      socket.end()
      return Number(text.split(" ")[1])
    }
    for (const path of ["/livez", "/readyz"]) expect(await statusOf(path)).toBe(200)
    expect(await statusOf("/console")).toBe(400)
    await server.stop()
  })

  test("shows the login page and its assets to same-site requests without the token, and nothing else", async () => {
    const server = startServer(scene.service, { operator_token: token })
    const statusOf = async (path: string, init: RequestInit = {}) =>
      (await fetch(server.url + path, { ...init, redirect: "manual" })).status
    const style = await (await fetch(`${server.url}/console/console.css`)).text()
    const [, font = ""] = /url\("([^"]*)"\)/.exec(style) ?? []
    for (const path of ["/login", "/console/console.css", "/console/browser.js", "/console/icon.svg", font])
      expect([path, await statusOf(path)]).toEqual([path, 200])
    for (const path of ["/", "/console/counts", "/console/search?q=x", "/metrics", "/queues", "/loginx"])
      expect([path, await statusOf(path)]).toEqual([path, 401])
    for (const path of ["/livez", "/login", "/console", "/nothing"])
      expect([path, await statusOf(path, { method: "DELETE" })]).toEqual([path, 401])
    const foreign = { method: "POST", headers: { origin: "http://evil.example" } }
    for (const path of ["/livez", "/login", "/console", "/nothing"])
      expect([path, await statusOf(path, foreign)]).toEqual([path, 403])
    await server.stop()
  })

  test("lists the methods of a path in Allow, and sends its security headers with every response", async () => {
    const { url } = scene.server
    for (const [path, allow] of [
      ["/livez", "GET, HEAD"],
      ["/login", "GET, HEAD, POST"],
      ["/console/retry", "POST"],
    ]) {
      const { status, headers } = await fetch(url + path, { method: "DELETE" })
      expect([path, status, headers.get("allow")]).toEqual([path, 405, allow])
    }
    const evil = { headers: { host: "evil.example" } }
    for (const [path, init, status] of [
      ["/livez", {}, 200],
      ["/console", {}, 200],
      ["/console", evil, 403],
      ["/console", { method: "PUT" }, 405],
      ["/nothing", {}, 404],
    ] as const) {
      const answer = await fetch(url + path, init)
      expect([path, answer.status]).toEqual([path, status])
      expect(answer.headers.get("content-security-policy")).toStartWith(
        "default-src 'none'; script-src 'self'",
      )
      for (const [name, value] of [
        ["x-content-type-options", "nosniff"],
        ["cross-origin-opener-policy", "same-origin"],
        ["cross-origin-resource-policy", "same-origin"],
        ["referrer-policy", "same-origin"],
        ["cache-control", "no-store"],
      ])
        expect([name, answer.headers.get(String(name))]).toEqual([name, value])
    }
  })

  test("exchanges the token for an HttpOnly cookie that expires", async () => {
    const server = startServer(scene.service, { operator_token: token })
    const logIn = (text: string) =>
      fetch(`${server.url}/login`, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ token: text }),
        headers: { origin: server.url },
      })
    expect((await logIn("wrong")).status).toBe(403)
    const cookie = String((await logIn(token)).headers.get("set-cookie"))
    expect(cookie).toContain("HttpOnly; SameSite=Strict")
    expect(cookie).not.toContain(token)
    const [pair = ""] = cookie.split(";")
    const statusWith = async (sent: string) =>
      (await fetch(`${server.url}/console`, { headers: { cookie: sent } })).status
    expect(await statusWith(pair)).toBe(200)
    expect(await statusWith(pair.replace(/=\d/, "=9"))).toBe(401)
    await server.stop()
  })

  test("without a configured token serves only this machine, and no page of another site", async () => {
    const { url } = scene.server
    const statusOf = async (path: string, init: RequestInit) => (await fetch(url + path, init)).status
    expect(await statusOf("/console", { headers: { host: "evil.example" } })).toBe(403)
    const retry = { method: "POST", body: new URLSearchParams({ id: scene.stopped }) }
    expect(await statusOf("/console/retry", { ...retry, headers: { origin: "http://evil.example" } })).toBe(
      403,
    )
    expect(await statusOf("/console/retry", { ...retry, headers: { origin: "null" } })).toBe(403)
    expect(await statusOf("/console", { method: "DELETE" })).toBe(405)
    expect(await statusOf("/console/actors/%zz", {})).toBe(404)
  })

  test("ignores a webhook event whose body looks like a form", async () => {
    const { service, server, caller } = scene
    const { organization_id } = caller
    const suspend = `${server.url}/console/suspend`
    const event = { type: "webhook_endpoint.test", data: { description: `&id=${organization_id}&` } }
    const message = {
      url: suspend,
      event_id: newId(),
      body: JSON.stringify(event),
      secrets: ["whsec_AAAA"],
      at: new Date(),
    }
    const reach = { allowLoopback: true, resolve: resolveHost, patience_milliseconds: 2_000 }
    expect(await sendWebhook(message, reach)).toMatchObject({ response_status: 415 })
    expect(await sendWebhook({ ...message, url: `${server.url}/login` }, reach)).toMatchObject({
      response_status: 415,
    })
    const [organization] = await service.context.db.read
      .select()
      .from(organizations)
      .where(eq(organizations.id, organization_id))
    expect(organization?.suspended_at).toBeNull()
    const page = `${server.url}/console/organizations/${organization_id}`
    for (const act of ["suspend", "resume"]) {
      const body = new URLSearchParams({ id: organization_id })
      const form = { method: "POST", body, headers: { origin: server.url, referer: page } } as const
      const { status, headers } = await fetch(`${server.url}/console/${act}`, { ...form, redirect: "manual" })
      expect([act, status, headers.get("location")]).toEqual([
        act,
        303,
        `${new URL(page).pathname}?done=${act}`,
      ])
    }
  })
})

function nodesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesOf)]
}

/** Each transition as source, event and target, as counted from the machine definition. */
function transitionsOf(node: AnyStateNode): string[] {
  const always = (node.always ?? []).map((transition) => ["always", transition] as const)
  const named = [...node.transitions].flatMap(([event, all]) => all.map((each) => [event, each] as const))
  return [...always, ...named].flatMap(([event, { target }]) =>
    (target ?? [node]).map((each) => [node.path.join("."), event, each.path.join(".")].join(" | ")),
  )
}

/** The drawn elements, each as its attributes and whether it is visible. */
async function attributes(drawn: Locator, selector: string, names: string[]): Promise<string[]> {
  const texts = await drawn.locator(selector).evaluateAll((parts: DrawnPart[], wanted) => {
    return parts.map((part) => wanted.map((name) => part.getAttribute(name)).join(" | "))
  }, names)
  return texts.sort()
}

async function invisible(drawn: Locator): Promise<number> {
  return await drawn
    .locator(".state, .transition .edge, .transition .label")
    .evaluateAll((parts: DrawnPart[]) => {
      const boxes = parts.map((part) => part.getBoundingClientRect())
      return boxes.filter(({ width, height }) => width + height < 10).length
    })
}

/** The part of the DOM element interface that these tests need. */
type DrawnPart = {
  getAttribute(name: string): string | null
  getBoundingClientRect(): { width: number; height: number }
}

function countOf(page: Page, machine: MachineName, state: string) {
  return page.locator(`[data-machine="${machine}"] [data-count-of="${state}"]`)
}
