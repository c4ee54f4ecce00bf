import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  type Mock,
  spyOn,
  test,
} from "bun:test"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { runInNewContext } from "node:vm"
import { createClient, dataOf, ServiceError, UnexpectedAnswer } from "../../clients/typescript/client.ts"
import {
  EndedOtherwise,
  WaitedTooLong,
  waitForClaim,
  waitForCollection,
  waitForUnit,
} from "../../clients/typescript/wait-for.ts"
import { until } from "../harness/engine.ts"

type Seen = { method: string; path: string; authorization: string | null; key: string | null; body: string }

/** A server that returns the test's responses in turn and records the requests. */
const seen: Seen[] = []
let answers: (() => Response | Promise<Response>)[] = []
let server: Bun.Server<undefined>
const baseUrl = () => `http://localhost:${server.port}`

beforeAll(() => {
  server = Bun.serve({
    hostname: "localhost",
    port: 0,
    async fetch(request) {
      seen.push({
        method: request.method,
        path: new URL(request.url).pathname + new URL(request.url).search,
        authorization: request.headers.get("authorization"),
        key: request.headers.get("idempotency-key"),
        body: await request.text(),
      })
      return answers.shift()?.() ?? Response.json({ ok: true })
    },
  })
})
beforeEach(() => {
  seen.length = 0
  answers = []
})
afterAll(() => server.stop(true))

let timers: Mock<typeof setTimeout> | undefined
afterEach(() => timers?.mockRestore())
/** Holds timers of this many milliseconds back: each ends when the test calls it. */
function holdTimers(isHeld: (milliseconds: number) => boolean): (() => void)[] {
  const held: (() => void)[] = []
  const start = globalThis.setTimeout
  const startOrHold = (end: () => void, milliseconds = 0) => {
    if (!isHeld(milliseconds)) return start(end, milliseconds)
    held.push(end)
    return start(() => {}, 0)
  }
  timers = spyOn(globalThis, "setTimeout").mockImplementation(startOrHold as typeof setTimeout)
  return held
}
const ofAttempts = (milliseconds: number) => milliseconds === 15_000

const silent = () => new Promise<Response>(() => {})
/** Begins a response of this type and never ends it. */
const stalled = (type: string, status: number) => () => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
  })
  return new Response(body, { status, headers: { "content-type": type } })
}

const refuse =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  () =>
    Response.json(
      { error: { code, message: "No.", request_id: "req_1", doc_url: `http://docs.test/errors/${code}` } },
      { status, headers },
    )
/** Refuses for a while, a moment before something happens. */
const refuseBefore = (happen: () => void) => () => {
  setTimeout(happen, 50)
  return refuse(429, "rate_limit.exceeded", { "retry-after": "5" })()
}
const client = (patience_milliseconds = 10_000) =>
  createClient({ base_url: baseUrl(), token: "end_sk_test", patience_milliseconds })
const createUnit = (api = client()) =>
  api.POST("/v1/units", { body: { collection_id: "0199c2f4-6a10-7c3e-9d52-8f4b1e7a2c01" } })

