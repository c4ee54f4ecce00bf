import { afterEach, expect, test } from "bun:test"
import type { Log } from "../../src/platform/log.ts"
import { createWakeUps } from "../../src/platform/wake.ts"
import { type Loop, startLoop } from "../../workers/loop.ts"

const queue = "lane:1"
const never = 2 ** 31 - 1

let started: Loop[] = []
afterEach(async () => {
  await Promise.all(started.map((loop) => loop.stop()))
  started = []
})

test("a loop runs its first tick at once", async () => {
  const { ticks } = start()
  expect(await ticks.next()).toBe(1)
})

test("a loop runs a tick when its queue is woken", async () => {
  const { ticks, wake } = start()
  await ticks.next()
  ticks.end()
  await settled()
  wake()
  expect(await ticks.next()).toBe(2)
})

test("a loop runs a tick without being woken when its interval is over", async () => {
  const { ticks } = start({ every_milliseconds: 1 })
  for (const number of [1, 2, 3]) {
    expect(await ticks.next()).toBe(number)
    ticks.end()
  }
})

test("an idle loop ticks once a second, however short its interval, until it is woken", async () => {
  const wakeUps = createWakeUps()
  let idly = 0
  const woken = Promise.withResolvers<void>()
  const enough = Promise.withResolvers<void>()
  const { log } = recorder()
  started.push(
    startLoop({
      ...{ queue: "idle", every_milliseconds: 1, wakeUps, log },
      tick: async () => {
        if (++idly === 2) woken.resolve()
        return "idle"
      },
    }),
  )
  wakeUps.wake("idle")
  await woken.promise
  const before = idly
  let busily = 0
  run(wakeUps, log, 1, async () => {
    if (++busily === 30) enough.resolve()
  })
  await enough.promise
  // Another second may begin meanwhile.
  expect(idly - before).toBeLessThan(10)
})

test("a loop whose tick leaves work continues at once until there is none or it is stopped", async () => {
  const { ticks, loop } = start()
  for (const number of [1, 2]) {
    expect(await ticks.next()).toBe(number)
    ticks.end("more")
  }
  expect(await ticks.next()).toBe(3)
  ticks.end()
  await settled()
  expect(ticks.begun()).toBe(3)

  const other = start()
  await other.ticks.next()
  const stopping = other.loop.stop()
  other.ticks.end("more")
  await stopping
  expect(other.ticks.begun()).toBe(1)
  await loop.stop()
})

test("a loop is not woken for another queue", async () => {
  const { ticks, wakeUps } = start()
  await ticks.next()
  ticks.end()
  await settled()
  wakeUps.wake("lane:2")
  await settled()
  expect(ticks.begun()).toBe(1)
})

test("a loop that is woken during a tick waits for it and then runs another", async () => {
  const { ticks, wake } = start()
  await ticks.next()
  wake()
  await settled()
  expect(ticks.begun()).toBe(1)
  ticks.end()
  expect(await ticks.next()).toBe(2)
})

test("a loop that is woken several times during a tick runs one more, not as many", async () => {
  const { ticks, wake } = start()
  await ticks.next()
  for (let count = 0; count < 10; count++) wake()
  ticks.end()
  await ticks.next()
  ticks.end()
  await settled()
  expect(ticks.begun()).toBe(2)
})

test("a loop never runs two ticks at once", async () => {
  const wakeUps = createWakeUps()
  let running = 0
  let most = 0
  let ran = 0
  const enough = Promise.withResolvers<void>()
  run(wakeUps, recorder().log, never, async () => {
    most = Math.max(most, ++running)
    wakeUps.wake(queue)
    await settled()
    running--
    if (++ran === 20) enough.resolve()
  })
  await enough.promise
  expect(most).toBe(1)
})

