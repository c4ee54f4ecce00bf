import ELK, { type ElkEdgeSection, type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk.bundled.js"
import { type Chart, type ChartState, type ChartTransition, isInside } from "./chart.ts"
import { anywhereText, countWidth, dotSize, letterWidth, lineHeight } from "./drawing-sizes.ts"

/** A chart with coordinates, in pixels from the upper left corner. */
export type Layout = {
  name: string
  width: number
  height: number
  states: PlacedState[]
  edges: PlacedEdge[]
  dots: Box[]
}

export type Box = { x: number; y: number; width: number; height: number }

/** `box` is null for the machine itself, which is the whole drawing. */
export type PlacedState = ChartState & { box: Box | null; anywhere: Box | null }

/** `transition` is null for the arrow from a dot to an initial state. */
export type PlacedEdge = {
  transition: ChartTransition | null
  points: { x: number; y: number }[]
  label: { text: string; box: Box } | null
}

/**
 * Lays out a chart with the layered algorithm of the Eclipse Layout Kernel, left to right or top to bottom, whichever
 * is narrower.
 */
export async function layOut(chart: Chart): Promise<Layout> {
  const across = await layOutTowards(chart, "RIGHT")
  const down = await layOutTowards(chart, "DOWN")
  return across.width < down.width ? across : down
}

async function layOutTowards(chart: Chart, direction: "RIGHT" | "DOWN"): Promise<Layout> {
  const layoutOptions = { ...rootOptions, "elk.direction": direction }
  const graph = await new ELK().layout({ ...elkNodeOf(chart, ""), layoutOptions })
  // The kernel takes Bun's main thread for its worker and leaves a listener, which would keep the process alive.
  Object.assign(globalThis, { onmessage: null })
  const places = placesIn(graph)
  const transitions = new Map(chart.transitions.map((transition) => [transition.id, transition]))
  return {
    name: chart.name,
    width: Math.ceil(graph.width ?? 0),
    height: Math.ceil(graph.height ?? 0),
    states: chart.states.map((state) => ({
      ...state,
      box: state.path === "" ? null : placeOf(places, state.path),
      anywhere: places.get(anywhereId(state.path)) ?? null,
    })),
    edges: edgesIn(graph).map((edge) => placeEdge(edge, transitions.get(edge.id) ?? null)),
    dots: [...places].filter(([id]) => id.startsWith(dotPrefix)).map(([, box]) => box),
  }
}

const rootOptions = {
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.layered.cycleBreaking.strategy": "DEPTH_FIRST",
  "elk.json.edgeCoords": "ROOT",
  "elk.padding": "[top=8,left=8,bottom=8,right=8]",
  "elk.spacing.nodeNode": "28",
  "elk.spacing.edgeNode": "16",
  "elk.spacing.edgeEdge": "14",
  "elk.spacing.edgeLabel": "4",
  "elk.layered.spacing.nodeNodeBetweenLayers": "28",
  "elk.layered.spacing.edgeNodeBetweenLayers": "14",
}

const innerOptions = { "elk.padding": "[top=40,left=14,bottom=14,right=14]" }

const dotPrefix = "dot:"

function anywhereId(path: string): string {
  return `anywhere:${path}`
}

function elkNodeOf(chart: Chart, path: string): ElkNode & { edges: ElkExtendedEdge[] } {
  const children = chart.states.filter(({ parent }) => parent === path)
  const fromAnywhere = chart.transitions.some((transition) => startsAnywhere(transition, path))
  const initial = children.find(({ is_initial }) => is_initial)
  const dot = initial ? [{ id: dotPrefix + path, width: dotSize, height: dotSize }] : []
  const self = chart.states.find((state) => state.path === path)
  const anywhere = fromAnywhere
    ? [{ id: anywhereId(path), ...sizeOf({ name: anywhereText, effects: self?.effects ?? [] }) }]
    : []
  return {
    id: `state:${path}`,
    children: [...dot, ...anywhere, ...children.map((child) => elkChildOf(chart, child))],
    edges: [
      ...(initial ? [elkEdge(`initial:${path}`, dotPrefix + path, `state:${initial.path}`, "")] : []),
      ...chart.transitions.filter((each) => containerOf(each) === path).map(elkTransition),
    ],
  }
}

function elkChildOf(chart: Chart, state: ChartState): ElkNode {
  if (state.kind === "compound") return { ...elkNodeOf(chart, state.path), layoutOptions: innerOptions }
  const { width, height } = sizeOf(state)
  return { id: `state:${state.path}`, width: width + countWidth, height }
}

function sizeOf({ name, effects }: { name: string; effects: string[] }) {
  const lines = [
    name.length * letterWidth.state,
    ...effects.map((effect) => (effect.length + 2) * letterWidth.label),
  ]
  return { width: Math.ceil(Math.max(...lines)) + 24, height: 20 + lineHeight * lines.length }
}

function elkTransition(transition: ChartTransition): ElkExtendedEdge {
  const source = startsAnywhere(transition, transition.source)
    ? anywhereId(transition.source)
    : `state:${transition.source}`
  return elkEdge(transition.id, source, `state:${transition.target}`, transition.label)
}

function elkEdge(id: string, source: string, target: string, text: string): ElkExtendedEdge {
  const size = { width: Math.ceil(text.length * letterWidth.label) + 8, height: lineHeight }
  return { id, sources: [source], targets: [target], ...(text && { labels: [{ text, ...size }] }) }
}

function startsAnywhere({ source, target }: ChartTransition, path: string): boolean {
  return source === path && target !== path && isInside(target, path)
}

/** The innermost state around both ends. */
function containerOf({ source, target }: ChartTransition): string {
  if (source !== target && isInside(target, source)) return source
  const parts = source.split(".").slice(0, -1)
  while (parts.length > 0 && !isInside(target, parts.join("."))) parts.pop()
  const around = parts.join(".")
  return around === target ? around.split(".").slice(0, -1).join(".") : around
}

function placesIn(graph: ElkNode): Map<string, Box> {
  const places = new Map<string, Box>()
  const walk = (node: ElkNode, left: number, top: number) => {
    for (const child of node.children ?? []) {
      const x = left + (child.x ?? 0)
      const y = top + (child.y ?? 0)
      const id = child.id.replace(/^state:/, "")
      places.set(id, { x, y, width: child.width ?? 0, height: child.height ?? 0 })
      walk(child, x, y)
    }
  }
  walk(graph, 0, 0)
  return places
}

function placeOf(places: Map<string, Box>, path: string): Box {
  const box = places.get(path)
  if (!box) throw new Error(`the layout lost the state ${path}`)
  return box
}

function edgesIn(node: ElkNode): ElkExtendedEdge[] {
  return [...(node.edges ?? []), ...(node.children ?? []).flatMap(edgesIn)]
}

function placeEdge(edge: ElkExtendedEdge, transition: ChartTransition | null): PlacedEdge {
  const [label] = edge.labels ?? []
  return {
    transition,
    points: (edge.sections ?? []).flatMap(pointsOf),
    label: label?.text
      ? {
          text: label.text,
          box: { x: label.x ?? 0, y: label.y ?? 0, width: label.width ?? 0, height: label.height ?? 0 },
        }
      : null,
  }
}

function pointsOf({ startPoint, bendPoints = [], endPoint }: ElkEdgeSection) {
  return [startPoint, ...bendPoints, endPoint]
}