describe("the TypeScript client", () => {
  test("has the types of the OpenAPI document", async () => {
    const command = [process.execPath, join(import.meta.dir, "../../src/generate-client.ts"), "--check"]
    const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" })
    expect(await new Response(child.stderr).text()).toBe("")
    expect(await child.exited).toBe(0)
  }, 30_000)

  test("repeats a request after Retry-After", async () => {
    answers = [refuse(429, "rate_limit.exceeded", { "retry-after": "1" })]
    const begin = performance.now()
    expect((await createUnit()).response.status).toBe(200)
    expect(performance.now() - begin).toBeGreaterThan(990)
    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual(seen[0] as Seen)
  })

  test("waits longer each time if it is told to wait for 0 seconds, as some CDNs do when the service is away", async () => {
    const away = refuse(503, "service.unavailable", { "retry-after": "0" })
    answers = Array.from({ length: 1_000 }, () => away)
    expect((await createUnit(client(1_000))).response.status).toBe(503)
    expect(seen.length).toBeWithin(2, 8)
  })

  test("sends a new idempotency key with each POST, or the key that is given", async () => {
    await createUnit()
    await createUnit()
    await client().POST("/v1/units", {
      params: { header: { "Idempotency-Key": "mine" } },
      body: { collection_id: "0199c2f4-6a10-7c3e-9d52-8f4b1e7a2c01" },
    })
    const [first, second, third] = seen.map(({ key }) => key)
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(second).not.toBe(first as string)
    expect(third).toBe("mine")
  })

  test("sends no idempotency key with a GET", async () => {
    await client().GET("/v1/units", { params: { query: { limit: 2 } } })
    expect(seen).toMatchObject([
      { path: "/v1/units?limit=2", key: null, authorization: "Bearer end_sk_test" },
    ])
  })

  test("repeats a request after a 5xx", async () => {
    answers = [refuse(500, "internal.error")]
    expect((await createUnit()).response.status).toBe(200)
    expect(seen).toHaveLength(2)
  })

  test("reaches the service again after a failed connection", async () => {
    const addresses = ["http://localhost:1", baseUrl()]
    const moving = createClient({ base_url: () => addresses.shift() ?? baseUrl(), token: "end_sk_test" })
    expect((await createUnit(moving)).response.status).toBe(200)
    expect(seen).toHaveLength(1)
  })

  test("reaches the service again where a failed fetch throws an Error of another realm, as under Jest", async () => {
    const failed: unknown = runInNewContext('new TypeError("fetch failed")')
    let attempts = 0
    const api = (patience_milliseconds: number) =>
      createClient({
        base_url: baseUrl(),
        token: "end_sk_test",
        patience_milliseconds,
        fetch: (request) => (attempts++ % 2 === 0 ? Promise.reject(failed) : fetch(request)),
      })
    expect((await createUnit(api(10_000))).response.status).toBe(200)
    expect(attempts).toBe(2)
    const lost = await createUnit(api(0)).catch((error) => error)
    expect(lost).toBe(failed)
  })

  test("repeats a request if the connection fails in the middle of the response", async () => {
    const keys: unknown[] = []
    const breaking = createServer(({ headers }, response) => {
      keys.push(headers["idempotency-key"])
      response.writeHead(201, { "content-type": "application/json" })
      if (keys.length > 1) response.end('{"id":"u"}')
      else response.write('{"id":', () => response.destroy())
    })
    await new Promise<void>((resolve) => breaking.listen(0, "localhost", resolve))
    const { port } = breaking.address() as AddressInfo
    const api = createClient({ base_url: `http://localhost:${port}`, token: "end_sk_test" })
    expect((await dataOf(createUnit(api))).id).toBe("u")
    expect(keys).toEqual([keys[0], keys[0]])
    breaking.close()
  })

  test("repeats a request if the response ends early and nothing else tells", async () => {
    const cutOff = () => new Response('{"id":"', { headers: { "content-type": "application/json" } })
    const empty = () => new Response("", { headers: { "content-type": "application/json" } })
    answers = [cutOff, empty, () => Response.json({ id: "u" }, { status: 201 })]
    expect((await dataOf(createUnit())).id).toBe("u")
    expect(seen).toHaveLength(3)
    expect(seen[2]).toEqual(seen[0] as Seen)
    for (const answer of [cutOff, empty]) {
      answers = [answer]
      expect(await dataOf(createUnit(client(0))).catch((error) => error)).toBeInstanceOf(UnexpectedAnswer)
      answers = [answer]
      const { events } = client(0)
      expect(
        await events
          .list()
          .next()
          .catch((error) => error),
      ).toBeInstanceOf(UnexpectedAnswer)
    }
  })

  test.each([
    ["is silent", silent],
    ["does not finish its response", stalled("application/json", 201)],
    ["has a proxy that does not finish its page", stalled("text/html", 404)],
  ])("repeats a request if the service %s for 15 seconds", async (_what, answer) => {
    const ends = holdTimers(ofAttempts)
    answers = [answer]
    const asked = createUnit()
    await until(async () => seen.length === 1)
    ends[0]?.()
    expect((await asked).response.status).toBe(200)
    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual(seen[0] as Seen)
  })

  test("gives up after 15 seconds of silence that exceed its patience, even where fetch ignores signals", async () => {
    const ends = holdTimers(ofAttempts)
    const asked: Request[] = []
    const deaf = async (request: Request) => {
      asked.push(request)
      return await silent()
    }
    const api = createClient({ base_url: baseUrl(), token: "t", patience_milliseconds: 0, fetch: deaf })
    const lost = createUnit(api).catch(messageOf)
    await until(async () => asked.length === 1)
    ends[0]?.()
    expect(await lost).toBe("no response within 15 seconds")
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true])
  })

  test("stops a request under way when it is aborted", async () => {
    answers = [silent]
    const abort = new AbortController()
    const asked = client().GET("/v1/units", { signal: abort.signal })
    await until(async () => seen.length === 1)
    abort.abort("the page was left")
    expect(await asked.catch((error) => error)).toBe("the page was left")
    expect(seen).toHaveLength(1)
  })

  test("takes a 204 for what it is where a gateway gives it a media type, as Amazon's does", async () => {
    answers = [() => new Response(null, { status: 204, headers: { "content-type": "application/json" } })]
    const { response } = await client().DELETE("/v1/session-tokens/current")
    expect([response.status, seen.length]).toEqual([204, 1])
  })

  test("does not repeat a request after a permanent error, and throws its code", async () => {
    answers = [refuse(409, "unit.already_exists")]
    const refused = dataOf(createUnit())
    expect(await refused.catch((error) => error)).toBeInstanceOf(ServiceError)
    expect(await refused.catch(({ code, status }) => ({ code, status }))).toEqual({
      code: "unit.already_exists",
      status: 409,
    })
    expect(seen).toHaveLength(1)
  })

  const messageFor = async (details: { formErrors: string[]; fieldErrors: Record<string, string[]> }) => {
    const error = {
      code: "validation.failed",
      message: "The request is not valid.",
      request_id: "req_1",
      doc_url: "http://docs.test",
      details,
    }
    answers = [() => Response.json({ error }, { status: 400 })]
    return await dataOf(createUnit()).catch(({ message }: ServiceError) => message)
  }

  test("names each field that is refused in the message of the error, with what is wrong with it", async () => {
    const name = ["must be a string"]
    expect(await messageFor({ formErrors: [], fieldErrors: { name, bogus: ["is not a known field"] } })).toBe(
      "validation.failed: The request is not valid. name: must be a string; bogus: is not a known field (req_1)",
    )
    const chips = ["[3].unit_id: is required", "[4]: must be an object"]
    expect(
      await messageFor({ formErrors: ["The body has the key a."], fieldErrors: { name: [], chips } }),
    ).toBe(
      "validation.failed: The request is not valid. The body has the key a; chips: [3].unit_id: is required; chips: [4]: must be an object (req_1)",
    )
    expect(await messageFor({ formErrors: [], fieldErrors: {} })).toBe(
      "validation.failed: The request is not valid. (req_1)",
    )
  })

  test("keeps the message of an error short, however much is wrong with the request", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `${index}${"x".repeat(10_000)}`)
    const fieldErrors = Object.fromEntries(names.map((name) => [name, ["is not a known field"]]))
    const message = String(await messageFor({ formErrors: [], fieldErrors }))
    expect(message.length).toBeLessThan(2_200)
    expect(message).toEndWith("…; and 10 more (req_1)")
  })

  /** What each way to ask throws, without a single attempt. */
  const refusalsOf = async (options: { base_url?: unknown; token?: unknown }) => {
    let attempts = 0
    const lost = async () => {
      attempts++
      throw new Error("fetch failed")
    }
    const given = { base_url: baseUrl(), token: "end_sk_test", fetch: lost, ...options }
    const api = createClient(given as Parameters<typeof createClient>[0])
    const ways = [createUnit(api), api.events.list().next(), api.events.stream().next()]
    const messages = await Promise.all(ways.map((asked: Promise<unknown>) => asked.then(String, messageOf)))
    expect(attempts).toBe(0)
    return messages
  }
  const messageOf = ({ message }: Error) => message

  test.each([undefined, null, "", "\n", () => "", async () => undefined])(
    "says at once that the token is missing: %p",
    async (token) => {
      const missing = "token is missing: give an API key, a session token or a publishable key"
      expect(await refusalsOf({ token })).toEqual([missing, missing, missing])
    },
  )

  test.each([
    undefined,
    "",
    "localhost:3000",
    "api.example.com",
    "ftp://api.example.com",
    "/api",
    "http://",
    () => "localhost:3000",
  ])("says at once that the base URL is not one: %p", async (base_url) => {
    const wrong = "base_url is missing or does not begin with http:// or https://: give the URL of the API"
    expect(await refusalsOf({ base_url })).toEqual([wrong, wrong, wrong])
  })

  test("takes a base URL and a token that end in slashes or a line break, as from a file", async () => {
    const api = createClient({ base_url: `${baseUrl()}//\n`, token: "end_sk_test\n" })
    await api.GET("/v1/units")
    expect(seen).toMatchObject([{ path: "/v1/units", authorization: "Bearer end_sk_test" }])
  })

  test("needs no token for a request that brings its own credential", async () => {
    const headers = { authorization: "Bearer end_sess_own" }
    await createClient({ base_url: baseUrl(), token: "" }).GET("/v1/units", { headers })
    expect(seen).toMatchObject([{ authorization: "Bearer end_sess_own" }])
  })

  test("stops waiting when it is aborted", async () => {
    const abort = new AbortController()
    answers = [refuseBefore(() => abort.abort())]
    const isLater = longAfter(abort.signal)
    const asked = client().GET("/v1/units", { signal: abort.signal })
    expect(await asked.catch(({ name }) => name)).toBe("AbortError")
    expect(isLater()).toBe(false)
    expect(seen).toHaveLength(1)
  })

  test.each(["the page was left", { left: true }, undefined])(
    "rejects with the abort reason, whatever that is: %j",
    async (reason) => {
      const abort = new AbortController()
      answers = [refuseBefore(() => abort.abort(reason))]
      const asked = client().GET("/v1/units", { signal: abort.signal })
      expect(await asked.catch((error) => error)).toBe(abort.signal.reason)
      expect(seen).toHaveLength(1)
    },
  )

  test("waits for a conflict that resolves by itself, but not for one that leads to another conflict", async () => {
    answers = [refuse(409, "unit.issuance_pending", { "retry-after": "1" })]
    expect((await createUnit()).response.status).toBe(200)
    expect(seen).toHaveLength(2)

    answers = [refuse(409, "transfer.in_progress", { "retry-after": "1" })]
    const refused = await dataOf(createUnit()).catch((error) => error)
    expect(refused).toMatchObject({ code: "transfer.in_progress", retry_after_seconds: 1 })
    expect(seen).toHaveLength(3)
  })

  const page = (status: number) => () =>
    new Response("<h1>Not here</h1>", { status, headers: { "content-type": "text/html" } })
  const others: [what: string, answer: () => Response][] = [
    ["a proxy's page with 404", page(404)],
    ["a proxy's page with status 200", page(200)],
    ["a success without a body", () => new Response("")],
    ["JSON of another shape", () => Response.json({ error: null }, { status: 404 })],
  ]
  for (const [what, answer] of others)
    test(`does not take ${what} for a response of the service`, async () => {
      const { events } = client()
      const ways = [() => dataOf(createUnit()), () => events.list().next(), () => events.stream().next()]
      for (const ask of ways) {
        answers = [answer]
        const { status } = answer()
        const refused = await ask().catch((error) => error)
        expect(refused).toBeInstanceOf(UnexpectedAnswer)
        expect(refused.status).toBe(status)
      }
    })

  test("does not follow a redirect, which would make a GET of a POST, or take its credential away", async () => {
    const { events } = client()
    const ways = [() => dataOf(createUnit()), () => events.list().next(), () => events.stream().next()]
    for (const ask of ways)
      for (const status of [301, 302, 307, 308]) {
        answers = [() => new Response(null, { status, headers: { location: "/elsewhere" } })]
        const refused = await ask().catch((error) => error)
        expect(refused).toBeInstanceOf(UnexpectedAnswer)
        expect(refused.status).toBe(status)
      }
    expect(seen.map(({ path }) => path)).not.toContain("/elsewhere")
  })

  test("gives up when the wait would exceed its time limit", async () => {
    answers = [refuse(429, "rate_limit.exceeded", { "retry-after": "60" })]
    expect((await createUnit(client(1_000))).response.status).toBe(429)
    expect(seen).toHaveLength(1)
  })
})

