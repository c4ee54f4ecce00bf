import { Account, createAddressFromString } from "@ethereumjs/util"
import type { Hex } from "viem"
import { accountOf, headOf, type SimulatedChain } from "./chain/chain.ts"
import type { Fault } from "./faults.ts"
import { signers } from "./ground.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import { account, sendNext } from "./wallets.ts"

type Poverty = Extract<Fault, { kind: "poor" }>

/** Takes most of their ether from all signers, before anything happens. */
export async function impoverish(chain: SimulatedChain, { microether }: Poverty): Promise<void> {
  for (const address of signers)
    await chain.state.putAccount(
      createAddressFromString(address),
      new Account(0n, BigInt(microether) * 10n ** 12n),
    )
  chain.state.keepBlock(headOf(chain).number)
}

/** After a time, the admin keeps all signers funded from then on. */
export async function keepFunded(
  simulation: Simulation,
  chain: SimulatedChain,
  { for_seconds }: Poverty,
): Promise<void> {
  await sleep(simulation, for_seconds * 1_000)
  const sent = new Map(signers.map((address) => [address, new Map<number, Hex>()]))
  for (;;) {
    for (const [to, own] of sent)
      if (accountOf(chain, to).balance < enough)
        await sendNext(chain, account(0), { to, data: "0x", value: 2n * enough }, own)
    await sleep(simulation, pauseMilliseconds)
  }
}

const enough = 10n ** 18n
const pauseMilliseconds = 2_000
