import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { copyProject, removeCopy } from "../harness/project-copy.ts"
import type { Area } from "./areas.ts"
import { type Fault, withFault } from "./faults.ts"

/** A copy of the project that may be mutated, on SQLite alone. */
export type Copy = {
  /** Returns what an area's tests say about the copy with this fault, or without one; null if it does not compile. */
  play(area: Area, fault: Fault | null): Promise<Verdict | null>
  remove(): void
}

/** The first line of a failing test file; null if everything passed. */
export type Verdict = { failed: string | null; seconds: number }

export function makeCopy(): Copy {
  const folder = copyProject()
  withSqliteAlone(folder)
  return {
    async play({ build, tests }, fault) {
      const begin = performance.now()
      const path = fault && join(folder, fault.file)
      const whole = path ? readFileSync(path, "utf8") : ""
      if (path) writeFileSync(path, withFault(whole, fault))
      try {
        if (build && !(await builds(folder, build))) return null
        const failed = await firstFailure(folder, tests)
        return { failed, seconds: (performance.now() - begin) / 1_000 }
      } finally {
        if (path) writeFileSync(path, whole)
      }
    },
    remove: () => removeCopy(folder),
  }
}

/** What both engines do alike is tested on one of them. */
function withSqliteAlone(folder: string): void {
  const path = join(folder, "test/harness/engines.ts")
  const text = readFileSync(path, "utf8")
  const both = "export const engines: Engine[] = [sqlite, postgres]"
  if (!text.includes(both)) throw new Error(`test/harness/engines.ts no longer has: ${both}`)
  writeFileSync(path, text.replace(both, "export const engines: Engine[] = [sqlite].concat(postgres && [])"))
}

async function builds(folder: string, program: string): Promise<boolean> {
  const child = Bun.spawn(["nice", "-n", "10", process.execPath, program], {
    ...{ cwd: folder, stdout: "ignore", stderr: "ignore" },
  })
  return (await child.exited) === 0
}

/** A fault that makes a test hang is detected, too. */
const patienceMilliseconds = 240_000

/** One file after another, each in a process of its own, until one of them fails. */
async function firstFailure(folder: string, tests: string[]): Promise<string | null> {
  for (const test of tests) {
    const command = [process.execPath, "test", "--bail", "--timeout", "60000", `test/${test}.test.ts`]
    const child = Bun.spawn(["nice", "-n", "10", ...command], {
      ...{ cwd: folder, stdout: "ignore", stderr: "pipe", env: { ...process.env, NO_COLOR: "1" } },
      ...{ timeout: patienceMilliseconds, killSignal: "SIGKILL" },
    })
    const said = await new Response(child.stderr).text()
    if ((await child.exited) !== 0) return `${test}: ${/^\(fail\) (.*)$/m.exec(said)?.[1] ?? lastLine(said)}`
  }
  return null
}

function lastLine(text: string): string {
  return (
    text
      .trim()
      .split("\n")
      .findLast((line) => /error/i.test(line)) ?? "it did not end"
  )
}
