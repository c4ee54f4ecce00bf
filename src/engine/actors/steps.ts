import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  type ExecutableActionsFrom,
} from "xstate"

/** A machine's next snapshot, and the actions that it requests. */
type Step = [snapshot: AnyMachineSnapshot, actions: ExecutableActionsFrom<AnyStateMachine>[]]

/** Returns a machine's first snapshot for an input, like XState's `initialTransition`. Pure. */
export function firstStep(machine: AnyStateMachine, input: unknown): Step {
  return step(machine, (scope) => machine.getInitialSnapshot(scope, input))
}

/** Returns a machine's snapshot after an event, like XState's `transition`. Pure. */
export function nextStep(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: EventObject): Step {
  return step(machine, (scope) => machine.transition(snapshot, event, scope))
}

/**
 * Takes a step with one actor per machine: XState's own functions create an actor for each step, which
 * takes longer than the step itself.
 */
function step(machine: AnyStateMachine, take: (scope: AnyActorScope) => AnyMachineSnapshot): Step {
  const actions: Step[1] = []
  const self = actorOf(machine)
  const snapshot = take({
    self,
    system: self.system,
    id: self.id,
    sessionId: self.sessionId,
    logger() {},
    defer() {},
    emit() {},
    stopChild() {},
    actionExecutor: (action) => actions.push(action as Step[1][number]),
  })
  return [snapshot, actions]
}

const actors = new WeakMap<AnyStateMachine, ReturnType<typeof createActor<AnyStateMachine>>>()

/** Returns the machine's actor, which is never started and only serves as the scope of steps. */
function actorOf(machine: AnyStateMachine) {
  const known = actors.get(machine)
  if (known) return known
  const made = createActor(machine)
  actors.set(machine, made)
  return made
}
