import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { clientAddress } from "../../src/http/client-address.ts"
import { createRateLimits } from "../../src/http/rate-limits.ts"
import { type Config, loadConfig } from "../../src/platform/config.ts"
import { newCredential } from "../../src/platform/credentials.ts"
import type { Log } from "../../src/platform/log.ts"
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

describe("answers that are kept", () => {
  const keyed = (limited: HttpService, key: string, name = "n") =>
    ask(limited, "POST /v1/collections", {
      as: maker.key,
      body: { name },
      headers: { "idempotency-key": key },
    })

  test("have a ceiling for each organization, which replays and requests without a key do not reach", async () => {
    const limited = start({ kept_answer: { requests: 2, seconds: 600 } })
    const first = await keyed(limited, "kept-1")
    expect((await keyed(limited, "kept-2")).status).toBe(201)
    const refused = await keyed(limited, "kept-3")
    expect([refused.status, refused.code]).toEqual([429, "rate_limit.exceeded"])
    expect(Number(refused.headers.get("retry-after"))).toBeWithin(590, 601)
    expect((await keyed(limited, "kept-1")).text).toBe(first.text)
    const plain = await ask(limited, "POST /v1/collections", { as: maker.key, body: { name: "n" } })
    expect(plain.status).toBe(201)
    const other = await createCustomer(service)
    const theirs = { as: other.key, body: { name: "n" }, headers: { "idempotency-key": "kept-3" } }
    expect((await ask(limited, "POST /v1/collections", theirs)).status).toBe(201)
  })

  test("count by their bytes too, and not at all where the request is refused", async () => {
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
})

test("the address of a chip may be opened only so often by each client", async () => {
  const limited = start({ tap_redirect: { requests: 2, seconds: 600 } })
  const open = () => fetch(`${limited.base_url}/t/0123456789`, { redirect: "manual" })
  expect([(await open()).status, (await open()).status]).toEqual([200, 200])
  const refused = await open()
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get("retry-after"))).toBeWithin(590, 601)
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limit.exceeded" } })
  expect((await ask(limited, "GET /v1/settings", { as: maker.key })).status).toBe(200)
})

test("what tokens show may be read only so often by each client, whatever taps it opens", async () => {
  const limited = start({ metadata: { requests: 2, seconds: 600 } })
  const origin = "https://wallet.example"
  const read = () => fetch(`${limited.base_url}/metadata/1/0x${"00".repeat(20)}/1`, { headers: { origin } })
  expect([(await read()).status, (await read()).status]).toEqual([404, 404])
  const refused = await read()
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get("retry-after"))).toBeWithin(590, 601)
  expect(refused.headers.get("access-control-allow-origin")).toBe(origin)
  expect((await fetch(`${limited.base_url}/t/0123456789`)).status).toBe(200)
})

