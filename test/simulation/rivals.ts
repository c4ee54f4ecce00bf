import { claim, transfer } from "./people.ts"
import type { Met } from "./somebody.ts"

/**
 * Somebody else wants a unit that has its own story, and claims it: through the service, or with a wallet that may take
 * its time. What is somebody's already is handed over to the newcomer instead.
 */
export async function comeBetween({ person, isOwned }: Met, wallet: number): Promise<void> {
  const { chance } = person
  const hesitates_seconds = chance.happens(0.5) ? 0 : chance.between(0, mostSeconds)
  const execution = chance.happens(0.4) ? "service_relay" : "client_broadcast"
  if (isOwned) await transfer(person, wallet, hesitates_seconds)
  else await claim(person, { wallet, execution, hesitates_seconds })
}

/** How long wallets take at most, which is longer than most claims. */
const mostSeconds = 30
