import { drainMicrotasks } from "bun:jsc"
import { AsyncLocalStorage } from "node:async_hooks"
import { type Stream, streamOf } from "./streams.ts"

/** The runtime's own, taken before the seams replace it. */
const realSetImmediate = globalThis.setImmediate

/** What belongs to one process of the service and ends with it. */
export type SimulatedProcess = {
  /** For example `worker1.0`, the first life of worker1. */
  name: string
  is_dead: boolean
  /** Until then the process does not run, as on a suspended machine. */
  frozen_until: number
  /** How far its wall clock is off. */
  skew_milliseconds: number
  /** Seams passed. */
  steps: number
  /** The seam at which it dies. */
  dies_at_step: number
  /** Open connections to the database, which die with it. */
  connections: Set<{ crash(): void }>
  /** Called once, when it has died. */
  onDeath: () => void
  /** How many random draws there were at an instant. */
  drawn: { at: number; count: number }
  /** The time and sequence of its last UUIDv7. */
  last_id: { milliseconds: number; sequence: number }
}

export function createProcess(name: string): SimulatedProcess {
  return {
    name,
    is_dead: false,
    frozen_until: 0,
    skew_milliseconds: 0,
    steps: 0,
    dies_at_step: Number.POSITIVE_INFINITY,
    connections: new Set(),
    onDeath: () => {},
    drawn: { at: -1, count: 0 },
    last_id: { milliseconds: Number.NEGATIVE_INFINITY, sequence: 0 },
  }
}

/** Thrown at whatever a dead process does next. */
class ProcessDied extends Error {
  override name = "ProcessDied"
  constructor() {
    super("the simulated process is dead")
  }
}

export type ScheduledItem = {
  at: number
  tie: number
  number: number
  process: SimulatedProcess | null
  run: () => void
  is_off: boolean
}

/** The state of the disk under the database; it affects every process. */
type Disk = "well" | "full" | "busy" | "failing"

/** One history in progress: its clock, what is scheduled, and what was seen. Milliseconds since its start. */
export type Simulation = {
  readonly seed: bigint
  /** Milliseconds since 1970 at its start. */
  readonly epoch: number
  now: number
  /** What each seam costs, in milliseconds of the clock. */
  seam_milliseconds: number
  disk: Disk
  /** Work on other threads or in the EVM: no time passes before it is done. */
  busy: number
  /** Seams passed by all processes. */
  steps: number
  /** A rolling hash of everything that happened, in order. */
  hash: bigint
  /** Every event in words, if requested. */
  trace: string[] | null
  /** The source of random draws that belong to no process. */
  readonly outside: SimulatedProcess
  readonly schedule: Stream
  readonly queue: ScheduledItem[]
  scheduled: number
}

export function createSimulation(seed: bigint, epoch: number, isTraced: boolean): Simulation {
  return {
    seed,
    epoch,
    now: 0,
    seam_milliseconds: usualSeamMilliseconds,
    disk: "well",
    busy: 0,
    steps: 0,
    hash: 0n,
    trace: isTraced ? [] : null,
    outside: createProcess("outside"),
    schedule: streamOf(seed, "schedule"),
    queue: [],
    scheduled: 0,
  }
}

export const usualSeamMilliseconds = 0.03

let present: Simulation | null = null

/** The history that the seams serve; without one they do what they did before. */
export function serve(simulation: Simulation | null): void {
  present = simulation
}

export function served(): Simulation | null {
  return present
}

const processes = new AsyncLocalStorage<SimulatedProcess | null>()

/** The process in which the caller runs; null outside all of them. */
export function currentProcess(): SimulatedProcess | null {
  return processes.getStore() ?? null
}

export function inProcess<T>(process: SimulatedProcess | null, work: () => T): T {
  return processes.run(process, work)
}

/** Runs `run` after a time, in the process and the asynchronous context of the caller, unless that process dies. */
export function scheduleIn(
  simulation: Simulation,
  milliseconds: number,
  process: SimulatedProcess | null,
  run: () => void,
): ScheduledItem {
  const item = {
    at: simulation.now + Math.max(milliseconds, 0),
    tie: simulation.schedule.word(),
    number: simulation.scheduled++,
    process,
    run: AsyncLocalStorage.bind(run),
    is_off: false,
  }
  push(simulation.queue, item)
  return item
}

