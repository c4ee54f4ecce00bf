import type { AnyStateMachine, InputFrom, OutputFrom, StateMachine } from "xstate"
import { chainQueue, laneQueue } from "../../platform/queues.ts"
import type { lifecycles, MachineName } from "./lifecycles.ts"

/** The names of the effects that lanes perform. */
export type LaneEffect = Extract<Invoked, { logic: { queue: "lane" } }>["src"]

/** The input that machines pass to an effect. */
export type InputOf<Name extends EffectName> = Inputs[Name]

/** The output that an effect returns to its machine. */
export type OutputOf<Name extends EffectName> = Outputs[Name]

type Inputs = { [Name in EffectName]: InputFrom<LogicOf<Name>> }
type Outputs = { [Name in EffectName]: OutputFrom<LogicOf<Name>> }

type EffectName = Invoked["src"]

/** The effects of all machines, as their `setup` declares them. */
type Invoked = ActorsOf<(typeof lifecycles)[MachineName]["machine"]>

type LogicOf<Name extends EffectName> = Extract<Invoked, { src: Name }>["logic"]

type ActorsOf<Machine> =
  Machine extends StateMachine<
    infer _Context,
    infer _Event,
    infer _Children,
    infer Actors,
    infer _Action,
    infer _Guard,
    infer _Delay,
    infer _Value,
    infer _Tag,
    infer _Input,
    infer _Output,
    infer _Emitted,
    infer _Meta,
    infer _Schema,
    infer _TransitionMeta
  >
    ? Actors
    : never

/**
 * Returns an effect's queue: its lane's or chain's if the machine declares one, otherwise one named after the effect.
 */
export function queueOf(machine: AnyStateMachine, src: string, input: Record<string, unknown>): string {
  const logic = machine.implementations.actors[src]
  const queue = logic && "queue" in logic ? logic.queue : null
  if (queue === "lane") return laneQueue(String(input.lane_id))
  if (queue === "chain") return chainQueue(Number(input.chain_id))
  return src
}
