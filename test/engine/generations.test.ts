import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { and, eq } from "drizzle-orm"
import { type Address, encodeDeployData, encodeFunctionData, getContractAddress, type Hex } from "viem"
import { createApp } from "../../src/api/app.ts"
import { type CollectionRow, chipReplacements, claims, collections, effects } from "../../src/db/schema.ts"
import { roleFaults } from "../../src/engine/chain/check-roles.ts"
import { firstFactoryAbi, firstFactoryBytecode } from "../../src/engine/chain/first-contracts.generated.ts"
import { learnGenerations } from "../../src/engine/chain/learn-generations.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { readRoles, setAuthorizer } from "../../src/operator/verbs/chain-roles.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { createChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { startWorkers } from "../../workers/start.ts"
import { accountAt, openStage, type Stage, signers } from "../faults/stage.ts"
import { type Blocks, mineSteadily } from "../harness/blocks.ts"
import { anotherUnit, issuedUnit, type RunningWorkers, until } from "../harness/engine.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

// A chain with collections of a first-generation factory, which a current factory then replaces in CHAINS.

setDefaultTimeout(60_000)
const [deployer, wallet] = [accountAt(9), accountAt(7)]
const firstFactory = getContractAddress({ from: deployer.address, nonce: 0n })

let stage: Stage
let caller: Caller
let blocks: Blocks
let before: Issued
let other: Issued

beforeAll(async () => {
  stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  const { client } = stage.anvil
  blocks = mineSteadily(stage.anvil)
  const args = [deployer.address, accountAt(3).address, signers] as const
  const data = encodeDeployData({ abi: firstFactoryAbi, bytecode: firstFactoryBytecode, args })
  const hash = await client.sendTransaction({ account: deployer, data, gas: 6_000_000n })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  const { id } = await inTurn(stage.world.context, null, (turn) =>
    createOrganization(turn, { name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] }),
  )
  caller = { organization_id: id, kind: "api_key", credential_id: newId(), session: null }
})
afterAll(async () => {
  blocks.stop()
  await stage.close()
})

