import type { WakeUps } from "../../src/platform/wake.ts"
import { currentProcess, type SimulatedProcess, type Simulation, scheduleIn } from "./scheduler.ts"

/** Wake-ups between all processes of a history, as through Redis: they take a moment, and may be lost. */
export type WakeUpLine = {
  mood: "well" | "lost" | "doubled" | "late"
  /** One process's end of the connection. */
  connect(): WakeUps
}

const [fastest, slowest] = [0.2, 10]
const latestMilliseconds = 8_000

export function createWakeUpLine(simulation: Simulation): WakeUpLine {
  const listeners = new Set<{ process: SimulatedProcess | null; queue: string; call: () => void }>()
  const line: WakeUpLine = {
    mood: "well",
    connect: () => ({
      wake(queue) {
        const { mood } = line
        if (mood === "lost") return
        const times = mood === "doubled" ? 2 : 1
        for (const listener of listeners) {
          if (listener.queue !== queue) continue
          for (let time = 0; time < times; time++) {
            const most = mood === "late" ? latestMilliseconds : slowest
            scheduleIn(
              simulation,
              simulation.schedule.between(fastest, most),
              listener.process,
              listener.call,
            )
          }
        }
      },
      onWake(queue, call) {
        const listener = { process: currentProcess(), queue, call }
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      async close() {},
    }),
  }
  return line
}
