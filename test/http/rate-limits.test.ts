import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test"
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import fc from "fast-check"
import type { Redis } from "ioredis"
import { startServer } from "../../src/api/server.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { clientAddress } from "../../src/http/client-address.ts"
import { createRateLimits, type RateLimits } from "../../src/http/rate-limits.ts"
import { type Config, loadConfig } from "../../src/platform/config.ts"
import { newCredential } from "../../src/platform/credentials.ts"
import { newId } from "../../src/platform/ids.ts"
import type { Log } from "../../src/platform/log.ts"
import { connectWaitingRedis } from "../../src/platform/redis.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
} from "../harness/api.ts"
import { until } from "../harness/engine.ts"
import { startLine } from "../harness/line.ts"
import { type RedisServer, startRedis } from "../harness/redis.ts"
import { startBeside } from "../harness/service-beside.ts"
import { activeCollection, importedChip, newUnit } from "../harness/services.ts"

const e = "0123456789ABCDEF0123456789ABCDEF"

let service: HttpService
let maker: Customer
let opened: HttpService[] = []

beforeAll(async () => {
  service = await startService()
  maker = await createCustomer(service)
})
afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()))
  opened = []
})
afterAll(() => service.close())

describe("stored responses", () => {
  const keyed = (limited: HttpService, key: string, name = "n") =>
    ask(limited, "POST /v1/collections", {
      as: maker.key,
      body: { name },
      headers: { "idempotency-key": key },
    })

  test("are limited for each organization; replays and requests without an idempotency key do not count", async () => {
    const limited = start({ kept_answer: { requests: 2, seconds: 600 } })
    const first = await keyed(limited, "kept-1")
    expect((await keyed(limited, "kept-2")).status).toBe(201)
    const refused = await keyed(limited, "kept-3")
    expect([refused.status, refused.code]).toEqual([429, "rate_limit.exceeded"])
    expect(refused.headers.get("retry-after")).toBe("300")
    expect((await keyed(limited, "kept-1")).text).toBe(first.text)
    const plain = await ask(limited, "POST /v1/collections", { as: maker.key, body: { name: "n" } })
    expect(plain.status).toBe(201)
    const other = await createCustomer(service)
    const theirs = { as: other.key, body: { name: "n" }, headers: { "idempotency-key": "kept-3" } }
    expect((await ask(limited, "POST /v1/collections", theirs)).status).toBe(201)
  })

  test("are also limited by their bytes, and an error response does not count", async () => {
    const limited = start({ kept_answer: { requests: 8, seconds: 600 } })
    for (let time = 1; time <= 9; time++) expect((await keyed(limited, "refused", "")).status).toBe(400)
    const { id } = (await keyed(limited, "bytes-1")).body
    const large = { attributes: { text: "x".repeat(15_000) }, metadata: { text: "x".repeat(7_500) } }
    const unit = (key: string) =>
      ask(limited, "POST /v1/units", {
        as: maker.key,
        body: { collection_id: id, ...large },
        headers: { "idempotency-key": key },
      })
    for (let time = 2; time <= 7; time++) expect((await unit(`bytes-${time}`)).status).toBe(201)
    expect((await unit("bytes-8")).code).toBe("rate_limit.exceeded")
  })

  test("may exceed the bytes that are left, and the excess has to refill first", async () => {
    const { limits, advance } = limitsOnClock({ kept_answer: { requests: 4, seconds: 600 } })
    const allBytes = 64 * 1024 * 1.024
    await limits.countKeptAnswer("large", 2 * allBytes)
    const owing = await limits.keptAnswers("large")
    expect([owing.is_exhausted, owing.remaining]).toEqual([true, 0])
    expect(owing.milliseconds_until_next).toBeWithin(600_000, 600_100)
    advance(599_000)
    expect((await limits.keptAnswers("large")).is_exhausted).toBe(true)
    advance(1_100)
    expect((await limits.keptAnswers("large")).is_exhausted).toBe(false)
  })

  test("require a wait that is long enough for both their number and their bytes", async () => {
    const { limits } = limitsOnClock({ kept_answer: { requests: 4, seconds: 600 } })
    for (let time = 1; time <= 4; time++) await limits.countKeptAnswer("many", 16 * 1024 * 1.024 + 1)
    expect((await limits.keptAnswers("many")).milliseconds_until_next).toBeWithin(149_999, 150_001)
  })
})

