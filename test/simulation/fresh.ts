import { availableParallelism } from "node:os"
import { join } from "node:path"
import { tellFailure } from "./report.ts"

/**
 * How many histories one process runs before another takes over: enough to be warm, but not so many that its memory is
 * full.
 */
const perProcess = 4_000
const tellMilliseconds = 60_000

type Tally = { histories: number; failed: number; simulated_seconds: number; since: number }

/**
 * Runs new histories from a seed on for some hours, on every core. Reports failures at once, progress every minute, and
 * a
 * summary at the end; returns whether all passed.
 */
export async function playFresh(first: bigint, hours: number): Promise<boolean> {
  const now = performance.now()
  const tally: Tally = { histories: 0, failed: 0, simulated_seconds: 0, since: now }
  const until = now + hours * 3_600_000
  let next = first
  let told = now

  function take(line: string): void {
    const failure = count(tally, line)
    if (failure) process.stdout.write(failure)
    if (performance.now() - told < tellMilliseconds) return
    told = performance.now()
    process.stdout.write(`${inWords(tally)}\n`)
  }

  async function playOn(): Promise<void> {
    while (performance.now() < until) {
      const seed = next
      next += BigInt(perProcess)
      const broken = await playFrom(seed, until, take)
      if (!broken) continue
      tally.failed += 1
      process.stdout.write(`${broken}\n`)
    }
  }

  process.stdout.write(`histories from seed ${first} on\n`)
  await Promise.all(Array.from({ length: availableParallelism() }, playOn))
  process.stdout.write(`${inWords(tally)}\n`)
  return tally.failed === 0
}

/** Runs in a separate process until it has run all or time is up; returns how the process itself failed. */
async function playFrom(seed: bigint, until: number, take: (line: string) => void): Promise<string | null> {
  const options = ["--json", "--keep-going", "--seed", String(seed), "--count", String(perProcess)]
  const command = [process.execPath, join(import.meta.dir, "simulate.ts"), ...options]
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  const decoder = new TextDecoder()
  let text = ""
  for await (const bytes of child.stdout) {
    const lines = (text + decoder.decode(bytes, { stream: true })).split("\n")
    text = lines.pop() ?? ""
    for (const line of lines) take(line)
    if (lines.length > 0 && performance.now() > until) child.kill()
  }
  const code = await child.exited
  if (child.killed || code === 0 || code === 1) return null
  return `the process that played from seed ${seed} on ended with ${code}`
}

/** Adds a line of `simulate --json`; returns how its history fails, or null if it passes. */
function count(tally: Tally, line: string): string | null {
  const { seed, found, simulated_seconds } = JSON.parse(line) as {
    seed: string
    found?: string[]
    simulated_seconds: number
  }
  if (!found) return null
  tally.histories += 1
  tally.simulated_seconds += simulated_seconds
  if (found.length === 0) return null
  tally.failed += 1
  return tellFailure(seed, found)
}

function inWords({ histories, failed, simulated_seconds, since }: Tally): string {
  const years = (simulated_seconds / 31_557_600).toFixed(6)
  const minutes = Math.round((performance.now() - since) / 60_000)
  return `${histories} histories, ${failed} failed, ${years} simulated years, ${minutes} minutes`
}
