import { leaseMilliseconds } from "../src/chain/lanes.ts"
import type { World } from "../src/context.ts"
import { newId } from "../src/ids.ts"
import { fireTimers } from "./fire-timers.ts"
import { type Lane, leaveLane, tickLane } from "./lane.ts"
import { type Loop, startLoop } from "./loop.ts"
import { reapExpired } from "./reap-expired.ts"
import type { Checkpoint } from "./step.ts"
import { watchAuthorizations } from "./watch-authorizations.ts"

export type Workers = { stop(): Promise<void> }

export type WorkerOptions = {
  /** How long a lane waits for a holder that fell silent. */
  lease_milliseconds: number
  checkpoint: Checkpoint
}

const usualOptions: WorkerOptions = { lease_milliseconds: leaseMilliseconds, checkpoint: () => {} }

/** Starts everything that happens outside a request: the lanes, the chains' watches, the timers. */
export function startWorkers(
  { context, chains, wakeUps }: World,
  { lease_milliseconds, checkpoint }: WorkerOptions = usualOptions,
): Workers {
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
    startLoop({
      queue: "expired",
      every_milliseconds: 60_000,
      wakeUps,
      log: context.log,
      tick: () => reapExpired(context),
    }),
  ]
  for (const chain of chains.values()) {
    const every_milliseconds = Math.min(1_000, (chain.config.block_time_seconds * 1_000) / 2)
    const loop = (queue: string, tick: () => Promise<void>) =>
      loops.push(startLoop({ queue, every_milliseconds, wakeUps, log: context.log, tick }))
    loop(`chain:${chain.chain_id}`, () => watchAuthorizations(context, chain, checkpoint))
    for (const signer of chain.signers) {
      const claimant = { owner, lease_milliseconds }
      const lane: Lane = { context, chain, signer, claimant, checkpoint, memory: {} }
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