test("the tap URLs of chips are rate limited for each client IP address", async () => {
  const limited = start({ tap_redirect: { requests: 2, seconds: 600 } })
  const open = () => fetch(`${limited.base_url}/t/0123456789`, { redirect: "manual" })
  expect([(await open()).status, (await open()).status]).toEqual([200, 200])
  const refused = await open()
  expect(refused.status).toBe(429)
  expect(refused.headers.get("retry-after")).toBe("300")
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limit.exceeded" } })
  expect((await ask(limited, "GET /v1/settings", { as: maker.key })).status).toBe(200)
})

test("token metadata is rate limited for each client IP address, separately from tap URLs", async () => {
  const limited = start({ metadata: { requests: 2, seconds: 600 } })
  const origin = "https://wallet.example"
  const read = () => fetch(`${limited.base_url}/metadata/1/0x${"00".repeat(20)}/1`, { headers: { origin } })
  expect([(await read()).status, (await read()).status]).toEqual([404, 404])
  const refused = await read()
  expect(refused.status).toBe(429)
  expect(refused.headers.get("retry-after")).toBe("300")
  expect(refused.headers.get("access-control-allow-origin")).toBe(origin)
  expect((await fetch(`${limited.base_url}/t/0123456789`)).status).toBe(200)
})

describe("a caller", () => {
  test("sees the state of its bucket in every response, errors included", async () => {
    const limited = start({ api_key: { requests: 3, seconds: 600 } })
    const now = service.context.clock().getTime() / 1000
    for (const [question, remaining, seconds] of [
      ["GET /v1/settings", 2, 200],
      ["GET /v1/units/1", 1, 400],
      ["GET /v1/units?x=1", 0, 600],
    ] as const) {
      const { headers } = await ask(limited, question, { as: maker.key })
      expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual([
        "3",
        `${remaining}`,
      ])
      expect(Number(headers.get("x-ratelimit-reset"))).toBe(now + seconds)
      expect(headers.has("retry-after")).toBe(false)
    }
  })

  test("gets 429 with an empty bucket before anything else is checked", async () => {
    const limited = start({ api_key: { requests: 1, seconds: 600 } })
    await ask(limited, "GET /v1/settings", { as: maker.key })
    const answer = await ask(limited, "POST /v1/units", { as: maker.key, body: "{bad" })
    expect([answer.status, answer.code]).toEqual([429, "rate_limit.exceeded"])
    expect(answer.headers.get("x-ratelimit-remaining")).toBe("0")
    expect(answer.headers.get("retry-after")).toBe("600")
  })

  test("may continue after Retry-After, as often as its bucket has refilled", async () => {
    const limited = start({ api_key: { requests: 20, seconds: 120 } })
    const get = () => ask(limited, "GET /v1/settings", { as: maker.key })
    const statuses = async (times: number) => {
      const answers: number[] = []
      for (let time = 1; time <= times; time++) answers.push((await get()).status)
      return answers
    }
    expect(await statuses(20)).toEqual(Array(20).fill(200))
    const { headers } = await get()
    expect(headers.get("retry-after")).toBe("6")
    expect(headers.get("x-ratelimit-reset")).toBe(`${service.context.clock().getTime() / 1_000 + 120}`)
    service.advance(5_999)
    expect((await get()).headers.get("retry-after")).toBe("1")
    service.advance(1)
    expect(await statuses(2)).toEqual([200, 429])
    service.advance(60_000)
    expect(await statuses(11)).toEqual([...Array(10).fill(200), 429])
    service.advance(3_600_000)
    expect(await statuses(21)).toEqual([...Array(20).fill(200), 429])
  })

  test("has a bucket of its own for each API key and each session", async () => {
    const limited = start({
      api_key: { requests: 1, seconds: 600 },
      session_token: { requests: 1, seconds: 600 },
    })
    const visitors = [await createVisitor(service, maker), await createVisitor(service, maker)]
    const other = await createCustomer(service)
    for (const [question, tokens] of [
      ["GET /v1/settings", [maker.key, other.key]],
      ["GET /v1/session-tokens/current", visitors.map(({ token }) => token)],
    ] as const)
      for (const as of tokens) {
        expect((await ask(limited, question, { as })).status).toBe(200)
        expect((await ask(limited, question, { as })).status).toBe(429)
      }
  })

  test("with a publishable key has a bucket for each client IP address, behind trusted proxies only", async () => {
    const limited = start({ publishable_key: { requests: 1, seconds: 600 } }, { trusted_proxies: 1 })
    const publishable = await publishableKeyOf(service, maker)
    const from = (forwarded: string) =>
      ask(limited, "POST /v1/taps", { as: publishable, body: {}, headers: { "x-forwarded-for": forwarded } })
    expect((await from("203.0.113.7")).status).toBe(400)
    expect((await from("198.51.100.1, 203.0.113.7")).status).toBe(429)
    expect((await from("203.0.113.8")).status).toBe(400)
  })

  test("through a proxy that TRUSTED_PROXIES leaves out is warned of in the log, once however many there are", async () => {
    const publishable = await publishableKeyOf(service, maker)
    const forwarded = { headers: { "x-forwarded-for": "203.0.113.7" } }
    const since = service.logged.length
    const warned = () => service.logged.slice(since).filter((line) => line.includes("TRUSTED_PROXIES"))
    const visitAll = async (limited: HttpService, headers: object) => {
      await ask(limited, "POST /v1/taps", { as: publishable, body: {}, ...headers })
      await ask(limited, "GET /v1/settings", { as: newCredential("api_key").token, ...headers })
      await fetch(`${limited.base_url}/t/abc`, headers)
    }
    const forgotten = start({})
    await visitAll(forgotten, {})
    await visitAll(start({}, { trusted_proxies: 1 }), forwarded)
    expect(warned()).toEqual([])
    for (let time = 0; time < 3; time++) await visitAll(forgotten, forwarded)
    expect(warned()).toEqual([expect.stringContaining("until TRUSTED_PROXIES is the number of proxies")])
    expect(warned()[0]).not.toContain("203.0.113.7")
  })

  test("sees an operation's own rate limit as an empty bucket, with the time at which it may try again", async () => {
    const { id } = await activeCollection(service.behind, maker.caller)
    const refresh = () =>
      ask(service, `POST /v1/collections/${id}/metadata-refreshes`, { as: maker.key, body: {} })
    expect((await refresh()).status).toBe(201)
    service.advance(20_000)
    const { status, headers } = await refresh()
    const shown = ["remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)))
    const free = Math.ceil(service.context.clock().getTime() / 1_000) + 40
    expect([status, ...shown, headers.get("retry-after")]).toEqual([429, 0, free, "40"])
  })

  test("without a credential sees no bucket", async () => {
    for (const question of ["GET /health", "GET /v1/units", "GET /nothing"] as const)
      expect((await ask(service, question)).headers.has("x-ratelimit-limit")).toBe(false)
  })
})

describe("a bucket", () => {
  const limit = fc.record({
    requests: fc.integer({ min: 1, max: 8 }),
    seconds: fc.integer({ min: 1, max: 100 }),
  })
  /** In fractions of the limit's seconds. */
  const pause = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constant("as told" as const) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 110 }).map((hundredths) => hundredths / 100) },
  )

  test("lets through its burst plus what has refilled, however the requests are spread", async () => {
    await fc.assert(
      fc.asyncProperty(limit, fc.array(pause, { maxLength: 80, size: "max" }), async (metadata, pauses) => {
        const { limits, advance, passed } = limitsOnClock({ metadata })
        const milliseconds = metadata.seconds * 1_000
        const through: number[] = []
        let told = 0
        for (const each of pauses) {
          advance(each === "as told" ? Math.ceil(told) : each * milliseconds)
          const { is_exhausted, milliseconds_until_next } = await limits.countPage("metadata", "client")
          if (each === "as told" && told > 0) expect(is_exhausted).toBe(false)
          if (!is_exhausted) through.push(passed())
          told = milliseconds_until_next
        }
        through.forEach((first, from) => {
          through.slice(from).forEach((last, further) => {
            const most = metadata.requests * (1 + (last - first) / milliseconds)
            expect(further + 1).toBeLessThan(most + 1e-3)
          })
        })
      }),
    )
  })

  test("is full at the time that it reports, and then holds exactly its burst", async () => {
    await fc.assert(
      fc.asyncProperty(limit, fc.nat({ max: 15 }), async (metadata, before) => {
        const { limits, advance } = limitsOnClock({ metadata })
        const count = () => limits.countPage("metadata", "client")
        let reset = 0
        for (let time = 0; time < before; time++) reset = (await count()).milliseconds_until_reset
        advance(reset)
        for (let left = metadata.requests - 1; left >= 0; left--)
          expect(await count()).toMatchObject({ is_exhausted: false, remaining: left })
        expect(await count()).toMatchObject({ is_exhausted: true, remaining: 0 })
      }),
    )
  })

  test("is kept in memory only as one of the 100,000 latest", async () => {
    const { limits } = limitsOnClock({ failed_credential: { requests: 1, seconds: 99_999 } })
    const isOver = async (client: string) => (await limits.countFailedCredential(client)).is_exhausted
    expect([await isOver("first"), await isOver("first")]).toEqual([false, true])
    for (let other = 0; other < 50_000; other++) await limits.countFailedCredential(`one ${other}`)
    expect([await isOver("later"), await isOver("later")]).toEqual([false, true])
    for (let other = 0; other < 50_000; other++) await limits.countFailedCredential(`two ${other}`)
    expect([await isOver("first"), await isOver("later")]).toEqual([false, true])
  })
})

