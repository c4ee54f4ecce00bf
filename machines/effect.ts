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

/** The same for work that changes a chain: it waits in the queue of the lane its input names. */
export function laneEffect<Output extends { transaction_hash: string }, Input extends { lane_id: string }>() {
  return { ...effect<Output, Input>(), queue: "lane" as const }
}

/** The same for work that only reads a chain: it waits in the queue of the chain its input names. */
export function chainEffect<Output extends object, Input extends { chain_id: number }>() {
  return { ...effect<Output, Input>(), queue: "chain" as const }
}
