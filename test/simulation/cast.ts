import { createApp } from "../../src/api/app.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import type { Config } from "../../src/platform/config.ts"
import type { Log } from "../../src/platform/log.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { startWorkers } from "../../workers/start.ts"
import { repeatingTurns } from "./repeated-turns.ts"
import {
  createProcess,
  inProcess,
  kill,
  note,
  type SimulatedProcess,
  type Simulation,
  scheduleIn,
  sleep,
} from "./scheduler.ts"
import type { WakeUpLine } from "./wake-ups.ts"

/** The processes of a service, by name; one that dies is started again. */
export type Cast = {
  /** The configuration of processes that start from now on. */
  config: Config
  alive: Map<string, Life>
  deaths: number
  /** The share of database transactions that run twice. */
  repeat_probability: number
  /** Every line of every log. */
  lines: string[]
  /** Does nothing if the process is alive, or while nothing may run. */
  start(name: string): void
  /** Stops a process gracefully, as a supervisor does, and starts it again; resolves once it has stopped. */
  restart(name: string): Promise<void>
  /** A process for one piece of work, such as an operator's command, which waits while nothing may run. */
  visit<T>(name: string, work: (world: World) => Promise<T>): Promise<T>
  /** The same at once, even while nothing else may run. */
  visitAlone<T>(name: string, work: (world: World) => Promise<T>): Promise<T>
  /** Stops all processes, and nothing runs until `startAll`. */
  stopAll(): Promise<void>
  startAll(): void
  end(): void
}

/** One life of a process. The app of an API is set once it accepts requests. */
type Life = {
  process: SimulatedProcess
  app: ReturnType<typeof createApp> | null
  /** Stops it gracefully. */
  stop: () => Promise<void>
  rest_seconds: number
}

/** After which a supervisor waits no longer. */
const stopMilliseconds = 10_000
const waitMilliseconds = 100

export const apiNames = ["api0", "api1"]
export const workerNames = ["worker0", "worker1"]

export function createCast(simulation: Simulation, config: Config, wakeUpLine: WakeUpLine): Cast {
  let births = 0
  let visits = 0
  let isStopped = false
  const cast: Cast = {
    config,
    alive: new Map(),
    deaths: 0,
    repeat_probability: 0,
    lines: [],
    start,
    restart,
    visit,
    visitAlone,
    stopAll,
    startAll,
    end() {
      for (const { process } of cast.alive.values()) {
        process.onDeath = () => {}
        kill(simulation, process, "the end")
      }
    },
  }

  function start(name: string): void {
    if (isStopped || cast.alive.has(name)) return
    const process = createProcess(`${name}.${births++}`)
    const life: Life = { process, app: null, stop: async () => {}, rest_seconds: 1 }
    cast.alive.set(name, life)
    process.onDeath = () => {
      cast.deaths += 1
      cast.alive.delete(name)
      scheduleIn(simulation, life.rest_seconds * 1_000, null, () => start(name))
    }
    void inProcess(process, async () => {
      try {
        const world = await open(process)
        if (apiNames.includes(name)) life.app = createApp(world.context)
        else life.stop = startWorkers(world).stop
      } catch (error) {
        if (process.is_dead) return
        cast.lines.push(`${process.name} does not start: ${(error as Error).message}`)
        kill(simulation, process, "its start")
      }
    })
  }

  async function restart(name: string): Promise<void> {
    const life = cast.alive.get(name)
    if (!life) return
    life.app = null
    const stopped = inProcess(life.process, life.stop).catch(() => {})
    await Promise.race([stopped, sleep(simulation, stopMilliseconds)])
    kill(simulation, life.process, "its end")
  }

  async function stopAll(): Promise<void> {
    isStopped = true
    await Promise.all([...apiNames, ...workerNames].map(restart))
    while (visits > 0) await sleep(simulation, waitMilliseconds)
  }

  function startAll(): void {
    isStopped = false
    for (const name of [...apiNames, ...workerNames]) start(name)
  }

  async function open(process: SimulatedProcess): Promise<World> {
    const world = await openWorld(cast.config, tell)
    const wakeUps = wakeUpLine.connect()
    const db = repeatingTurns(world.context.db, () => {
      return cast.repeat_probability > 0 && simulation.schedule.happens(cast.repeat_probability)
    })
    const log = logOf(simulation, cast, process)
    return {
      ...world,
      wakeUps,
      context: { ...world.context, db, log, wake: wakeUps.wake, onWake: wakeUps.onWake },
    }
  }

  async function visit<T>(name: string, work: (world: World) => Promise<T>): Promise<T> {
    while (isStopped) await sleep(simulation, waitMilliseconds)
    return await visitAlone(name, work)
  }

  async function visitAlone<T>(name: string, work: (world: World) => Promise<T>): Promise<T> {
    visits += 1
    const process = createProcess(`${name}.${births++}`)
    return await inProcess(process, async () => {
      const world = await open(process)
      try {
        return await work(world)
      } finally {
        await world.close()
      }
    }).finally(() => {
      visits -= 1
    })
  }
  return cast
}

function logOf(simulation: Simulation, cast: Cast, process: SimulatedProcess): Log {
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
    const { stack = "", ...told } = fields
    const line = `${process.name} ${level} ${message} ${JSON.stringify(told)}`
    cast.lines.push(`${(simulation.now / 1_000).toFixed(3)} ${line} ${stack}`)
    note(simulation, line, String(stack))
  }
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }
}