describe("failed credentials", () => {
  test("of every kind count together for an IP address; a missing one or one of the wrong kind does not count", async () => {
    const limited = start({ failed_credential: { requests: 2, seconds: 600 } })
    for (let time = 0; time < 5; time++) {
      expect((await ask(limited, "GET /v1/units")).status).toBe(401)
      expect((await ask(limited, "GET /v1/session-tokens/current", { as: maker.key })).status).toBe(401)
    }
    const session = { as: newCredential("session_token").token }
    expect((await ask(limited, "GET /v1/units", { as: `${maker.key}x` })).status).toBe(401)
    expect((await ask(limited, "GET /v1/session-tokens/current", session)).status).toBe(401)
    const answer = await ask(limited, "GET /v1/session-tokens/current", session)
    expect([answer.status, answer.headers.has("retry-after")]).toEqual([429, true])
  })

  test("count even if they have the format of no known kind", async () => {
    const limited = start({ failed_credential: { requests: 2, seconds: 600 } })
    const tokens = ["nonsense", "eyJhbGciOiJub25lIn0.e30.", "sk_live_4711"]
    const answers: Answer[] = []
    for (const as of tokens) answers.push(await ask(limited, "GET /v1/units", { as }))
    expect(answers.map(({ code }) => code)).toEqual([
      "auth.unauthorized",
      "auth.unauthorized",
      "rate_limit.exceeded",
    ])
  })

  test("do not lock out valid credentials at the same IP address, and an ended session does not count", async () => {
    const limited = start({ failed_credential: { requests: 1, seconds: 600 } })
    const { token } = await createVisitor(service, maker)
    await ask(limited, "DELETE /v1/session-tokens/current", { as: token })
    for (let time = 0; time < 3; time++) await ask(limited, "GET /v1/units", { as: `${maker.key}x` })
    expect((await ask(limited, "GET /v1/units", { as: maker.key })).status).toBe(200)
    const ended = await ask(limited, "GET /v1/session-tokens/current", { as: token })
    expect(ended.code).toBe("session_token.invalid_or_expired")
  })
})

