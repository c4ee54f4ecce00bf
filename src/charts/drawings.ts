import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { AnyStateMachine } from "xstate"
import { lifecycles, type MachineName } from "../actors/lifecycles.ts"
import { type Chart, chartOf } from "./chart.ts"
import { drawChart } from "./svg.ts"

export const machineNames = Object.keys(lifecycles) as MachineName[]

/** The chart of one of the six machines. */
export function chartNamed(name: MachineName): Chart {
  const machine: AnyStateMachine = lifecycles[name].machine
  return chartOf(machine)
}

/** Where the drawing of a machine is kept, and its Mermaid text. */
export function diagramPath(name: MachineName, extension: "svg" | "md"): string {
  return fileURLToPath(new URL(`../../machines/${name}.${extension}`, import.meta.url))
}

/** The SVG of a machine: the one that is kept when it is of this very definition, else a new one. */
export async function drawingOf(name: MachineName): Promise<string> {
  const path = diagramPath(name, "svg")
  const kept = existsSync(path) ? readFileSync(path, "utf8") : ""
  return kept.includes(`data-definition="${hashOf(chartNamed(name))}"`) ? kept : await drawAnew(name)
}

/** Draws a machine from its definition. */
export async function drawAnew(name: MachineName): Promise<string> {
  const chart = chartNamed(name)
  // The layout is large, and needed only where a definition is new.
  const { layOut } = await import("./layout.ts")
  return drawChart(await layOut(chart), hashOf(chart))
}

function hashOf(chart: Chart): string {
  return createHash("sha256").update(JSON.stringify(chart)).digest("hex").slice(0, 16)
}
