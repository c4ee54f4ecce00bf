import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { AnyStateMachine } from "xstate"
import { lifecycles } from "../../src/engine/actors/lifecycles.ts"
import { chartOf } from "../../src/operator/charts/chart.ts"
import { machineNames } from "../../src/operator/charts/machine-charts.ts"
import { mermaidOf } from "../../src/operator/charts/mermaid.ts"

setDefaultTimeout(60_000)
const root = join(import.meta.dir, "../..")

describe("the diagrams in machines/", () => {
  test("match the machines", async () => {
    expect(await runDiagrams(root, "--check")).toEqual({ code: 0, complaint: "" })
  })

  for (const name of machineNames)
    test(`of ${name} have every state and transition, in SVG and in Mermaid`, () => {
      const machine: AnyStateMachine = lifecycles[name].machine
      const { states, transitions } = chartOf(machine)
      const svg = readFileSync(join(root, "machines", `${name}.svg`), "utf8")
      const text = readFileSync(join(root, "machines", `${name}.md`), "utf8")
      expect(svg.match(/<g class="state [^"]*" data-state=/g)).toHaveLength(
        states.filter(({ path }) => path !== "" || svg.includes(`data-state=""`)).length,
      )
      expect(svg.match(/<g class="transition"/g)).toHaveLength(transitions.length)
      expect(text).toContain(mermaidOf(chartOf(machine)))
      for (const { label } of transitions) expect(text).toContain(`: ${label}\n`)
      for (const { name: state } of states.slice(1)) expect(text).toContain(`"${state}`)
    })
})

describe("in a copy of the project", () => {
  let copy: string
  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), "diagrams-"))
    for (const folder of ["src", "machines"])
      cpSync(join(root, folder), join(copy, folder), { recursive: true })
    cpSync(join(root, "package.json"), join(copy, "package.json"))
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  })
  afterAll(() => rmSync(copy, { recursive: true }))

  test("the check fails and names the diagrams of a changed machine until they are drawn again", async () => {
    const path = join(copy, "machines/session-token.ts")
    const text = readFileSync(path, "utf8")
    writeFileSync(
      path,
      text.replace('on: { REVOKE: "revoked" }', 'on: { REVOKE: "revoked", LOSE: "revoked" }'),
    )
    const { code, complaint } = await runDiagrams(copy, "--check")
    expect(code).toBe(1)
    expect(complaint).toContain("session-token.svg, session-token.md; run")
    expect((await runDiagrams(copy)).code).toBe(0)
    expect(await runDiagrams(copy, "--check")).toEqual({ code: 0, complaint: "" })
    expect(readFileSync(join(copy, "machines/session-token.md"), "utf8")).toContain("LOSE")
  })
})

async function runDiagrams(folder: string, ...words: string[]): Promise<{ code: number; complaint: string }> {
  const child = Bun.spawn([process.execPath, "src/diagrams.ts", ...words], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  })
  const complaint = await child.stderr.text()
  return { code: await child.exited, complaint }
}
