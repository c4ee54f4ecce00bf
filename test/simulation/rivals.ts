import type { Asking, Stage } from "./asking.ts"
import { claim, transfer } from "./people.ts"
import { somebody } from "./somebody.ts"
import { streamOf } from "./streams.ts"

/**
 * Somebody else wants a unit that has its own story, and claims it: through the service, or with a wallet that may take
 * its time. What is somebody's already is handed over to the newcomer instead.
 */
export async function comeBetween(
  stage: Stage,
  { salt, wallet }: { salt: number; wallet: number },
  asking: Asking,
): Promise<void> {
  const chance = streamOf(BigInt(salt), "rival")
  const met = await somebody(stage, chance, asking)
  if (!met) return
  const hesitates_seconds = chance.happens(0.5) ? 0 : chance.between(0, mostSeconds)
  const execution = chance.happens(0.4) ? "service_relay" : "client_broadcast"
  if (met.isOwned) await transfer(met.person, wallet, hesitates_seconds)
  else await claim(met.person, { wallet, execution, hesitates_seconds })
}

/** How long wallets take at most, which is longer than most claims. */
const mostSeconds = 30