describe("rejected values of e", () => {
  test("count for the chip, whoever sends them; an authentic value still works", async () => {
    const limited = start({ refused_value: { requests: 2, seconds: 600 } })
    const { chip_id } = await createVisitor(service, maker)
    const publishable = await publishableKeyOf(service, maker)
    const tap = (as: string, value = e) => ask(limited, "POST /v1/taps", { as, body: { chip_id, e: value } })
    const answers = [await tap(maker.key), await tap(publishable), await tap(maker.key)]
    expect(answers.map(({ status }) => status)).toEqual([422, 422, 429])
    expect(answers.map(({ headers }) => headers.get("x-ratelimit-remaining"))).toEqual(["1", "0", "0"])
    expect(answers[2]?.headers.has("retry-after")).toBe(true)
    const { body } = await ask(limited, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
    expect((await tap(maker.key, String(body.e))).status).toBe(201)
  })

  test("in a bulk request count only for their own chip, not for chips whose value is authentic", async () => {
    const limited = start({ refused_value: { requests: 1, seconds: 600 } })
    const collection = await activeCollection(service.behind, maker.caller)
    const unit = async () => (await newUnit(service.behind, maker.caller, collection)).id
    const { chip_id, tag } = await importedChip(service.behind, maker.caller)
    const sent = { unit_id: await unit(), chip_id, ...emitSun(tag, 1) }
    const wrong = await importedChip(service.behind, maker.caller)
    const body = { chips: [sent, { unit_id: await unit(), chip_id: wrong.chip_id, e }] }
    const pair = () => ask(limited, "POST /v1/chips/bulk", { as: maker.key, body })
    expect([(await pair()).status, (await pair()).status]).toEqual([422, 429])
    const guess = { as: maker.key, body: { ...sent, e } }
    expect((await ask(limited, "POST /v1/chips", guess)).code).toBe("chip.invalid_e_value")
  })

  test("over the limit are reported even with the last request of the caller's own bucket", async () => {
    const limited = start({
      api_key: { requests: 2, seconds: 600 },
      refused_value: { requests: 1, seconds: 600 },
    })
    const { chip_id } = await createVisitor(service, maker)
    const tap = () => ask(limited, "POST /v1/taps", { as: maker.key, body: { chip_id, e } })
    expect([(await tap()).status, (await tap()).status]).toEqual([422, 429])
  })
})

test("a rejected value of e shows the caller's own bucket if it has as few requests left as the chip's", async () => {
  const limited = start({
    api_key: { requests: 4, seconds: 600 },
    refused_value: { requests: 3, seconds: 600 },
  })
  await ask(limited, "GET /v1/settings", { as: maker.key })
  const { chip_id } = await createVisitor(service, maker)
  const { status, headers } = await ask(limited, "POST /v1/taps", { as: maker.key, body: { chip_id, e } })
  const shown = ["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}`))
  expect([status, ...shown]).toEqual([422, "4", "2"])
})

describe("several processes", () => {
  let redis: RedisServer
  let connection: Redis
  beforeAll(async () => {
    redis = await startRedis()
    connection = connectWaitingRedis(redis.url)
  })
  afterAll(async () => {
    connection.disconnect()
    await redis.stop()
  })

  test("share their buckets in Redis; while Redis is down each counts on its own, and no request fails", async () => {
    const processes = [1, 2].map(() =>
      start({ api_key: { requests: 4, seconds: 600 } }, { redis_url: redis.url }),
    ) as [HttpService, HttpService]
    const [one, two] = processes
    await untilShared(processes)
    const { key } = await createCustomer(service)
    const get = (at: HttpService) => ask(at, "GET /v1/settings", { as: key })
    expect(await all([get(one), get(two)])).toEqual([200, 200])
    expect(await all([get(one), get(two)])).toEqual([200, 200])
    expect(await all([get(one), get(two)])).toEqual([429, 429])

    await redis.kill()
    for (let time = 0; time < 4; time++) expect(await all([get(one), get(two)])).toEqual([200, 200])
    expect(await all([get(one), get(two)])).toEqual([429, 429])

    await redis.start()
    await untilShared(processes)
    expect((await get(one)).headers.get("x-ratelimit-remaining")).toBe("3")
    expect((await get(two)).headers.get("x-ratelimit-remaining")).toBe("2")
  }, 20_000)

  test("together let through no more than one bucket allows, however requests are spread", async () => {
    const metadata = { requests: 10, seconds: 6_000 }
    const both = [await inRedis({ metadata }), await inRedis({ metadata })] as const
    const counts = Array.from({ length: 20 }, () => both.map((limits) => limits.countPage("metadata", "all")))
    const passed = (await Promise.all(counts.flat())).filter(({ is_exhausted }) => !is_exhausted)
    expect(passed.map(({ remaining }) => remaining).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    for (const limits of both) limits.close()
  })

  test("decide with Redis exactly as one process does in memory", async () => {
    const metadata = { requests: 6, seconds: 60_000 }
    const shared = await inRedis({ metadata })
    const waits = fc.array(fc.constantFrom(0, 0, 0, 1_000, 5_000, 10_000, 70_000), {
      maxLength: 40,
      size: "max",
    })
    let client = 0
    await fc.assert(
      fc.asyncProperty(waits, async (steps) => {
        const { limits, advance } = limitsOnClock({ metadata })
        client += 1
        for (const seconds of steps) {
          advance(seconds * 1_000)
          await letPass(`metadata:${client}`, seconds)
          const here = await limits.countPage("metadata", `${client}`)
          const there = await shared.countPage("metadata", `${client}`)
          expect([there.is_exhausted, there.remaining]).toEqual([here.is_exhausted, here.remaining])
          expect(there.milliseconds_until_next).toBeCloseTo(here.milliseconds_until_next, -5)
        }
      }),
      { numRuns: 20 },
    )
    shared.close()
  })

  test("keep a bucket in Redis until it is full, and no longer if Redis's clock was set back", async () => {
    const shared = await inRedis({ metadata: { requests: 2, seconds: 6_000 } })
    const count = () => shared.countPage("metadata", "kept")
    await count()
    expect(await connection.pttl("service-api:bucket:metadata:kept")).toBeWithin(2_900_000, 3_000_001)
    await count()
    expect(await connection.pttl("service-api:bucket:metadata:kept")).toBeWithin(5_900_000, 6_000_001)
    expect((await count()).is_exhausted).toBe(true)
    await letPass("metadata:kept", -3_600)
    expect(await count()).toMatchObject({ is_exhausted: false, remaining: 1 })
    shared.close()
  })

  test("each count on their own if Redis does not respond in time", async () => {
    const shared = await inRedis({ metadata: { requests: 1, seconds: 600 } })
    const isOver = async () => (await shared.countPage("metadata", "unanswered")).is_exhausted
    await connection.client("PAUSE", 600_000, "WRITE")
    expect([await isOver(), await isOver()]).toEqual([false, true])
    await connection.client("UNPAUSE")
    shared.close()
  })

  test("give up on a silent Redis connection, log it, and reconnect", async () => {
    const line = await startLine(Number(new URL(redis.url).port))
    const { limits, warned } = limitsOnClock({}, `redis://127.0.0.1:${line.port}`)
    await untilFound(limits)
    line.fallSilent()
    await untilFound(limits)
    expect(warned).toEqual(["Redis is unreachable; each process counts rate limits for itself"])
    limits.close()
    line.stop()
  }, 15_000)

  test("leave Redis when they stop", async () => {
    const ids = async (): Promise<string[]> =>
      String(await connection.client("LIST")).match(/\bid=\d+/g) ?? []
    const before = await ids()
    const isConnected = async () => (await ids()).some((id) => !before.includes(id))
    const settings = { redis_url: redis.url, host: "127.0.0.1", port: 0 }
    const config = { ...service.context.config, ...settings }
    const server = await startServer({ ...service.context, config })
    await until(isConnected)
    await server.stop()
    await until(async () => !(await isConnected()))
  })

  test("log once that Redis is down and what that means", async () => {
    const warned: string[] = []
    const heard = Promise.withResolvers<void>()
    const warn = (_fields: object, message: string) => {
      warned.push(message)
      heard.resolve()
    }
    const log: Log = { debug() {}, info() {}, warn, error() {} }
    const config = { ...service.context.config, redis_url: "redis://127.0.0.1:1" }
    const limits = createRateLimits({ ...service.context, config, log })
    await heard.promise
    limits.close()
    expect(warned).toEqual(["Redis is unreachable; each process counts rate limits for itself"])
  }, 10_000)

  test("log once that a proxy in front of Redis closes every connection", async () => {
    const proxy = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {})
      socket.once("data", () => socket.end()).resume()
    })
    await once(proxy.listen(0, "127.0.0.1"), "listening")
    const { port } = proxy.address() as AddressInfo
    const { limits, warned } = limitsOnClock({}, `redis://127.0.0.1:${port}`)
    await until(async () => warned.length > 0)
    limits.close()
    proxy.close()
    expect(warned).toEqual(["Redis is unreachable; each process counts rate limits for itself"])
  }, 10_000)

  test("log once for many requests that Redis is full and what that means", async () => {
    const { limits, warned } = limitsOnClock({ metadata: { requests: 1, seconds: 600 } }, redis.url)
    await untilFound(limits)
    await connection.config("SET", "maxmemory", "1")
    const isOver = async () => (await limits.countPage("metadata", "full")).is_exhausted
    const counted = [await isOver(), await isOver()]
    await connection.config("SET", "maxmemory", "0")
    limits.close()
    expect(counted).toEqual([false, true])
    expect(warned).toEqual(["Redis refuses commands; each process counts rate limits for itself"])
  })

  /** Rate limits of a process that is connected to Redis. Its own clock stands still. */
  async function inRedis(changed: Partial<Config["rate_limits"]>): Promise<RateLimits> {
    const { limits } = limitsOnClock(changed, redis.url)
    await untilFound(limits)
    return limits
  }

  async function untilFound(limits: RateLimits): Promise<void> {
    const name = newId()
    const deadline = performance.now() + 10_000
    while (performance.now() < deadline) {
      await limits.countRefusedValue(name)
      if (await connection.exists(`service-api:bucket:refused_value:${name}`)) return
      await Bun.sleep(20)
    }
    throw new Error("no bucket is kept in Redis")
  }

  /** Moves the last use of a bucket in Redis into the past. */
  async function letPass(bucket: string, seconds: number): Promise<void> {
    const key = `service-api:bucket:${bucket}`
    if (await connection.exists(key)) await connection.hincrby(key, "at", -seconds * 1_000_000)
  }

  async function all(answers: Promise<Answer>[]): Promise<number[]> {
    return (await Promise.all(answers)).map(({ status }) => status)
  }

  /** Waits until both processes are connected to Redis, which shows when they count a new key together. */
  async function untilShared([one, two]: [HttpService, HttpService]): Promise<void> {
    const deadline = performance.now() + 10_000
    while (performance.now() < deadline) {
      const { key } = await createCustomer(service)
      await ask(one, "GET /v1/settings", { as: key })
      const { headers } = await ask(two, "GET /v1/settings", { as: key })
      if (headers.get("x-ratelimit-remaining") === "2") return
      await Bun.sleep(20)
    }
    throw new Error("the processes do not share their buckets")
  }
})

