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
    .flatMap((state) => [
      ...(state.is_initial ? [`${indent}[*] --> ${idOf(state.path)}`] : []),
      ...(state.kind === "compound"
        ? [
            `${indent}state "${textOf(state)}" as ${idOf(state.path)} {`,
            ...linesInside(chart, state.path, `${indent}  `),
            `${indent}}`,
          ]
        : state.is_initial || state.parent === ""
          ? []
          : [`${indent}${idOf(state.path)}`]),
    ])
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
