import { heapStats } from "bun:jsc"
import { afterEach, describe, expect, test } from "bun:test"
import type { Log } from "../../src/platform/log.ts"
import { connectWaitingRedis } from "../../src/platform/redis.ts"
import { createWakeUps, type WakeUps } from "../../src/platform/wake.ts"
import { createRedisWakeUps } from "../../src/platform/wake-redis.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { startLine } from "../harness/line.ts"
import { type RedisServer, startRedis } from "../harness/redis.ts"

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const kinds: [string, () => Promise<WakeUps>][] = [
  ["inside one process", async () => opened(createWakeUps())],
  ["over Redis", async () => overRedis((await redis()).url)],
]

describe.each(kinds)("wake-ups %s", (_kind, open) => {
  test("reach a listener of their queue", async () => {
    const wakeUps = await open()
    const woken = untilWoken(wakeUps, "lane:1:0xabc")
    await repeat(() => wakeUps.wake("lane:1:0xabc"), woken)
  })

  test("do not reach the listeners of other queues", async () => {
    const wakeUps = await open()
    let others = 0
    wakeUps.onWake("lane:1:0xdef", () => others++)
    const woken = untilWoken(wakeUps, "lane:1:0xabc")
    await repeat(() => wakeUps.wake("lane:1:0xabc"), woken)
    expect(others).toBe(0)
  })

  test("reach every listener of a queue", async () => {
    const wakeUps = await open()
    const woken = Promise.all([untilWoken(wakeUps, "timers"), untilWoken(wakeUps, "timers")])
    await repeat(() => wakeUps.wake("timers"), woken)
  })

  test("do not reach a listener that has stopped listening", async () => {
    const wakeUps = await open()
    let calls = 0
    const stop = wakeUps.onWake("timers", () => calls++)
    stop()
    const woken = untilWoken(wakeUps, "timers")
    await repeat(() => wakeUps.wake("timers"), woken)
    expect(calls).toBe(0)
  })

  test("in quick succession end with one after the last", async () => {
    const wakeUps = await open()
    await repeat(() => wakeUps.wake("timers"), untilWoken(wakeUps, "timers"))
    let last = 0
    const seen = new Promise<void>((resolve) => {
      wakeUps.onWake("timers", () => {
        if (last === 500) resolve()
      })
    })
    for (last = 1; last < 500; last++) wakeUps.wake("timers")
    wakeUps.wake("timers")
    await seen
  })
})

