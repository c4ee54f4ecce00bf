import { decodeFunctionResult, encodeFunctionData, type Hex } from "viem"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { SimulatedChain } from "./chain/chain.ts"
import { answerRpc, wholeView } from "./chain/json-rpc.ts"
import type { Fault } from "./faults.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import { account, sendNext } from "./wallets.ts"

/** Pauses the service on the chain for a while, and resumes it. */
export type Guardian = { pause(fault: Extract<Fault, { kind: "pause" }>): void }

const pauseMilliseconds = 2_000

/** `factory`: the contract that all collections ask whether they are paused. */
export function createGuardian(simulation: Simulation, chain: SimulatedChain, factory: Hex): Guardian {
  let until: number | null = null
  const pause: Guardian["pause"] = ({ for_seconds }) => {
    const isAtWork = until !== null
    until = Math.max(until ?? 0, simulation.now + for_seconds * 1_000)
    if (!isAtWork) void keepWatch()
  }

  /** Keeps the factory in the wanted state from then on, whatever reorganizations do to it. */
  async function keepWatch(): Promise<void> {
    const sent = { pause: new Map<number, Hex>(), resume: new Map<number, Hex>() }
    for (;;) {
      const isWanted = simulation.now < (until ?? 0)
      const act = isWanted ? "pause" : "resume"
      if ((await isPaused(chain, factory)) !== isWanted) {
        const data = encodeFunctionData({ abi: factoryAbi, functionName: act })
        await sendNext(chain, account(0), { to: factory, data }, sent[act])
      }
      await sleep(simulation, pauseMilliseconds)
    }
  }
  return { pause }
}

async function isPaused(chain: SimulatedChain, factory: Hex): Promise<boolean> {
  const call = { to: factory, data: encodeFunctionData({ abi: factoryAbi, functionName: "paused" }) }
  const data = (await answerRpc(chain, wholeView(chain), "eth_call", [call, "latest"])) as Hex
  return decodeFunctionResult({ abi: factoryAbi, functionName: "paused", data })
}
