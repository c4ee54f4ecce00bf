import { untilNextBeat } from "../src/platform/beat.ts"
import { type Log, loggable } from "../src/platform/log.ts"
import type { WakeUps } from "../src/platform/wake.ts"

export type Loop = { stop(): Promise<void> }

export type LoopOptions = {
  queue: string
  every_milliseconds: number
  rest_milliseconds?: number
  wakeUps: WakeUps
  log: Log
  tick: () => Promise<unknown>
}

/** The interval after a tick that returned "idle": nothing is open. */
const idleMilliseconds = 1_000

/**
 * Runs `tick` repeatedly, one at a time: when its queue is woken, otherwise every `every_milliseconds`, but at
 * most once a second after "idle", and at once after "more". A queue that is woken all the time rests for
 * `rest_milliseconds`, so that each tick finds more to do. A tick that throws is retried, and logged once
 * while its error stays the same.
 */
export function startLoop(loop: LoopOptions): Loop {
  let stopped = false
  let woken = false
  let wait: (() => void) | undefined
  let lastFailure = ""
  const wakeNow = () => {
    woken = true
    wait?.()
  }
  const stopListening = loop.wakeUps.onWake(loop.queue, wakeNow)

  /** Returns the result of a tick; undefined if it threw. */
  async function runTick(): Promise<unknown> {
    try {
      const answer = await loop.tick()
      if (lastFailure) loop.log.info({ queue: loop.queue }, "rounds succeed again")
      lastFailure = ""
      return answer
    } catch (error) {
      const failure = loggable(error)
      if (failure.error !== lastFailure)
        loop.log.warn({ queue: loop.queue, ...failure }, "a round failed and is tried again")
      lastFailure = failure.error
      return undefined
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      woken = false
      const answer = await runTick()
      if (woken && !stopped && loop.rest_milliseconds) await Bun.sleep(loop.rest_milliseconds)
      if (stopped || woken || answer === "more") continue
      const every =
        answer === "idle" ? Math.max(loop.every_milliseconds, idleMilliseconds) : loop.every_milliseconds
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, untilNextBeat(every))
        wait = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      wait = undefined
    }
  }

  const running = run()
  return {
    async stop() {
      stopped = true
      stopListening()
      wakeNow()
      await running
    },
  }
}