describe("wake-ups over Redis", () => {
  test("reach every process that listens", async () => {
    const server = await redis()
    const [api, worker, other] = [overRedis(server.url), overRedis(server.url), overRedis(server.url)]
    const woken = Promise.all([untilWoken(worker, "lane:1:0xabc"), untilWoken(other, "lane:1:0xabc")])
    await repeat(() => api.wake("lane:1:0xabc"), woken)
  })

  test("are published without waiting while Redis is down, and arrive again once it is back", async () => {
    const server = await redis()
    const [api, worker] = [overRedis(server.url), overRedis(server.url)]
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
    await server.kill()
    const took = Array.from({ length: 10 }, () => {
      const begin = performance.now()
      for (let count = 0; count < 100; count++) api.wake("timers")
      return performance.now() - begin
    })
    // The quickest hundred, because the machine may pause this process meanwhile.
    expect(Math.min(...took)).toBeLessThan(20)
    await server.start()
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
  }, 20_000)

  test("are lost if Redis is full, which is logged once for many, with its effect", async () => {
    const server = await redis()
    const warned: string[] = []
    const warn = (_fields: object, message: string) => void warned.push(message)
    const [full, worker] = [
      opened(createRedisWakeUps(server.url, { ...silent, warn })),
      overRedis(server.url),
    ]
    await repeat(() => full.wake("timers"), untilWoken(worker, "timers"))
    const connection = connectWaitingRedis(server.url)
    await connection.config("SET", "maxmemory", "1")
    while (warned.length === 0) {
      full.wake("timers")
      await Bun.sleep(20)
    }
    for (const queue of ["one", "two", "three"]) full.wake(queue)
    await connection.config("SET", "maxmemory", "0")
    connection.disconnect()
    await repeat(() => full.wake("timers"), untilWoken(worker, "timers"))
    expect(warned).toEqual(["Redis refuses commands; workers look for work without wake-ups"])
  }, 20_000)

  test("go to no other database of a Redis that lacks the URL's, which counts as away", async () => {
    const server = await redis()
    const told = Promise.withResolvers<object>()
    const warn = (fields: object) => told.resolve(fields)
    const wakeUps = opened(createRedisWakeUps(`${server.url}/99`, { ...silent, warn }))
    wakeUps.onWake("timers", () => {})
    expect(await told.promise).toEqual({ error: "ERR DB index is out of range" })
    await wakeForASecond(wakeUps)
    expect(await server.keys()).toEqual([])
    const connection = connectWaitingRedis(server.url)
    expect(await connection.client("LIST")).not.toMatch(/cmd=(bzpopmin|xread|evalsha)/)
    connection.disconnect()
  }, 20_000)

  test("go to no other database of a Redis that refuses the URL's in words of its own", async () => {
    const server = await redis()
    const rename = (sent: Buffer) =>
      Buffer.from(sent.toString("latin1").replace("select", "sElEcD"), "latin1")
    const line = await startLine(Number(new URL(server.url).port), rename)
    closers.push(async () => line.stop())
    const told = Promise.withResolvers<object>()
    const warn = (fields: object) => told.resolve(fields)
    const wakeUps = opened(createRedisWakeUps(`redis://127.0.0.1:${line.port}/3`, { ...silent, warn }))
    wakeUps.onWake("timers", () => {})
    expect(await told.promise).toEqual({ error: expect.stringContaining("unknown command 'sElEcD'") })
    await wakeForASecond(wakeUps)
    expect(await server.keys()).toEqual([])
  }, 20_000)

  test("rejected by a full Redis leave nothing in memory", async () => {
    const server = await redis()
    let isRefused = false
    const warn = () => {
      isRefused = true
    }
    const wakeUps = opened(createRedisWakeUps(server.url, { ...silent, warn }))
    await server.command("CONFIG SET maxmemory 1")
    while (!isRefused) {
      wakeUps.wake("timers")
      await Bun.sleep(20)
    }
    async function objectsAfter(wakeUpsRefused: number): Promise<number> {
      for (let number = 0; number < wakeUpsRefused; number++) {
        wakeUps.wake(`queue ${number}`)
        await Bun.sleep(5)
      }
      Bun.gc(true)
      return heapStats().objectCount
    }
    const before = await objectsAfter(100)
    expect((await objectsAfter(300)) - before).toBeLessThan(5_000)
  }, 20_000)

  test("arrive again at a process whose connection to Redis went silent", async () => {
    const server = await redis()
    const line = await startLine(Number(new URL(server.url).port))
    const [api, worker] = [overRedis(server.url), overRedis(`redis://127.0.0.1:${line.port}`)]
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
    line.fallSilent()
    // What was in flight may still have arrived.
    await Bun.sleep(500)
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
    await worker.close()
    line.stop()
  }, 40_000)

  test("arrive after Redis was flushed", async () => {
    const server = await redis()
    const [api, worker] = [overRedis(server.url), overRedis(server.url)]
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
    await server.flush()
    await repeat(() => api.wake("timers"), untilWoken(worker, "timers"))
  }, 20_000)

  test("can be closed within three seconds while Redis is down", async () => {
    const server = await redis()
    const wakeUps = createRedisWakeUps(server.url, silent)
    await repeat(() => wakeUps.wake("timers"), untilWoken(wakeUps, "timers"))
    await server.kill()
    expect(await awakeUntilSettled(wakeUps.close())).toBeLessThan(3_000)
  })

  test("leave only BullMQ's own counters in Redis", async () => {
    const server = await redis()
    const wakeUps = overRedis(server.url)
    await repeat(() => wakeUps.wake("timers"), untilWoken(wakeUps, "timers"))
    const left = async () =>
      (await server.keys()).filter((key) => !/:(id|meta|events|stalled-check|marker)$/.test(key))
    while ((await left()).length > 0) await Bun.sleep(20)
  })
})

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

async function redis(): Promise<RedisServer> {
  const server = await startRedis()
  closers.push(server.stop)
  return server
}

function overRedis(url: string): WakeUps {
  return opened(createRedisWakeUps(url, silent))
}

function opened(wakeUps: WakeUps): WakeUps {
  closers.push(wakeUps.close)
  return wakeUps
}

function untilWoken(wakeUps: WakeUps, queue: string): Promise<void> {
  return new Promise((resolve) => {
    wakeUps.onWake(queue, resolve)
  })
}

/** Publishes wake-ups of many queues. */
async function wakeForASecond(wakeUps: WakeUps): Promise<void> {
  for (let number = 0; number < 20; number++) {
    wakeUps.wake(`queue ${number}`)
    await Bun.sleep(50)
  }
}

/** Connecting takes a moment, in which a wake-up may be lost. */
async function repeat(wake: () => void, woken: Promise<unknown>): Promise<void> {
  let isWoken = false
  const done = woken.then(() => {
    isWoken = true
  })
  while (!isWoken) {
    wake()
    await Promise.race([done, Bun.sleep(20)])
  }
}
