import type { World } from "../src/context.ts"
import { newId } from "../src/ids.ts"
import { fireTimers } from "./fire-timers.ts"
import { type Lane, leaveLane, tickLane } from "./lane.ts"
import { type Loop, startLoop } from "./loop.ts"
import { watchAuthorizations } from "./watch-authorizations.ts"

export type Workers = { stop(): Promise<void> }

/** Starts everything that happens outside a request: the lanes, the chains' watches, the timers. */
export function startWorkers({ context, chains, wakeUps }: World): Workers {
  const owner = newId()
  const lanes: Lane[] = []
  const loops: Loop[] = [
    startLoop({
      queue: "timers",
      every_milliseconds: 1_000,
      wakeUps,
      log: context.log,
      tick: () => fireTimers(context),
    }),
  ]
  for (const chain of chains.values()) {
    const every_milliseconds = Math.min(1_000, (chain.config.block_time_seconds * 1_000) / 2)
    const loop = (queue: string, tick: () => Promise<void>) =>
      loops.push(startLoop({ queue, every_milliseconds, wakeUps, log: context.log, tick }))
    loop(`chain:${chain.chain_id}`, () => watchAuthorizations(context, chain))
    for (const signer of chain.signers) {
      const lane = { context, chain, signer, owner }
      lanes.push(lane)
      loop(`lane:${signer.lane_id}`, () => tickLane(lane))
    }
  }
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      await Promise.all(lanes.map(leaveLane))
    },
  }
}
