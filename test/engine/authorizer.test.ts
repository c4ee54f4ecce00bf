import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Address, Hex } from "viem"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { planDeployment } from "../../src/engine/chain/deployment.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import type { Context } from "../../src/platform/context.ts"
import { Unavailable } from "../../src/platform/unavailable.ts"
import { prepareClaim } from "../../src/resources/claims/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { prepareTransfer } from "../../src/resources/transfers/service.ts"
import { accountAt, keyAt, signers } from "../faults/stage.ts"
import { type ByHand, issuedUnit, openForEachTest } from "../harness/by-hand.ts"
import { until } from "../harness/engine.ts"

// A wallet can use an authorization until its deadline: the chain is checked when it is requested.

setDefaultTimeout(30_000)
const open = openForEachTest()
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
const [admin, person, friend] = [accountAt(0), accountAt(6), accountAt(7)]
const [ours, another] = [accountAt(3).address, accountAt(4).address]
const lastsSeconds = 1_800

describe("an authorization is issued", () => {
  test("neither for a claim nor for a transfer while the factory is paused, and again once it is resumed", async () => {
    const hand = await open()
    const { unit_id, address } = await issuedUnit(hand)
    const claim = () => claimFrom(hand.world.context, hand, unit_id)
    await asAdmin(hand, "pause")
    const why = `factory ${hand.chain.config.factory_address} of chain 31337 is paused: claims and transfers by people's own wallets are refused until its admin calls resume`
    await expect(claim()).rejects.toEqual(new Unavailable(why))
    await asAdmin(hand, "resume")
    await send(hand, await claim())
    expect(await hand.chain.ownerOf(address as Address, 1)).toBe(person.address)

    const body = { recipient: friend.address }
    const transfer = () => prepareTransfer(hand.world.context, hand.caller, unit_id, body)
    await asAdmin(hand, "pause")
    await expect(transfer()).rejects.toEqual(new Unavailable(why))
    await asAdmin(hand, "resume")
    expect((await transfer()).authorization.transaction.from).toBe(person.address)
  })

  test("no longer once the factory names another authorizer without an overlap", async () => {
    const hand = await open()
    const { unit_id } = await issuedUnit(hand)
    await asAdmin(hand, "setAuthorizer", [another, 0n])
    const asked = claimFrom(hand.world.context, hand, unit_id)
    await expect(asked).rejects.toEqual(
      new Unavailable(
        `AUTHORIZER_KEY is the key of ${ours}, but the authorizer of factory ${hand.chain.config.factory_address} of chain 31337 is ${another}: claims and transfers by people's own wallets are refused until the factory's admin calls setAuthorizer, or the key is corrected`,
      ),
    )
  })

  test("during an overlap if it expires no later than the old authorizer, and not if it would outlive it", async () => {
    const hand = await open()
    const { unit_id } = await issuedUnit(hand)
    const { timestamp } = await hand.stage.anvil.client.getBlock()
    const end = timestamp + 3_600n
    await asAdmin(hand, "setAuthorizer", [another, end])
    const at = (second: bigint): Context => ({
      ...hand.world.context,
      clock: () => new Date(Number(second) * 1_000),
    })
    const last = end - BigInt(lastsSeconds)
    await expect(claimFrom(at(last + 1n), hand, unit_id)).rejects.toBeInstanceOf(Unavailable)
    const prepared = await claimFrom(at(last), hand, unit_id)
    await hand.stage.anvil.client.setNextBlockTimestamp({ timestamp: end })
    expect(await send(hand, prepared)).toBe("success")
  })

  test("for no collection of an earlier factory that is paused or names another authorizer", async () => {
    const hand = await open()
    const { unit_id } = await issuedUnit(hand)
    const earlier = `factory ${hand.chain.config.factory_address} of chain 31337`
    const factory_address = await deployFactory(hand, another)
    const { context } = await openWith(hand, { factory_address, AUTHORIZER_KEY: keyAt(4) })
    const claim = () => claimFrom(context, hand, unit_id)
    await expect(claim()).rejects.toThrow(
      `AUTHORIZER_KEY is the key of ${another}, but the authorizer of ${earlier} is ${ours}`,
    )
    await asAdmin(hand, "setAuthorizer", [another, 0n])
    await asAdmin(hand, "pause")
    await expect(claim()).rejects.toThrow(`${earlier} is paused`)
    await asAdmin(hand, "resume")
    expect(await send(hand, await claim())).toBe("success")
  })

  test("for a collection of an earlier factory, whatever is wrong with the current one in CHAINS", async () => {
    const hand = await open()
    const { unit_id } = await issuedUnit(hand)
    const factory_address = await deployFactory(hand, another)
    const { context, watchRoles } = await openWith(hand, { factory_address, AUTHORIZER_KEY: keyAt(3) })
    watchRoles()
    await until(async () => context.keyFaults().some(({ variable }) => variable === "AUTHORIZER_KEY"))
    expect(await send(hand, await claimFrom(context, hand, unit_id))).toBe("success")
  })
})

type Prepared = Awaited<ReturnType<typeof prepareClaim>>

function claimFrom(context: Context, { caller }: ByHand, unitId: string): Promise<Prepared> {
  const body = { recipient: person.address, execution: "client_broadcast" } as const
  return prepareClaim(context, caller, unitId, body)
}

async function send({ stage, mine }: ByHand, { authorization }: Prepared): Promise<"success" | "reverted"> {
  if (!authorization) throw new Error("a wallet's claim has an authorization")
  const [to, data] = [authorization.transaction.to as Address, authorization.transaction.data as Hex]
  const { client } = stage.anvil
  const hash = await client.sendTransaction({ account: person, chain: null, to, data, gas: 300_000n })
  await mine()
  return (await client.getTransactionReceipt({ hash })).status
}

async function asAdmin(
  { stage, chain, mine }: ByHand,
  functionName: "pause" | "resume" | "setAuthorizer",
  args: unknown[] = [],
  address = chain.config.factory_address,
): Promise<void> {
  const call = { account: admin, chain: null, address, abi: factoryAbi, functionName, args }
  await stage.anvil.client.writeContract(call as never)
  await mine()
}

/** A factory next to the stage's, with the same signers. */
async function deployFactory({ stage, mine }: ByHand, authorizer: Address): Promise<Address> {
  const [account, guardian] = [accountAt(9), null]
  const parties = { deployer: account.address, guardian, authorizer, signers, metadata_base_url: "" }
  const { factory_address, factory_data: data } = planDeployment(parties)
  await stage.anvil.client.sendTransaction({ account, chain: null, data, gas: 12_000_000n })
  await mine()
  return factory_address
}

/** The service with another factory in `CHAINS` and another authorizer. */
async function openWith(
  { stage }: ByHand,
  { factory_address, AUTHORIZER_KEY }: { factory_address: Address; AUTHORIZER_KEY: Hex },
): Promise<World> {
  const { 31337: settings } = JSON.parse(readFileSync(join(stage.folder, "direct.json"), "utf8"))
  const { desk_address: _none, ...others } = settings
  const CHAINS = join(stage.folder, "moved.json")
  writeFileSync(CHAINS, JSON.stringify({ 31337: { ...others, factory_address } }))
  const environment = { ...stage.environment, LOG_LEVEL: "silent", CHAINS, AUTHORIZER_KEY }
  const world = await openWorld(loadConfig(environment), tell)
  closers.push(world.close)
  return world
}
