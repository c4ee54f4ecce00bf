import { type Address, encodeFunctionData } from "viem"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Stage } from "../faults/stage.ts"
import { sendAs, sendAsAdmin } from "./engine.ts"

export const thief: Address = "0x00000000000000000000000000000000000bad01"

/** A chip ID that is not the service's own, as the contract stores it. */
export const foreignChip = 0xbadbadbad

/** Does to a collection what a thief could with a key that has all roles for a while. */
export async function asThief(
  stage: Stage,
  collection: Address,
  calls: [functionName: string, ...args: unknown[]][],
): Promise<void> {
  await setThiefsRoles(stage, 15n)
  for (const [functionName, ...args] of calls) {
    const data = encodeFunctionData({ abi: collectionAbi, functionName, args } as never)
    await sendAs(stage, thief, collection, data)
  }
  await setThiefsRoles(stage, 0n)
}

async function setThiefsRoles(stage: Stage, roles: bigint): Promise<void> {
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "setRoles", args: [thief, roles] })
  await sendAsAdmin(stage, data)
}
