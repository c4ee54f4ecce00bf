import { fromPromise } from "xstate"

/**
 * Declares work for the outside world that a machine invokes by name. The durable runtime performs it and returns its
 * output or error as an event; with `createActor`, pass a stub through `machine.provide({ actors })`.
 */
export function effect<Output, Input extends object>() {
  return fromPromise<Output, Input>(async () => {
    throw new Error("an effect is performed by the runtime: provide a stub to run this machine alone")
  })
}

/** Like `effect`, for work that writes to a chain: queued for the lane that the input names. */
export function laneEffect<Output extends { transaction_hash: string }, Input extends { lane_id: string }>() {
  return { ...effect<Output, Input>(), queue: "lane" as const }
}

/** Like `effect`, for work that only reads a chain: queued for the chain that the input names. */
export function chainEffect<Output extends object, Input extends { chain_id: number }>() {
  return { ...effect<Output, Input>(), queue: "chain" as const }
}