describe("an event stream", () => {
  const headers = { "content-type": "text/event-stream; charset=utf-8" }
  const message = (id: string) => () =>
    new Response(`id: ${id}\ndata: ${JSON.stringify({ id })}\n\n`, { headers })
  const page = () => new Response("<h1>Nobody there</h1>", { status: 502 })
  /** Returns the IDs of the first `count` events of a stream, or of as many as arrive within a while. */
  async function watched(count: number): Promise<string[]> {
    const ids: string[] = []
    const signal = AbortSignal.timeout(50_000)
    for await (const { id } of client(0).events.stream({}, { signal })) if (ids.push(id) === count) break
    return ids
  }

  test("continues after a temporary error: a lost connection, an unreachable service, a proxy's page, too many streams", async () => {
    const unavailable = refuse(503, "internal.error", { "retry-after": "5" })
    const tooMany = refuse(429, "rate_limit.exceeded", { "retry-after": "5" })
    answers = [message("e1"), unavailable, message("e2"), page, message("e3"), tooMany, message("e4")]
    expect(await watched(4)).toEqual(["e1", "e2", "e3", "e4"])
  }, 60_000)

  test("ends at once when it is aborted, even while the service is unreachable", async () => {
    answers = [message("e1"), ...Array(9).fill(page)]
    const abort = new AbortController()
    const isLater = longAfter(abort.signal)
    for await (const { id } of client(0).events.stream({}, { signal: abort.signal })) {
      expect(id).toBe("e1")
      setTimeout(() => abort.abort(), 1_800)
    }
    expect([abort.signal.aborted, isLater()]).toEqual([true, false])
  }, 30_000)

  test("ends when it is aborted also where the runtime no longer passes that on to its body", async () => {
    const said = new TextEncoder().encode('id: e1\ndata: {"id":"e1"}\n\n')
    const deaf = async () =>
      new Response(new ReadableStream({ start: (body) => body.enqueue(said) }), { headers })
    const abort = new AbortController()
    const api = createClient({ base_url: baseUrl(), token: "t", fetch: deaf })
    const ids: string[] = []
    for await (const { id } of api.events.stream({}, { signal: abort.signal })) {
      ids.push(id)
      abort.abort()
    }
    expect(ids).toEqual(["e1"])
  })

  test("has 15 seconds to begin, and then goes on for longer", async () => {
    const ends = holdTimers(ofAttempts)
    const { promise: isLater, resolve: later } = Promise.withResolvers<void>()
    async function* messages() {
      yield await message("e1")().bytes()
      await isLater
      yield await message("e2")().bytes()
    }
    answers = [silent, () => new Response(messages(), { headers })]
    const stream = client().events.stream()
    const first = stream.next()
    await until(async () => seen.length === 1)
    ends[0]?.()
    expect((await first).value?.id).toBe("e1")
    for (const end of ends) end()
    later()
    expect((await stream.next()).value?.id).toBe("e2")
    expect(seen).toHaveLength(2)
    await stream.return(undefined)
  })

  test("ends with a permanent error, and with any error of the first connection", async () => {
    answers = [message("e1"), refuse(401, "auth.unauthorized")]
    await expect(watched(2)).rejects.toThrow("auth.unauthorized")
    answers = [() => new Response("<h1>Not here</h1>", { status: 404 })]
    await expect(watched(1)).rejects.toBeInstanceOf(UnexpectedAnswer)
    answers = [refuse(503, "internal.error", { "retry-after": "5" })]
    await expect(watched(1)).rejects.toThrow("internal.error")
  }, 30_000)
})

