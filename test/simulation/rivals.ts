import { claim, transfer } from "./people.ts"
import type { Met } from "./somebody.ts"

/**
 * Another person wants a unit that has its own story, and claims it: through the service, or with a wallet that may
 * take its time. A unit with an owner is transferred to the newcomer instead.
 */
export async function comeBetween({ person, isOwned }: Met, wallet: number): Promise<void> {
  const { chance } = person
  const hesitates_seconds = chance.happens(0.5) ? 0 : chance.between(0, mostSeconds)
  const execution = chance.happens(0.4) ? "service_relay" : "client_broadcast"
  if (isOwned) await transfer(person, wallet, hesitates_seconds)
  else await claim(person, { wallet, execution, hesitates_seconds })
}

/** The longest that a wallet takes, which is longer than most claims. */
const mostSeconds = 30