test("a tick that throws is retried, and logged once while the error stays the same", async () => {
  const { ticks, wake, lines } = start()
  for (const complaint of ["the chain is away", "the chain is away", "the chain is slow"]) {
    await ticks.next()
    ticks.fail(new Error(complaint))
    await settled()
    wake()
  }
  await ticks.next()
  expect(lines).toEqual([
    ["warn", { queue, error: "Error: the chain is away" }, "a round failed and is tried again"],
    ["warn", { queue, error: "Error: the chain is slow" }, "a round failed and is tried again"],
  ])
})

test("a tick that throws synchronously is retried", async () => {
  const wakeUps = createWakeUps()
  let ran = 0
  const again = Promise.withResolvers<void>()
  run(wakeUps, recorder().log, 1, () => {
    if (++ran === 2) again.resolve()
    throw new Error("no")
  })
  await again.promise
})

test("a tick that succeeds again is logged once, and its next failure is logged again", async () => {
  const { ticks, wake, lines } = start()
  await ticks.next()
  ticks.fail(new Error("no"))
  for (const _ of [1, 2]) {
    await settled()
    wake()
    await ticks.next()
    ticks.end()
  }
  await settled()
  wake()
  await ticks.next()
  ticks.fail(new Error("no"))
  await settled()
  expect(lines.map(([level, , message]) => `${level}: ${message}`)).toEqual([
    "warn: a round failed and is tried again",
    "info: rounds succeed again",
    "warn: a round failed and is tried again",
  ])
})

test("stop waits for the running tick", async () => {
  const { ticks, loop } = start()
  await ticks.next()
  let stopped = false
  const stopping = loop.stop().then(() => {
    stopped = true
  })
  await settled()
  expect(stopped).toBe(false)
  ticks.end()
  await stopping
})

test("stop does not wait for the next tick", async () => {
  const { ticks, loop } = start()
  await ticks.next()
  ticks.end()
  await settled()
  await loop.stop()
})

test("a stopped loop cannot be woken", async () => {
  const { ticks, loop, wake } = start()
  await ticks.next()
  ticks.end()
  await loop.stop()
  wake()
  await settled()
  expect(ticks.begun()).toBe(1)
})

/** A loop whose ticks are ended by the test. */
function start({ every_milliseconds = never } = {}) {
  const wakeUps = createWakeUps()
  const { log, lines } = recorder()
  const { ticks, tick } = manualTicks()
  const loop = run(wakeUps, log, every_milliseconds, tick)
  started.push({
    async stop() {
      ticks.endAll()
      await loop.stop()
    },
  })
  return { ticks, loop, lines, wakeUps, wake: () => wakeUps.wake(queue) }
}

function run(
  wakeUps: ReturnType<typeof createWakeUps>,
  log: Log,
  every_milliseconds: number,
  tick: () => Promise<unknown>,
): Loop {
  const loop = startLoop({ queue, every_milliseconds, wakeUps, log, tick })
  started.push(loop)
  return loop
}

function manualTicks() {
  let begun = 0
  let awaited = 0
  let endsAtOnce = false
  let current = Promise.withResolvers<unknown>()
  let arrived = Promise.withResolvers<void>()
  return {
    async tick() {
      begun++
      arrived.resolve()
      return endsAtOnce ? undefined : await current.promise
    },
    ticks: {
      begun: () => begun,
      /** Returns the number of the next tick once it has begun. */
      async next(): Promise<number> {
        if (begun === awaited) await arrived.promise
        arrived = Promise.withResolvers()
        return ++awaited
      },
      end(answer?: unknown) {
        current.resolve(answer)
        current = Promise.withResolvers()
      },
      fail(error: Error) {
        current.reject(error)
        current = Promise.withResolvers()
      },
      endAll() {
        endsAtOnce = true
        current.resolve(undefined)
      },
    },
  }
}

function recorder() {
  const lines: [level: string, fields: object, message: string][] = []
  const at = (level: string) => (fields: object, message: string) => {
    lines.push([level, fields, message])
  }
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }
  return { log, lines }
}

/** Runs everything that is ready to run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