describe("polling", () => {
  const claim = (status: string, failure: unknown = null) => {
    return () => Response.json({ id: "c", unit_id: "u", status, failure })
  }
  const asked = { unit_id: "u", id: "c" }
  const soon = { interval_milliseconds: 5 }

  test("waits longer after each read until the resource has the wanted status", async () => {
    answers = [claim("claiming"), claim("claiming"), claim("claimed")]
    const read: string[] = []
    const claimed = await waitForClaim(client(), asked, {
      ...soon,
      onRead: ({ status }) => read.push(status),
    })
    expect(claimed.status).toBe("claimed")
    expect(read).toEqual(["claiming", "claiming", "claimed"])
    expect(seen.map(({ path }) => path)).toEqual(Array(3).fill("/v1/units/u/claims/c"))
  })

  test("throws the failure if the resource ends in another status", async () => {
    const failure = { code: "claim.superseded", message: "Somebody was faster." }
    answers = [claim("failed", failure)]
    const ended = await waitForClaim(client(), asked, soon).catch((error) => error)
    expect(ended).toBeInstanceOf(EndedOtherwise)
    expect(ended).toMatchObject({ status: "failed", failure })
    expect(ended.message).toBe(
      "claim c should become claimed but is failed: claim.superseded: Somebody was faster.",
    )
  })

  test("gives up at its time limit and returns what it read last", async () => {
    answers = Array(9).fill(claim("claiming"))
    const patience = { ...soon, patience_milliseconds: 20 }
    const ended = await waitForClaim(client(), asked, patience).catch((error) => error)
    expect(ended).toBeInstanceOf(WaitedTooLong)
    expect(ended.resource.status).toBe("claiming")
    expect(ended.message).toBe("claim c should become claimed but is still claiming")
  })

  test.each([
    ["", [], "no response tells whether the claim is claimed"],
    [" from then on", [claim("claiming")], "claim c should become claimed but is still claiming"],
  ])("gives up at its time limit if the service is silent%s", async (_since, before, message) => {
    const ends = holdTimers((milliseconds) => milliseconds > 30_000)
    answers = [...before, silent]
    const ended = waitForClaim(client(), asked, { ...soon, patience_milliseconds: 60_000 }).catch(
      (error) => error,
    )
    await until(async () => seen.length > before.length)
    ends.at(-1)?.()
    expect(await ended).toBeInstanceOf(WaitedTooLong)
    expect((await ended).message).toBe(message)
  })

  test("waits without a time limit if its patience is endless", async () => {
    const late = async () => {
      await Bun.sleep(50)
      return claim("claimed")()
    }
    answers = [late]
    const endless = { ...soon, patience_milliseconds: Number.POSITIVE_INFINITY }
    expect((await waitForClaim(client(), asked, endless)).status).toBe("claimed")
  })

  test("says which resource did not get there, and of a unit without a chip that it has none", async () => {
    const soonOver = { ...soon, patience_milliseconds: 0 }
    const unit = (chip_id: string | null) => () =>
      Response.json({ id: "u", chip_id, collection: { token: { status: "pending" } } })
    const collection = () => Response.json({ id: "a", contract: { status: "deploying" } })
    answers = [unit(null), unit("04A0B1C2D3"), collection]
    const messages = [
      await waitForUnit(client(), "u", soonOver).catch(({ message }) => message),
      await waitForUnit(client(), "u", soonOver).catch(({ message }) => message),
      await waitForCollection(client(), "a", soonOver).catch(({ message }) => message),
    ]
    expect(messages).toEqual([
      "unit u should become active but is still pending: no chip is paired to it",
      "unit u should become active but is still pending",
      "collection a should become active but is still deploying",
    ])
  })

  test("stops when it is aborted", async () => {
    answers = Array(9).fill(claim("claiming"))
    const signal = AbortSignal.timeout(50)
    const isLater = longAfter(signal)
    const ended = waitForClaim(client(), asked, { interval_milliseconds: 5_000, signal })
    expect(await ended.catch(({ name }) => name)).toBe("TimeoutError")
    expect(isLater()).toBe(false)
  })
})

/** Tells whether a signal was aborted more than a moment ago, by a timer that a pause of the whole process delays, too. */
function longAfter(signal: AbortSignal): () => boolean {
  let isLater = false
  signal.addEventListener("abort", () => {
    setTimeout(() => {
      isLater = true
    }, 300).unref()
  })
  return () => isLater
}