export function sleep(simulation: Simulation, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    scheduleIn(simulation, milliseconds, currentProcess(), resolve)
  })
}

/**
 * Runs one item after the other until `isDone`; everything that follows from an item without waiting happens before
 * the next. Throws when `until` passes or nothing is scheduled.
 */
export async function runUntil(simulation: Simulation, isDone: () => boolean, until: number): Promise<void> {
  while (!(await inTurnOfItsOwn(() => runWhileIdle(simulation, isDone, until)))) {}
}

/** The same until the real event loop is needed for work elsewhere; returns whether it `isDone`. */
function runWhileIdle(simulation: Simulation, isDone: () => boolean, until: number): boolean {
  for (;;) {
    drainMicrotasks()
    if (simulation.busy > 0) return false
    if (isDone()) return true
    runNext(simulation, until)
  }
}

/** A turn of the real event loop, whose promises only `work` drains. */
function inTurnOfItsOwn<T>(work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    realSetImmediate(() => {
      try {
        resolve(work())
      } catch (error) {
        reject(error)
      }
    })
  })
}

function runNext(simulation: Simulation, until: number): void {
  const item = pop(simulation.queue)
  if (!item) throw new Error("nothing is scheduled any more, and the history has not ended")
  if (item.at > until)
    throw new Error(`the history has not ended after ${Math.round(until / 1_000)} simulated seconds`)
  const { process } = item
  if (item.is_off || process?.is_dead) return
  if (process && process.frozen_until > item.at) {
    push(simulation.queue, Object.assign(item, { at: process.frozen_until }))
    return
  }
  simulation.now = Math.max(simulation.now, item.at)
  item.run()
}

/** Passes one seam in the current process: it costs time, and the process may die here. */
export function passSeam(simulation: Simulation, what: string): void {
  const process = currentProcess()
  if (!process) return
  if (process.is_dead) throw new ProcessDied()
  process.steps += 1
  simulation.steps += 1
  simulation.now += simulation.seam_milliseconds
  note(simulation, what)
  if (process.steps < process.dies_at_step) return
  kill(simulation, process, what)
  throw new ProcessDied()
}

/** Kills a process between two of its statements: its connections break, and its timers never fire. */
export function kill(simulation: Simulation, process: SimulatedProcess, where: string): void {
  if (process.is_dead) return
  note(simulation, `${process.name} DIES at ${where}`)
  process.is_dead = true
  for (const connection of process.connections) connection.crash()
  process.onDeath()
}

/** Adds an event to the hash and, if there is one, to the trace, which also has `where` in the code. */
export function note(simulation: Simulation, what: string, where = ""): void {
  const line = `${simulation.now.toFixed(3)} ${currentProcess()?.name ?? "-"} ${what}`
  simulation.hash = BigInt(Bun.hash(line, simulation.hash))
  simulation.trace?.push(`${line} ${where}`)
}

// A binary heap, by time, then by chance, then by order.

function push(queue: ScheduledItem[], item: ScheduledItem): void {
  let index = queue.length
  queue.push(item)
  while (index > 0) {
    const above = (index - 1) >> 1
    const parent = queue[above] as ScheduledItem
    if (isBefore(parent, item)) break
    queue[index] = parent
    index = above
  }
  queue[index] = item
}

function pop(queue: ScheduledItem[]): ScheduledItem | undefined {
  const first = queue[0]
  const last = queue.pop()
  if (!last || queue.length === 0) return first
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= queue.length) break
    const [left, right] = [queue[child] as ScheduledItem, queue[child + 1]]
    if (right && isBefore(right, left)) child += 1
    const smaller = queue[child] as ScheduledItem
    if (isBefore(last, smaller)) break
    queue[index] = smaller
    index = child
  }
  queue[index] = last
  return first
}

function isBefore(one: ScheduledItem, other: ScheduledItem): boolean {
  if (one.at !== other.at) return one.at < other.at
  if (one.tie !== other.tie) return one.tie < other.tie
  return one.number < other.number
}
