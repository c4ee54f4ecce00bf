/**
 * The steps between which a lane, a watch or a delivery may die. Each is passed after what its name says was done and
 * before anything follows from it, with the kind of work it was done for.
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

/** Called at every step; does nothing but in a fault test, where the process dies there. */
export type Checkpoint = (step: Step, kind: string) => void