describe("a caller", () => {
  test("is told of its bucket with every answer, refusals too", async () => {
    const limited = start({ api_key: { requests: 3, seconds: 600 } })
    const now = service.context.clock().getTime() / 1000
    for (const [question, remaining] of [
      ["GET /v1/settings", 2],
      ["GET /v1/units/1", 1],
      ["GET /v1/units?x=1", 0],
    ] as const) {
      const { headers } = await ask(limited, question, { as: maker.key })
      expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual([
        "3",
        `${remaining}`,
      ])
      expect(Number(headers.get("x-ratelimit-reset"))).toBeWithin(now + 590, now + 602)
      expect(headers.has("retry-after")).toBe(false)
    }
  })

  test("is told to wait once its bucket is empty, before anything else is looked at", async () => {
    const limited = start({ api_key: { requests: 1, seconds: 600 } })
    await ask(limited, "GET /v1/settings", { as: maker.key })
    const answer = await ask(limited, "POST /v1/units", { as: maker.key, body: "{bad" })
    expect([answer.status, answer.code]).toEqual([429, "rate_limit.exceeded"])
    expect(answer.headers.get("x-ratelimit-remaining")).toBe("0")
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(590, 601)
  })

  test("goes on when the time it was told is over", async () => {
    const limited = start({ api_key: { requests: 1, seconds: 1 } })
    await ask(limited, "GET /v1/settings", { as: maker.key })
    const { headers } = await ask(limited, "GET /v1/settings", { as: maker.key })
    expect(headers.get("retry-after")).toBe("1")
    await Bun.sleep(1_050)
    expect((await ask(limited, "GET /v1/settings", { as: maker.key })).status).toBe(200)
  })

  test("has a bucket of its own for each key and each session", async () => {
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

  test("with a publishable key has one for each client address, as far as the proxies are trusted", async () => {
    const limited = start({ publishable_key: { requests: 1, seconds: 600 } }, { trusted_proxies: 1 })
    const publishable = await publishableKeyOf(service, maker)
    const from = (forwarded: string) =>
      ask(limited, "POST /v1/taps", { as: publishable, body: {}, headers: { "x-forwarded-for": forwarded } })
    expect((await from("203.0.113.7")).status).toBe(400)
    expect((await from("198.51.100.1, 203.0.113.7")).status).toBe(429)
    expect((await from("203.0.113.8")).status).toBe(400)
  })

  test("is shown as full what is refused for its pace by the operation itself, and when it is free again", async () => {
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

  test("without a credential is told of no bucket", async () => {
    for (const question of ["GET /health", "GET /v1/units", "GET /nothing"] as const)
      expect((await ask(service, question)).headers.has("x-ratelimit-limit")).toBe(false)
  })
})

describe("failed credentials", () => {
  test("of every kind count together for an address; a missing or wrong kind does not count", async () => {
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

  test("count where they are of no kind that there is, too", async () => {
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

  test("do not shut out who shares the address, nor a session that has ended", async () => {
    const limited = start({ failed_credential: { requests: 1, seconds: 600 } })
    const { token } = await createVisitor(service, maker)
    await ask(limited, "DELETE /v1/session-tokens/current", { as: token })
    for (let time = 0; time < 3; time++) await ask(limited, "GET /v1/units", { as: `${maker.key}x` })
    expect((await ask(limited, "GET /v1/units", { as: maker.key })).status).toBe(200)
    const ended = await ask(limited, "GET /v1/session-tokens/current", { as: token })
    expect(ended.code).toBe("session_token.invalid_or_expired")
  })
})

describe("refused values of e", () => {
  test("count for the chip, whoever sends them; a genuine one goes through", async () => {
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

  test("of a bulk request count for their own chip alone, and not for those whose value is right", async () => {
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

  test("beyond their bucket are told to wait also with the last request of the caller's own", async () => {
    const limited = start({
      api_key: { requests: 2, seconds: 600 },
      refused_value: { requests: 1, seconds: 600 },
    })
    const { chip_id } = await createVisitor(service, maker)
    const tap = () => ask(limited, "POST /v1/taps", { as: maker.key, body: { chip_id, e } })
    expect([(await tap()).status, (await tap()).status]).toEqual([422, 429])
  })
})

test("a refused value of e shows the caller's own bucket where that is as tight as the chip's", async () => {
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
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  test("share their buckets in Redis; while it is away each counts for itself, and no request fails", async () => {
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

  test("say once that Redis is away, and what that means", async () => {
    const { rate_limits } = service.context.config
    const warned: string[] = []
    const heard = Promise.withResolvers<void>()
    const warn = (_fields: object, message: string) => {
      warned.push(message)
      heard.resolve()
    }
    const log: Log = { debug() {}, info() {}, warn, error() {} }
    const limits = createRateLimits({ rate_limits, redis_url: "redis://127.0.0.1:1" }, log)
    await heard.promise
    limits.close()
    expect(warned).toEqual(["Redis is away; each process limits rates for itself"])
  }, 10_000)

  async function all(answers: Promise<Answer>[]): Promise<number[]> {
    return (await Promise.all(answers)).map(({ status }) => status)
  }

  /** The processes have found Redis once they count a fresh key together. */
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

describe("the address of a client", () => {
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
    test(`of ${peer} that says ${forwarded}, with ${proxies} trusted proxies, is ${client}`, () => {
      const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded }
      expect(clientAddress(new Request("http://x", { headers }), peer, proxies)).toBe(client)
    })
})

function start(limits: Partial<Config["rate_limits"]>, settings: Partial<Config> = {}): HttpService {
  const { rate_limits } = loadConfig({ SERVICE_SECRET: service.behind.secret.current })
  const beside = startBeside(service, { ...settings, rate_limits: { ...rate_limits, ...limits } })
  opened.push(beside)
  return beside
}
