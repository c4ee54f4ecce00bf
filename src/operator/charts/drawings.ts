import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { MachineName } from "../../engine/actors/lifecycles.ts"
import type { Chart } from "./chart.ts"
import { chartNamed } from "./machine-charts.ts"
import { drawChart } from "./svg.ts"

/** Where a machine's drawing or Mermaid text is kept. */
export function diagramPath(name: MachineName, extension: "svg" | "md"): string {
  return fileURLToPath(new URL(`../../../machines/${name}.${extension}`, import.meta.url))
}

/** A machine's SVG: the kept one if it is of this very definition, else a new one. */
export async function drawingOf(name: MachineName): Promise<string> {
  const path = diagramPath(name, "svg")
  const kept = existsSync(path) ? readFileSync(path, "utf8") : ""
  return kept.includes(`data-definition="${hashOf(chartNamed(name))}"`) ? kept : await drawAnew(name)
}

/** Draws a machine from its definition. */
export async function drawAnew(name: MachineName): Promise<string> {
  const chart = chartNamed(name)
  // The layout engine is large, and needed only for a new definition.
  const { layOut } = await import("./layout.ts")
  return drawChart(await layOut(chart), hashOf(chart))
}

function hashOf(chart: Chart): string {
  return createHash("sha256").update(JSON.stringify(chart)).digest("hex").slice(0, 16)
}
