import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { outdated, undeclared } from "../harness/project-copy.ts"
import { seedOf } from "../harness/seed.ts"
import { mutations } from "./mutations.ts"

// Whole histories of the service on a simulated clock, in separate processes, because the seams affect a whole process.
// SIMULATION_SEED repeats a run, SIMULATION_HISTORIES makes it longer or shorter.

const seed = seedOf("SIMULATION_SEED")
const histories = Number(process.env.SIMULATION_HISTORIES ?? 150)
const patienceMilliseconds = 20 * 60_000

describe("the simulated service keeps every promise", () => {
  test(
    "in each history that ever failed",
    async () => {
      const { said, exitCode } = await simulate(["--corpus"])
      expect(said).not.toContain("found  ")
      expect(exitCode).toBe(0)
    },
    patienceMilliseconds,
  )

  test(
    `in ${histories} histories from seed ${seed} on`,
    async () => {
      const half = Math.ceil(histories / 2)
      const played = await Promise.all(
        [
          { from: seed, count: half },
          { from: seed + half, count: histories - half },
        ].map(({ from, count }) => simulate(["--seed", String(from), "--count", String(count)])),
      )
      for (const { said, exitCode } of played) {
        expect(said).not.toContain("found  ")
        expect(exitCode).toBe(0)
      }
    },
    patienceMilliseconds,
  )
})

test(
  "a history is the same alone, among others and in another process",
  async () => {
    const first = seed + histories
    const together = await digests(first, 4)
    const alone = await Promise.all([1, 3].map((index) => digests(first + index, 1)))
    expect(together).toHaveLength(4)
    expect(alone.flat()).toEqual([together[1], together[3]] as string[])
  },
  patienceMilliseconds,
)

test(
  "another seed is another history",
  async () => {
    const [one, other] = await digests(seed, 2)
    expect(one).not.toBe(other as string)
  },
  patienceMilliseconds,
)

test(
  "whoever plays for some time is told how many histories there were, and how long they were",
  async () => {
    const { said } = await simulate(["--hours", "0.0001", "--seed", String(seed)])
    expect(said).toMatch(/^[1-9]\d* histories, \d+ failed, 0\.\d{6} simulated years, 0 minutes$/m)
  },
  patienceMilliseconds,
)

test("every mutation still breaks what is there", () => {
  expect(outdated(mutations)).toEqual([])
})

test("no mutation fails for want of a name", () => {
  expect(undeclared(mutations)).toEqual([])
})

async function digests(first: number, count: number): Promise<string[]> {
  const { said } = await simulate([
    "--json",
    "--keep-going",
    "--seed",
    String(first),
    "--count",
    String(count),
  ])
  const lines = said.trim().split("\n")
  return lines.flatMap((line) => (JSON.parse(line) as { digest?: string }).digest ?? [])
}

async function simulate(options: string[]): Promise<{ said: string; exitCode: number }> {
  const command = [process.execPath, join(import.meta.dir, "simulate.ts"), ...options]
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { said: out + err, exitCode: await child.exited }
}