describe("the client IP address", () => {
  const cases: [peer: string, forwarded: string | null, proxies: number, client: string][] = [
    ["10.0.0.1", "203.0.113.7", 0, "10.0.0.1"],
    ["10.0.0.1", "203.0.113.7", 1, "203.0.113.7"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.7", 1, "203.0.113.7"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.7, 10.0.0.2", 2, "203.0.113.7"],
    ["10.0.0.1", "203.0.113.7", 2, "203.0.113.7"],
    ["10.0.0.1", null, 1, "10.0.0.1"],
    ["10.0.0.1", "unknown", 1, "10.0.0.1"],
    ["10.0.0.1", "203.0.113.7:4711", 1, "203.0.113.7"],
    ["10.0.0.1", "[2001:DB8::1]:4711", 1, "2001:db8:0:0::/64"],
    ["10.0.0.1", "2001:db8:1:2:3:4:5:6", 1, "2001:db8:1:2::/64"],
    ["10.0.0.1", "2001:0DB8:0001:0002::9", 1, "2001:db8:1:2::/64"],
    ["::1", null, 0, "0:0:0:0::/64"],
    ["::2:3:4:5:6:7", null, 0, "0:0:2:3::/64"],
    ["fe80::1%eth0", null, 0, "fe80:0:0:0::/64"],
    ["10.0.0.1", "::ffff:203.0.113.7", 1, "203.0.113.7"],
    ["::ffff:10.0.0.1", null, 0, "10.0.0.1"],
  ]
  for (const [peer, forwarded, proxies, client] of cases)
    test(`of ${peer} with X-Forwarded-For ${forwarded} and ${proxies} trusted proxies is ${client}`, () => {
      const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded }
      expect(clientAddress(new Request("http://x", { headers }), peer, proxies)).toBe(client)
    })
})

/** Rate limits without HTTP, on a clock of their own that stands still. */
function limitsOnClock(changed: Partial<Config["rate_limits"]>, redis_url: string | null = null) {
  const { rate_limits } = loadConfig({ SERVICE_SECRET: service.behind.secret.current })
  const config = { ...service.context.config, redis_url, rate_limits: { ...rate_limits, ...changed } }
  let now = 0
  const warned: string[] = []
  const warn = (_fields: object, message: string) => void warned.push(message)
  const log: Log = { debug() {}, info() {}, warn, error() {} }
  return {
    limits: createRateLimits({ ...service.context, config, log, steadyClock: () => now }),
    warned,
    advance(milliseconds: number) {
      now += milliseconds
    },
    passed: () => now,
  }
}

function start(limits: Partial<Config["rate_limits"]>, settings: Partial<Config> = {}): HttpService {
  const { rate_limits } = loadConfig({ SERVICE_SECRET: service.behind.secret.current })
  const beside = startBeside(service, { ...settings, rate_limits: { ...rate_limits, ...limits } })
  opened.push(beside)
  return beside
}
