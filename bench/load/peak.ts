import { readFileSync, writeFileSync } from "node:fs"

/**
 * Loaded before a command that is measured: writes the most memory that its process ever held, in megabytes, to the file
 * PEAK_FILE when it ends. What the system says of an ended child is no less than its parent held when it started it.
 */
process.on("exit", () => {
  const kilobytes = Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1])
  writeFileSync(`${process.env.PEAK_FILE}`, `${(kilobytes * 1_024) / 1e6}`)
})
