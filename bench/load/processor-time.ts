import { readdirSync, readFileSync } from "node:fs"

/** Processor time of every process that came from this one, in seconds, those that have ended among them. */
export function secondsBelow(parent: number): number {
  const rows = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => rowOf(Number(name)) ?? [])
  const below = (pid: number): number =>
    rows.filter((row) => row.parent === pid).reduce((sum, row) => sum + row.seconds + below(row.pid), 0)
  return below(parent)
}

const clockTicksPerSecond = 100

function rowOf(pid: number): { pid: number; parent: number; seconds: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ")
    // proc(5): utime, stime, and cutime, cstime of the children that it waited for.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { pid, parent: Number(fields[1]), seconds: ticks / clockTicksPerSecond }
  } catch {
    return null
  }
}
