import type { AnyStateMachine } from "xstate"
import { lifecycles, type MachineName } from "../../engine/actors/lifecycles.ts"
import { type Chart, chartOf, isInside } from "./chart.ts"

export const machineNames = Object.keys(lifecycles) as MachineName[]

/** The chart of one of the machines. */
export function chartNamed(name: MachineName): Chart {
  const machine: AnyStateMachine = lifecycles[name].machine
  return chartOf(machine)
}

/** A machine's states without inner ones, in which actors are counted; only those within a state, if one is given. */
export function innermostStates(machine: MachineName, within = ""): string[] {
  return chartNamed(machine)
    .states.filter(({ kind, path }) => kind !== "compound" && isInside(path, within))
    .map(({ path }) => path)
}
