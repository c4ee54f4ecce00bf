import type { ConnectedChain } from "../src/engine/chain/chains.ts"
import type { Signer } from "../src/engine/chain/signers.ts"
import type { Lane } from "../src/engine/lanes/held-lane.ts"
import { leaveLane, tickLane } from "../src/engine/lanes/lane.ts"
import { leaseMilliseconds } from "../src/engine/lanes/leases.ts"
import type { Checkpoint } from "../src/engine/lanes/step.ts"
import { signersWithoutKey } from "../src/engine/lanes/without-key.ts"
import type { World } from "../src/engine/world.ts"
import { within } from "../src/platform/deadline.ts"
import { newId } from "../src/platform/ids.ts"
import { chainQueue, eventsQueue, laneQueue, replaysQueue, webhooksQueue } from "../src/platform/queues.ts"
import { jobs } from "./jobs/jobs.ts"
import { type Loop, type LoopOptions, startLoop } from "./loop.ts"
import { fireTimers } from "./watches/fire-timers.ts"
import { followEvents } from "./watches/follow-events.ts"
import { followReplays } from "./watches/follow-replays.ts"
import { reapEndpoints } from "./watches/reap-endpoints.ts"
import { reapEvents } from "./watches/reap-events.ts"
import { reapExpired } from "./watches/reap-expired.ts"
import { retryFarOff } from "./watches/retry-far-off.ts"
import { watchAuthorizations } from "./watches/watch-authorizations.ts"
import { createDeliverer } from "./webhooks/deliver.ts"

export type Workers = { stop(): Promise<void> }

type WorkerOptions = {
  /** How long a holder keeps its lane without renewing the lease. */
  lease_milliseconds: number
  checkpoint: Checkpoint
}

const usualOptions: WorkerOptions = { lease_milliseconds: leaseMilliseconds, checkpoint: () => {} }

/** Starts everything that happens outside a request: lanes, chain watches, timers, webhooks. */
export function startWorkers(
  { context, chains, wakeUps }: World,
  { lease_milliseconds, checkpoint }: WorkerOptions = usualOptions,
): Workers {
  const owner = newId()
  const lanes: Lane[] = []
  const deliverer = createDeliverer(context, { owner, checkpoint })
  const start = (loop: Omit<LoopOptions, "wakeUps" | "log">) =>
    startLoop({ ...loop, wakeUps, log: context.log })
  const loops: Loop[] = [
    start({ queue: "timers", every_milliseconds: 1_000, tick: () => fireTimers(context) }),
    start({
      queue: eventsQueue,
      every_milliseconds: 1_000,
      rest_milliseconds: 10,
      tick: () => followEvents(context),
    }),
    start({ queue: replaysQueue, every_milliseconds: 1_000, tick: () => followReplays(context) }),
    start({ queue: webhooksQueue, every_milliseconds: 1_000, tick: deliverer.tick }),
    start({ queue: "far-off-retries", every_milliseconds: 60_000, tick: () => retryFarOff(context) }),
    start({ queue: "deleted-endpoints", every_milliseconds: 60_000, tick: () => reapEndpoints(context) }),
    start({ queue: "old-events", every_milliseconds: 60_000, tick: () => reapEvents(context) }),
    start({ queue: "expired", every_milliseconds: 60_000, tick: () => reapExpired(context) }),
  ]
  function startTicking(chain: ConnectedChain, queue: string, tick: () => Promise<unknown>): void {
    const every_milliseconds = Math.min(1_000, (chain.config.block_time_seconds * 1_000) / 2)
    loops.push(start({ queue, every_milliseconds, tick }))
  }

  function startLane(chain: ConnectedChain, signer: Signer): void {
    const claimant = { owner, lease_milliseconds }
    const lane: Lane = { context, chain, signer, claimant, jobs, checkpoint, memory: {} }
    lanes.push(lane)
    startTicking(chain, laneQueue(signer.lane_id), () => tickLane(lane))
  }

  /** Starts lanes whose key left `SIGNER_KEYS`, or that other processes had. */
  async function startLanesWithoutKey(): Promise<void> {
    for (const chain of chains.values())
      for (const signer of await signersWithoutKey(context.db.read, chain))
        if (!lanes.some((lane) => lane.signer.lane_id === signer.lane_id)) startLane(chain, signer)
  }

  for (const chain of chains.values()) {
    startTicking(chain, chainQueue(chain.chain_id), () => watchAuthorizations(context, chain, checkpoint))
    for (const signer of chain.signers) startLane(chain, signer)
  }
  const adopting = start({ queue: "lanes", every_milliseconds: 60_000, tick: startLanesWithoutKey })
  const stopLoops = () => Promise.all(loops.map((loop) => loop.stop()))
  return {
    async stop() {
      const stopped = Promise.all([adopting.stop().then(stopLoops), stopLoops()])
      // A round may be interrupted anywhere; its lane is released all the same.
      await within(stopped, roundMilliseconds, "a round takes long").catch(() => {})
      await Promise.all([...lanes.map(leaveLane), deliverer.stop()])
    },
  }
}

/**
 * How long rounds may go on during a stop, which has ten seconds in all: a round may be waiting for a silent provider.
 */
const roundMilliseconds = 5_000
