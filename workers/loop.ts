import { type Log, loggable } from "../src/platform/log.ts"
import type { WakeUps } from "../src/platform/wake.ts"

export type Loop = { stop(): Promise<void> }

/**
 * Runs `tick` again and again, one at a time: when its queue is woken, else every `every_milliseconds`. One that is
 * woken all the time rests for `rest_milliseconds`, so that each tick finds more to do. A tick that throws is logged
 * once for as long as it says the same, and is tried again.
 */
export function startLoop(loop: {
  queue: string
  every_milliseconds: number
  rest_milliseconds?: number
  wakeUps: WakeUps
  log: Log
  tick: () => Promise<unknown>
}): Loop {
  let stopped = false
  let woken = false
  let wait: (() => void) | undefined
  let lastFailure = ""
  const wakeNow = () => {
    woken = true
    wait?.()
  }
  const stopListening = loop.wakeUps.onWake(loop.queue, wakeNow)

  async function runTick(): Promise<void> {
    try {
      await loop.tick()
      if (lastFailure) loop.log.info({ queue: loop.queue }, "works again")
      lastFailure = ""
    } catch (error) {
      const failure = loggable(error)
      if (failure.error !== lastFailure) loop.log.warn({ queue: loop.queue, ...failure }, "is tried again")
      lastFailure = failure.error
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      woken = false
      await runTick()
      if (woken && !stopped && loop.rest_milliseconds) await Bun.sleep(loop.rest_milliseconds)
      if (stopped || woken) continue
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, loop.every_milliseconds)
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
