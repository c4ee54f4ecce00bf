import type { Address } from "viem"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { reach } from "../../src/engine/chain/rpc.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"

/**
 * Returns whether a reorganization removed the contract of work that was tried before: a call to an empty address
 * succeeds and does nothing, so the work waits until the deployment is back. Returns false without asking the
 * chain if nothing was tried yet.
 */
export async function isContractLost(
  { rpc }: Pick<ConnectedChain, "rpc">,
  address: Address,
  waiting: readonly Pick<Effect, "attempts">[],
): Promise<boolean> {
  const wasTried = waiting.some(({ attempts }) => attempts > 0)
  return wasTried && !(await reach(() => rpc.getCode({ address })))
}
