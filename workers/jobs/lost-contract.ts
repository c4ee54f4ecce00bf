import type { Address } from "viem"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { reach } from "../../src/engine/chain/rpc.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"

/**
 * Whether a reorganization took the contract away from what was tried before: a call of nobody succeeds and does
 * nothing, so it waits until the deployment is back. What was never tried is not asked about.
 */
export async function isContractLost(
  { rpc }: Pick<ConnectedChain, "rpc">,
  address: Address,
  waiting: readonly Pick<Effect, "attempts">[],
): Promise<boolean> {
  const wasTried = waiting.some(({ attempts }) => attempts > 0)
  return wasTried && !(await reach(() => rpc.getCode({ address })))
}
