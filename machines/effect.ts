import { fromPromise } from "xstate"

/**
 * Declares work for the outside world that a machine invokes by name. The durable runtime performs it and
 * answers with its output or error; with `createActor`, give a stub through `machine.provide({ actors })`.
 */
export function effect<Output, Input extends object>() {
  return fromPromise<Output, Input>(async () => {
    throw new Error("an effect is performed by the runtime: provide a stub to run this machine alone")
  })
}

/** Why an effect could not be achieved, for good. */
export type EffectFailure = { code: string; message: string }

/** The failure an `xstate.error.actor.*` event carries, whatever was thrown. */
export function failureOf(error: unknown): EffectFailure {
  if (error && typeof error === "object" && "code" in error && "message" in error)
    return { code: String(error.code), message: String(error.message) }
  return { code: "internal.error", message: "The work ended in an unexpected way." }
}
