import { currentProcess, note, type ScheduledItem, scheduleIn, served } from "../scheduler.ts"

// The clock and the timers of the whole process, which follow the history being served.

/** The runtime's own functions, also used to measure real time. */
export const real = {
  setImmediate: globalThis.setImmediate,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  now: performance.now.bind(performance),
}

const RealDate = Date

class SimulatedDate extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(SimulatedDate.now())
    else super(...(given as [number]))
  }
  static override now(): number {
    const simulation = served()
    if (!simulation) return RealDate.now()
    const { epoch, now } = simulation
    return Math.floor(epoch + now + (currentProcess()?.skew_milliseconds ?? 0))
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof RealDate
  }
}
globalThis.Date = SimulatedDate as DateConstructor
performance.now = () => served()?.now ?? real.now()

type SimulatedTimer = {
  item: ScheduledItem | null
  ref(): SimulatedTimer
  unref(): SimulatedTimer
  hasRef(): boolean
  [Symbol.dispose](): void
}

function timerOf(item: ScheduledItem | null): SimulatedTimer {
  const timer: SimulatedTimer = {
    item,
    ref: () => timer,
    unref: () => timer,
    hasRef: () => true,
    [Symbol.dispose]: () => clear(timer),
  }
  return timer
}

function clear(timer: unknown): void {
  const item = (timer as SimulatedTimer | null)?.item
  if (item) item.is_off = true
  else real.clearTimeout(timer as Timer)
}

/** With this timer the router clears a cache of the whole process, once; it does not affect histories. */
const routerCacheMilliseconds = 295_000

function setSimulatedTimeout(ring: (...given: unknown[]) => void, milliseconds = 0, ...given: unknown[]) {
  const simulation = served()
  if (!simulation) return real.setTimeout(ring, milliseconds, ...given)
  const process = currentProcess()
  if (process?.is_dead || milliseconds === routerCacheMilliseconds) return timerOf(null)
  const item = scheduleIn(simulation, Math.max(milliseconds, 0.001), process, () => {
    note(simulation, "timer")
    ring(...given)
  })
  return timerOf(item)
}

function setSimulatedInterval(ring: () => void, milliseconds: number) {
  const simulation = served()
  if (!simulation) throw new Error("an interval begins outside of every history")
  const process = currentProcess()
  const timer = timerOf(null)
  const goOn = () => {
    timer.item = scheduleIn(simulation, Math.max(milliseconds, 1), process, () => {
      const rung = timer.item
      ring()
      if (!rung?.is_off) goOn()
    })
  }
  if (!process?.is_dead) goOn()
  return timer
}

/** A turn of the event loop takes a moment. */
const [leastTurn, mostTurn] = [0.001, 0.3]

function setSimulatedImmediate(run: (...given: unknown[]) => void, ...given: unknown[]) {
  const simulation = served()
  if (!simulation) return real.setImmediate(run, ...given)
  const process = currentProcess()
  if (process?.is_dead) return timerOf(null)
  const turn = simulation.schedule.between(leastTurn, mostTurn)
  return timerOf(scheduleIn(simulation, turn, process, () => run(...given)))
}

Object.assign(globalThis, {
  setTimeout: setSimulatedTimeout,
  clearTimeout: clear,
  setInterval: setSimulatedInterval,
  clearInterval: clear,
  setImmediate: setSimulatedImmediate,
})
Bun.sleep = (milliseconds) =>
  new Promise((resolve) => {
    setSimulatedTimeout(() => resolve(), Number(milliseconds))
  })

AbortSignal.timeout = (milliseconds) => {
  const aborter = new AbortController()
  const reason = new DOMException("The operation timed out.", "TimeoutError")
  setSimulatedTimeout(() => aborter.abort(reason), milliseconds)
  return aborter.signal
}
