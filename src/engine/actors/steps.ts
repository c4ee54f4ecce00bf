import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  type ExecutableActionsFrom,
} from "xstate"

/** A machine's next snapshot, and what it asks of the outside. */
type Step = [snapshot: AnyMachineSnapshot, actions: ExecutableActionsFrom<AnyStateMachine>[]]

/** A machine's first snapshot for an input: XState's `initialTransition`. Pure. */
export function firstStep(machine: AnyStateMachine, input: unknown): Step {
  return step(machine, (scope) => machine.getInitialSnapshot(scope, input))
}

/** A machine's snapshot after an event: XState's `transition`. Pure. */
export function nextStep(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: EventObject): Step {
  return step(machine, (scope) => machine.transition(snapshot, event, scope))
}

/**
 * XState's own functions create an actor for each step, which takes longer than the step itself: here each machine has
 * one.
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

/** Never started: it only stands in as the actor that takes the step. */
function actorOf(machine: AnyStateMachine) {
  const known = actors.get(machine)
  if (known) return known
  const made = createActor(machine)
  actors.set(machine, made)
  return made
}
