import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Address } from "viem"
import { type ConnectedChain, createChains } from "../../src/engine/chain/chains.ts"
import { roleFaults, watchRoles } from "../../src/engine/chain/check-roles.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { planDeployment } from "../../src/engine/chain/deployment.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { readRoles } from "../../src/operator/verbs/chain-roles.ts"
import { newId } from "../../src/platform/ids.ts"
import { createLog } from "../../src/platform/log.ts"
import { Unavailable } from "../../src/platform/unavailable.ts"
import { accountAt, openStage, type Stage, signers } from "../faults/stage.ts"

let stage: Stage
let chain: ConnectedChain
beforeAll(async () => {
  stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  const found = stage.world.chains.get(31_337)
  if (!found) throw new Error("the stage has no chain")
  chain = found
})
afterAll(() => stage.close())

describe("a service's keys", () => {
  test("that have their roles in the factory are accepted", async () => {
    expect(await roleFaults(chain)).toEqual([])
  })

  test("are compared by address: a removed signer is reported in one line", async () => {
    await asAdmin("setRoles", [signers[1], 1n])
    const faults = await roleFaults(chain)
    await asAdmin("setRoles", [signers[1], 9n])
    expect(faults).toMatchObject([{ chain_id: 31_337, variable: "SIGNER_KEYS", address: signers[1] }])
    expect(faults[0]?.text).toContain(`${signers[1]}, which lacks the role to deploy at factory`)
    expect(faults[0]?.text).not.toContain("\n")
  })

  test("are rejected if the factory names another authorizer, because nothing may be signed then", async () => {
    const [named, present] = [accountAt(9).address, accountAt(3).address]
    await asAdmin("setAuthorizer", [named, 0n])
    const faults = await roleFaults(chain)
    await asAdmin("setAuthorizer", [present, 0n])
    expect(faults).toMatchObject([{ variable: "AUTHORIZER_KEY", address: present }])
    expect(faults[0]?.text).toContain(`is ${named}`)
    expect(await roleFaults(chain)).toEqual([])
  })

  test("are accepted during an overlap as long as the old authorizer's new signatures stay valid to their deadline", async () => {
    const [named, present] = [accountAt(9).address, accountAt(3).address]
    const { timestamp } = await stage.anvil.client.getBlock()
    await asAdmin("setAuthorizer", [named, timestamp + 1_900n])
    const faults = await roleFaults(chain)
    await asAdmin("setAuthorizer", [named, timestamp + 1_799n])
    const later = await roleFaults(chain)
    await asAdmin("setAuthorizer", [present, 0n])
    expect(faults).toEqual([])
    expect(later).toMatchObject([{ variable: "AUTHORIZER_KEY", address: present }])
  })

  test("that are missing are reported in one line each, and work that needs them waits", async () => {
    const config = { ...stage.world.context.config, authorizer_key: null }
    const bare = createChains(config, []).get(31_337)
    if (!bare) throw new Error("the chain is gone")
    const faults = await roleFaults(bare)
    expect(faults.map(({ variable, text }) => `${variable}: ${text}`)).toEqual([
      expect.stringMatching(
        /^AUTHORIZER_KEY: AUTHORIZER_KEY is not set, and the authorizer of factory 0x\w+ of chain 31337 is 0x/,
      ),
      expect.stringMatching(
        /^SIGNER_KEYS: SIGNER_KEYS is not set: new collections, .+ on chain 31337 are refused/,
      ),
    ])
    expect(() => bare.issuanceLaneId(newId())).toThrow(Unavailable)
    expect(() => bare.ownershipLaneId(newId())).toThrow(Unavailable)
    const token = {
      contract: accountAt(8).address,
      serial: 1,
      authorization_nonce: 0,
      deadline_at: new Date(),
    }
    const recipient = accountAt(9).address
    expect(() => bare.authorizeClaim({ ...token, recipient })).toThrow(Unavailable)
  })

  test("do not use the desk of another factory, which would let that factory's keys in: it is reported and given no roles", async () => {
    const { chain_id, config } = chain
    const [other, mine] = [await anotherFactory(), config.desk_address as Address]
    const moved = createChains(
      { ...stage.world.context.config, chains: [{ ...config, factory_address: other }] },
      chain.signers.flatMap(({ account }) => account ?? []),
    ).get(chain_id) as ConnectedChain
    expect(await roleFaults(moved)).toMatchObject([{ variable: "CHAINS", address: mine }])
    expect((await roleFaults(moved))[0]?.text).toContain(`${mine}, which is not a desk of factory ${other}`)
    const { keys, calls } = await readRoles(moved)
    expect(calls).toEqual([])
    expect(keys.at(-1)).toEqual({ account: mine, is: "no desk of this factory", roles: 0, needed: null })
  })

  test("cannot be checked if no provider responds", async () => {
    const rpc = { ...chain.rpc, readContract: () => Promise.reject(new Error("no line")) }
    const asked = roleFaults({ ...chain, rpc: rpc as ConnectedChain["rpc"] })
    await expect(asked).rejects.toBeInstanceOf(ChainUnreachable)
  })
})

describe("the periodic role check", () => {
  test("remembers a fault until it is fixed, even while the chain does not respond", async () => {
    let isDown = false
    const readContract: typeof chain.rpc.readContract = (question) =>
      isDown ? Promise.reject(new Error("no line")) : chain.rpc.readContract(question)
    const rpc = { ...chain.rpc, readContract }
    const watch = watchRoles(new Map([[31_337, { ...chain, rpc }]]), createLog("silent"))
    await asAdmin("setRoles", [signers[0], 0n])
    await watch.check()
    expect(watch.faultsOf(31_337).map(({ address }) => address)).toEqual([signers[0]])
    isDown = true
    await watch.check()
    expect(watch.faultsOf(31_337)).toHaveLength(1)
    isDown = false
    await asAdmin("setRoles", [signers[0], 6n])
    await watch.check()
    expect(watch.faultsOf(31_337)).toEqual([])
    watch.stop()
  })

  test("does not report a chain that it does not know", () => {
    const watch = watchRoles(new Map(), createLog("silent"))
    expect(watch.faultsOf(1)).toEqual([])
    watch.stop()
  })
})

/** A factory with the same keys and without a desk. */
async function anotherFactory(): Promise<Address> {
  const { client } = stage.anvil
  const deployer = accountAt(8)
  const { factory_address, factory_data } = planDeployment({
    deployer: deployer.address,
    guardian: null,
    authorizer: accountAt(3).address,
    signers,
    metadata_base_url: "",
  })
  await client.sendTransaction({ account: deployer, data: factory_data, gas: 12_000_000n })
  await client.mine({ blocks: 1 })
  return factory_address
}

type AdminCall = ["setRoles" | "setAuthorizer", [Address, bigint]]

async function asAdmin(...[functionName, args]: AdminCall): Promise<void> {
  const { client } = stage.anvil
  const factory = { address: chain.config.factory_address, abi: factoryAbi, account: accountAt(0) }
  await client.writeContract({ ...factory, functionName, args })
  await client.mine({ blocks: 1 })
}
