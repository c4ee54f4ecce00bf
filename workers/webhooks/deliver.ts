import type { Checkpoint } from "../../src/engine/lanes/step.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { within } from "../../src/platform/deadline.ts"
import { createPlaces, shares } from "../../src/platform/places.ts"
import { type Resolve, resolveHost } from "../../src/platform/public-address.ts"
import { createEndpointLeases, leaveEndpoints, type SteadyClock } from "./leases.ts"
import { type Round, startRound } from "./round.ts"

/**
 * Sends events to webhook endpoints: each endpoint at its own pace, each of its lines one event at a time. The total
 * number of open requests is limited, and shared fairly between organizations.
 */
export type Deliverer = {
  /** Takes endpoints that have something due, and keeps those that it is working on. */
  tick(): Promise<void>
  /** Waits a little for the attempts in progress, then leaves all endpoints that have none to other workers. */
  stop(): Promise<void>
}

type Options = { owner: string; checkpoint: Checkpoint; resolve?: Resolve; steady?: SteadyClock }

export function createDeliverer(
  context: Context,
  { owner, checkpoint, resolve = resolveHost, steady = () => performance.now() }: Options,
): Deliverer {
  const rounds = new Map<string, Round>()
  const leases = createEndpointLeases(context, owner, steady)
  const places = createPlaces(context.config.fetches_at_once * shares.webhooks)
  const means = { owner, checkpoint, resolve, steady, places, unsigned: new Set<string>() }
  let isStopping = false

  return {
    async tick() {
      if (isStopping) return
      const held = await leases.take(rounds)
      // Running rounds look again, for events that arrived in the meantime.
      for (const round of rounds.values()) round.look()
      for (const { endpoint_id, held_until } of held) {
        const known = rounds.get(endpoint_id)
        if (known) {
          known.held_until = held_until
          known.look()
          continue
        }
        const round = startRound(context, endpoint_id, { ...means, held_until })
        rounds.set(endpoint_id, round)
        void round.over.finally(() => rounds.delete(endpoint_id))
      }
    },
    async stop() {
      isStopping = true
      for (const round of rounds.values()) round.end()
      const over = Promise.all([...rounds.values()].map((round) => round.over))
      await within(over, lastAttemptsMilliseconds, "a receiver takes long").catch(() => {})
      // Nobody else may send to an endpoint while its last attempt is in progress: its lease runs out.
      const busy = [...rounds.keys()]
      await inTurn(context, null, (turn) => leaveEndpoints(turn, owner, busy)).catch(() => {})
    },
  }
}

/** Much shorter than a stop may take, so that no receiver prevents it from ending in order. */
const lastAttemptsMilliseconds = 3_000
