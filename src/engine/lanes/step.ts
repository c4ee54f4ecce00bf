/**
 * The points at which a lane, a watch or a delivery may die in fault tests. Each is passed after its action and before
 * anything that follows from it.
 */
export type Step =
  | "allocate"
  | "sign"
  | "store"
  | "broadcast"
  | "mark"
  | "receipt"
  | "mined"
  | "confirm"
  | "apply"
  | "bump.sign"
  | "bump.store"
  | "bump.broadcast"
  | "cancel.sign"
  | "cancel.store"
  | "cancel.broadcast"
  | "watch.read"
  | "watch.settle"
  | "webhook.send"
  | "webhook.sent"
  | "webhook.recorded"

/** Called at every step with the kind of work. Does something only in fault tests, where the process dies. */
export type Checkpoint = (step: Step, kind: string) => void
