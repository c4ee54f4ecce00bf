import { readFileSync } from "node:fs"
import { join } from "node:path"
import { freePort } from "../../src/platform/free-port.ts"

export type Child = {
  port: number
  /** Processor time since its start, and the memory it holds now. */
  spent(): { seconds: number; resident_megabytes: number }
  /** From its start to its first response. */
  start_milliseconds: number
}

const root = join(import.meta.dir, "../..")
const taskset = Bun.which("taskset")
const clockTicksPerSecond = 100

/** Keeps a process to one processor, where the system can: servers on the first, who asks them on the last. */
function onProcessor(processor: number): string[] {
  return taskset && navigator.hardwareConcurrency > 1 ? [taskset, "-c", `${processor}`] : []
}

/** Moves this process, which asks, away from the servers. */
export function moveAside(): void {
  if (!taskset || navigator.hardwareConcurrency < 2) return
  const last = `${navigator.hardwareConcurrency - 1}`
  Bun.spawnSync([taskset, "-a", "-c", "-p", last, `${process.pid}`], { stdout: "ignore" })
}

/** Starts a server of this project, which listens on PORT, on the first processor; waits for its first response. */
export async function startChild(script: string, environment: Record<string, string>): Promise<Child> {
  const port = await freePort()
  const begin = performance.now()
  const child = Bun.spawn([...onProcessor(0), process.execPath, script], {
    cwd: root,
    env: { PATH: process.env.PATH, ...environment, PORT: `${port}` },
    stdio: ["ignore", "ignore", Bun.file(environment.LOG_FILE ?? "/dev/null")],
  })
  running.push(child)
  const deadline = begin + 30_000
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${script} does not answer; its log is ${environment.LOG_FILE}`)
    await Bun.sleep(5)
  }
  return {
    port,
    start_milliseconds: performance.now() - begin,
    spent() {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ")
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8")
      return {
        seconds: (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond,
        resident_megabytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024,
      }
    },
  }
}

const running: Bun.Subprocess[] = []

/** Ends every server that was started. */
export async function stopChildren(): Promise<void> {
  for (const child of running) child.kill("SIGKILL")
  await Promise.all(running.splice(0).map((child) => child.exited))
}

async function answers(port: number): Promise<boolean> {
  try {
    await (await fetch(`http://127.0.0.1:${port}/health`)).text()
    return true
  } catch {
    return false
  }
}
