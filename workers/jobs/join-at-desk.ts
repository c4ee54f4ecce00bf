import type { LaneEffect } from "../../src/engine/actors/effects.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { deskFor, encodeRun } from "../../src/engine/chain/desk.ts"
import { CallReverted } from "../../src/engine/chain/rpc.ts"
import { tryCall } from "../../src/engine/chain/try-call.ts"
import type { Call } from "../../src/engine/jobs/job.ts"

/** The most collections whose work is joined into one transaction. */
export const maxAtDesk = 20

/**
 * Joins calls to several collections into one call of the desk, as far as the desk may make them now. A refused call is
 * left to be sent alone, which reveals why. Returns null if the first is refused, or no other is left.
 */
export async function joinAtDesk<Name extends LaneEffect>(
  chain: ConnectedChain,
  calls: Call<Name>[],
): Promise<Call<Name> | null> {
  const tried = await Promise.all(calls.map((call) => tryAtDesk(chain, call)))
  const joined = tried.filter((each) => each !== null)
  const [first, second] = joined
  if (!first || !second || first.call !== calls[0]) return null
  return {
    do: "call",
    members: joined.flatMap(({ call }) => call.members),
    to: first.desk,
    data: encodeRun(joined.map(({ call: { to, data } }) => ({ to, data }))),
    // Each estimate includes the fixed cost of a transaction.
    gas: (joined.reduce((sum, { gas }) => sum + gas, 0n) * 5n) / 4n,
    async reserve(turn) {
      for (const { call } of joined) await call.reserve?.(turn)
    },
  }
}

async function tryAtDesk<Name extends LaneEffect>(chain: ConnectedChain, call: Call<Name>) {
  const desk = await deskFor(chain, call.to)
  if (desk === null) return null
  const gas = await tryCall(chain, desk, call)
  return gas instanceof CallReverted ? null : { call, desk, gas }
}