describe("a factory of the first generation", () => {
  test("is recognized, and its collections are deployed and issued as before", async () => {
    const world = await openFirst()
    await learnGenerations(world.context.db.read, world.chains.values())
    const chain = world.chains.get(31_337)
    if (!chain) throw new Error("the chain is configured")
    expect([chain.generations.known(), await roleFaults(chain)]).toEqual([1, []])
    const running = workOn(world)
    before = await issuedUnit(running)
    await running.workers.stop()
    await world.close()
    const code = await stage.anvil.client.getCode({ address: before.address })
    // Name and symbol are stored after the proxy code, as before.
    expect(code?.length).toBeGreaterThan(2 + 2 * 45)
  })

  test("has no roles to show, and no overlap for a new authorizer", async () => {
    const world = await openFirst()
    const chain = world.chains.get(31_337)
    if (!chain) throw new Error("the chain is configured")
    const refused = { code: "factory.first_generation", message: expect.stringContaining(firstFactory) }
    await expect(readRoles(chain)).rejects.toMatchObject(refused)
    await expect(setAuthorizer(chain, wallet.address, null)).rejects.toMatchObject(refused)
    await world.close()
  })

  test("has no pause, roles or metadata: no call is printed that it would reject", async () => {
    const print = async (words: string[], changed: object = {}) => {
      const said = { printed: "" }
      const print = (text: string) => {
        said.printed += text
      }
      const environment = { ...stage.environment, LOG_LEVEL: "silent", CHAINS: chainsOfFirst(changed) }
      const all = ["chain", "call", ...words, "--json"]
      const code = await runOperator(() => environment, { print, complain: () => {} }, all)
      return [words, code, JSON.parse(said.printed).error?.code]
    }
    const account = ["--account", wallet.address]
    for (const words of [
      ["pause"],
      ["announce-release"],
      ["freeze-metadata-base"],
      ["set-metadata-base", "--url", "https://tokens.test"],
      ["revoke", ...account],
      ["grant", ...account, "--roles", "issue"],
    ]) {
      expect(await print(words)).toEqual([words, 1, "factory.first_generation"])
    }
    // While its generation is unknown, the calls that stop a thief are printed.
    expect(await print(["pause"], { rpc_urls: ["http://127.0.0.1:1"] })).toEqual([["pause"], 0, undefined])
  })

  test("has collections that keep working next to those of its successor", async () => {
    const running = workOn(stage.world)
    other = await issuedUnit(running)
    expect((await stage.anvil.client.getCode({ address: other.address }))?.length).toBe(2 + 2 * 45)
    const second = await anotherUnit(running, before.collection_id)
    expect(await serialOf(second)).toBe(2)
    await relay(running, before.unit_id)
    await relay(running, other.unit_id)
    await replace(running, second)
    await claimFromWallet(running, second)
    const chain = stage.world.chains.get(31_337)
    for (const [contract, serial] of [
      [before.address, 1],
      [before.address, 2],
      [other.address, 1],
    ] as const)
      expect((await chain?.ownershipOf(contract, serial))?.owner).toBe(wallet.address)
    const origins = await Promise.all(
      [before, other].map(({ address }) => chain?.generations.originOf(address)),
    )
    expect(origins.map((origin) => origin?.generation)).toEqual([1, 2])
    await running.workers.stop()
  })

  test("has collections for which no authorization is issued while it names another authorizer", async () => {
    const running = workOn(stage.world)
    const unit_id = await anotherUnit(running, before.collection_id)
    await nameAuthorizer(accountAt(4).address)
    await expect(claimFromWallet(running, unit_id)).rejects.toThrow(
      `AUTHORIZER_KEY is the key of ${accountAt(3).address}, but the authorizer of factory ${firstFactory} of chain 31337 is ${accountAt(4).address}`,
    )
    await nameAuthorizer(accountAt(3).address)
    await claimFromWallet(running, unit_id)
    await running.workers.stop()
  })

  test("has collections that cannot announce metadata, unlike current ones", async () => {
    const app = createApp(stage.world.context).listen({ hostname: "127.0.0.1", port: 0 })
    const { organization_id } = caller
    const { key } = await inTurn(stage.world.context, null, (turn) =>
      issueApiKey(turn, { organization_id, name: null }),
    )
    const refresh = async ({ collection_id }: Issued) => {
      const url = `http://127.0.0.1:${app.server?.port}/v1/collections/${collection_id}/metadata-refreshes`
      const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${key}` } })
      const { error } = (await response.json()) as { error?: { code: string } }
      return [response.status, error?.code]
    }
    expect(await refresh(before)).toEqual([409, "metadata_refresh.unsupported"])
    expect(await refresh(other)).toEqual([201, undefined])
    await app.stop(true)
  })

  test("deploys the collections promised under it even if the chain did not respond when a process started", async () => {
    await deployByFirst(await promisedByFirst())
    const promised = await promisedByFirst({ rpc_urls: ["http://127.0.0.1:1"] })
    expect(await deployByFirst(promised)).toBe(1)
  })

  test("deploys the collections promised under it, and if it refuses to, delays nothing else", async () => {
    const promised = await promisedByFirst()
    await letOperate(false)
    const running = workOn(stage.world)
    await issuedUnit(running)
    await until(async () => /^factory .* the factory is no longer in CHAINS/.test(await reasonFor(promised)))
    await letOperate(true)
    await untilActive(promised)
    await running.workers.stop()
    const origin = await stage.world.chains.get(31_337)?.generations.originOf(promised.address as Address)
    expect(origin).toEqual({ factory: firstFactory, generation: 1 })
  })

  test("has to be named in CHAINS again for a collection whose factory was not recorded", async () => {
    const promised = await promisedByFirst()
    await inTurn(stage.world.context, null, ({ tx }) =>
      tx.update(collections).set({ factory_address: null }).where(eq(collections.id, promised.id)),
    )
    const running = workOn(stage.world)
    await until(async () =>
      (await reasonFor(promised)).includes("set factory_address in CHAINS to the factory that does"),
    )
    await running.workers.stop()
    const world = await openFirst()
    const again = workOn(world)
    await untilActive(promised)
    await again.workers.stop()
    await world.close()
  })
})

type Issued = Awaited<ReturnType<typeof issuedUnit>>

/** A collection that is not deployed yet. */
async function promisedByFirst(settings: object = {}): Promise<CollectionRow> {
  const world = await openFirst(settings)
  await learnGenerations(world.context.db.read, world.chains.values())
  const { context } = world
  const made = await inTurn(context, null, (turn) =>
    createCollection(turn, context.chains, caller, { name: "Promised" }),
  )
  await world.close()
  return made
}

/** Has workers deploy it with the first-generation factory in CHAINS. Returns the generation of its contract. */
async function deployByFirst(promised: CollectionRow): Promise<number | undefined> {
  const world = await openFirst()
  const running = workOn(world)
  await untilActive(promised)
  await running.workers.stop()
  const origin = await world.chains.get(31_337)?.generations.originOf(promised.address as Address)
  await world.close()
  return origin?.generation
}

/** Sets whether the signers are operators of the first-generation factory. */
async function letOperate(isAllowed: boolean): Promise<void> {
  const of = { abi: firstFactoryAbi, functionName: "setOperator" } as const
  for (const signer of signers) await askFirst(encodeFunctionData({ ...of, args: [signer, isAllowed] }))
}

/** Sets the authorizer of the first-generation factory. */
async function nameAuthorizer(account: Address): Promise<void> {
  const args = [account] as const
  await askFirst(encodeFunctionData({ abi: firstFactoryAbi, functionName: "setAuthorizer", args }))
}

async function askFirst(data: Hex): Promise<void> {
  const { client } = stage.anvil
  const hash = await client.sendTransaction({ account: deployer, to: firstFactory, data, gas: 200_000n })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
}

/** The reason that operators see for a waiting deployment. */
async function reasonFor({ id }: CollectionRow): Promise<string> {
  const [effect] = await stage.world.context.db.read.select().from(effects).where(eq(effects.actor_id, id))
  return effect?.last_error ?? ""
}

async function untilActive({ id }: CollectionRow): Promise<void> {
  const isActive = and(eq(collections.id, id), eq(collections.status, "active"))
  await until(
    async () => (await stage.world.context.db.read.select().from(collections).where(isActive)).length === 1,
  )
}

/** The service as it was configured before. */
async function openFirst(changed: object = {}): Promise<World> {
  const CHAINS = chainsOfFirst(changed)
  return await openWorld(loadConfig({ ...stage.environment, LOG_LEVEL: "silent", CHAINS }), tell)
}

function chainsOfFirst(changed: object = {}): string {
  const file = join(stage.folder, "first-chains.json")
  const [[id, settings] = ["", {}]] = Object.entries(
    JSON.parse(readFileSync(join(stage.folder, "direct.json"), "utf8")) as Record<string, object>,
  )
  const { desk_address: _none, ...others } = settings as { desk_address?: string }
  writeFileSync(file, JSON.stringify({ [id]: { ...others, factory_address: firstFactory, ...changed } }))
  return file
}

function workOn(world: World): RunningWorkers {
  const { context } = world
  const turn: RunningWorkers["turn"] = (work, requestId) => inTurn(context, requestId ?? null, work)
  return { stage, context, workers: startWorkers(world), blocks, caller, turn, close: async () => {} }
}

async function serialOf(unitId: string): Promise<number | null> {
  return (await unitRowOf(stage.world.context.db.read, unitId)).serial
}

async function relay({ context, turn }: RunningWorkers, unit_id: string): Promise<void> {
  const body = { recipient: wallet.address } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
  await untilClaimed(unit_id)
}

async function claimFromWallet({ context, turn }: RunningWorkers, unit_id: string): Promise<void> {
  const body = { recipient: wallet.address, execution: "client_broadcast" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  const { transaction } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
  const [to, data] = [transaction?.to as Address, transaction?.data as Hex]
  await stage.anvil.client.sendTransaction({ account: wallet, to, data, gas: 300_000n })
  await untilClaimed(unit_id)
}

async function untilClaimed(unitId: string): Promise<void> {
  const isClaimed = and(eq(claims.unit_id, unitId), eq(claims.status, "claimed"))
  await until(
    async () => (await stage.world.context.db.read.select().from(claims).where(isClaimed)).length === 1,
  )
}

async function replace({ context, turn }: RunningWorkers, unit_id: string): Promise<void> {
  const world = { secret: context.config.service_secret, chains: context.chains }
  const asked = { unit_id, body: { is_test: true } }
  const { id } = await turn((t) => createChipReplacement(t, world, caller, asked))
  await until(async () => {
    const { read } = stage.world.context.db
    const [row] = await read.select().from(chipReplacements).where(eq(chipReplacements.id, id))
    return row?.status === "confirmed"
  })
}
