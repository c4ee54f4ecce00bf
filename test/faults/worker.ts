import type { Step } from "../../src/engine/lanes/step.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { startWorkers } from "../../workers/start.ts"

/** The settings of a worker process in a fault test, as JSON in its only argument. */
export type WorkerSettings = {
  environment: Record<string, string>
  lease_milliseconds: number
  /** How far the clock is off, from a time after the start. */
  clock: { by_milliseconds: number; after_milliseconds: number } | null
  /** Where the process kills itself: at the n-th pass of a step for a kind of work. */
  kill: KillStep | null
}

export type KillStep = { step: Step; kind: string; pass: number }

if (import.meta.main) {
  const settings: WorkerSettings = JSON.parse(String(process.argv[2]))
  const { clock: wrong, kill } = settings
  const world = await openWorld(loadConfig(settings.environment), tell)
  const begin = performance.now()
  const clock = () => {
    const isWrong = wrong !== null && performance.now() - begin >= wrong.after_milliseconds
    return new Date(Date.now() + (isWrong ? wrong.by_milliseconds : 0))
  }
  let passes = 0
  const checkpoint = (step: Step, kind: string) => {
    if (step !== kill?.step || kind !== kill.kind) return
    passes += 1
    if (passes === kill.pass) process.kill(process.pid, "SIGKILL")
  }
  const { lease_milliseconds } = settings
  const workers = startWorkers(
    { ...world, context: { ...world.context, clock } },
    { lease_milliseconds, checkpoint },
  )
  process.on("SIGTERM", async () => {
    await workers.stop()
    await world.close()
    process.exit(0)
  })
}
