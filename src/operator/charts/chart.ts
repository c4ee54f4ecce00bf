import type { AnyStateMachine, AnyStateNode } from "xstate"

/** A machine as it can be drawn, complete and from its definition alone. */
export type Chart = { name: string; states: ChartState[]; transitions: ChartTransition[] }

export type ChartState = {
  /** Such as `pending.issuing`; empty for the machine itself. */
  path: string
  name: string
  /** The path of the state around it; null for the machine itself. */
  parent: string | null
  kind: "compound" | "atomic" | "final"
  /** Names of the effects that run while the state lasts. */
  effects: string[]
  is_initial: boolean
}

export type ChartTransition = {
  id: string
  source: string
  /** The state itself if an event changes only the context. */
  target: string
  /** The event's type in the machine; `always` for an eventless transition. */
  event: string
  /** The event and its guard in words. */
  label: string
}

/** Reads a machine's definition. Every state and transition is on the chart once. */
export function chartOf(machine: AnyStateMachine): Chart {
  const nodes = nodesOf(machine.root)
  return {
    name: machine.id,
    states: nodes.map(stateOf),
    transitions: nodes
      .flatMap(transitionsOf)
      .map((transition, index) => ({ id: `t${index}`, ...transition })),
  }
}

/** Whether a path is a state or inside it; everything is inside the machine itself. */
export function isInside(path: string, outer: string): boolean {
  return outer === "" || path === outer || path.startsWith(`${outer}.`)
}

/** An event's type in words: `issueUnit done` for `xstate.done.actor.issueUnit`. */
export function wordsOf(eventType: string): string {
  const [, outcome, effect] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(eventType) ?? []
  if (effect) return `${effect} ${outcome}`
  const [, delay] = /^xstate\.after\.([^.]+)\./.exec(eventType) ?? []
  return delay ? `after ${delay}` : eventType.replace(/^xstate\./, "")
}

function nodesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesOf)]
}

function stateOf(node: AnyStateNode): ChartState {
  const hasStates = Object.keys(node.states).length > 0
  return {
    path: pathOf(node),
    name: node.key,
    parent: node.parent ? pathOf(node.parent) : null,
    kind: node.type === "final" ? "final" : hasStates ? "compound" : "atomic",
    effects: node.invoke.map(({ src }) => String(src)),
    is_initial: node.parent?.initial.target.includes(node) ?? false,
  }
}

function transitionsOf(node: AnyStateNode): Omit<ChartTransition, "id">[] {
  const candidates = [...node.transitions.entries(), ["always", node.always ?? []] as const]
  return candidates.flatMap(([event, transitions]) =>
    transitions.flatMap(({ guard, target }, index) => {
      const condition = guard ? ` [${guardName(guard)}]` : index > 0 ? " [otherwise]" : ""
      const targets = target ?? [node]
      return targets.map((each) => ({
        source: pathOf(node),
        target: pathOf(each),
        event,
        label: `${wordsOf(event)}${condition}`,
      }))
    }),
  )
}

function pathOf(node: AnyStateNode): string {
  return node.path.join(".")
}

function guardName(guard: unknown): string {
  if (typeof guard === "string") return guard
  const { name, type } = guard as { name?: string; type?: string }
  return type ?? name ?? "guard"
}
