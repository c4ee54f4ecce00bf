import type { Chart, ChartState } from "./chart.ts"

/** A chart as a Mermaid `stateDiagram-v2`. */
export function mermaidOf(chart: Chart): string {
  const inner = chart.states.filter(({ path }) => path !== "")
  const anywhere = chart.transitions.some(({ source }) => source === "")
  return [
    "stateDiagram-v2",
    ...inner
      .filter(({ kind }) => kind !== "compound")
      .map((state) => `  state "${textOf(state)}" as ${idOf(state.path)}`),
    ...(anywhere ? [`  state "${textOf({ ...rootOf(chart), name: "in any state" })}" as ${idOf("")}`] : []),
    ...linesInside(chart, "", "  "),
    ...chart.transitions.map(
      ({ source, target, label }) => `  ${idOf(source)} --> ${idOf(target)}: ${label}`,
    ),
    ...inner.filter(({ kind }) => kind === "final").map(({ path }) => `  ${idOf(path)} --> [*]`),
    "",
  ].join("\n")
}

function linesInside(chart: Chart, path: string, indent: string): string[] {
  return chart.states
    .filter(({ parent }) => parent === path)
    .flatMap((state) => {
      const id = idOf(state.path)
      const initial = state.is_initial ? [`${indent}[*] --> ${id}`] : []
      if (state.kind === "compound")
        return [
          ...initial,
          `${indent}state "${textOf(state)}" as ${id} {`,
          ...linesInside(chart, state.path, `${indent}  `),
          `${indent}}`,
        ]
      // Its initial arrow places it, and at the top nothing needs a place.
      return state.is_initial || path === "" ? initial : [`${indent}${id}`]
    })
}

function rootOf(chart: Chart): ChartState {
  const root = chart.states.find(({ path }) => path === "")
  if (!root) throw new Error(`${chart.name} has no root`)
  return root
}

function textOf({ name, effects }: ChartState): string {
  return [name, ...effects].join(" · ")
}

function idOf(path: string): string {
  return path === "" ? "anywhere" : path.replaceAll(/[^a-zA-Z0-9]/g, "_")
}
