import { afterEach } from "bun:test"
import { asc, desc, eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import {
  chipReplacements,
  claims,
  effects,
  type LaneRow,
  lanes,
  transactionAttempts,
  transactions,
} from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Lane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { createChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { jobs } from "../../workers/jobs/jobs.ts"
import { accountAt, type Depths, openStage, type Stage, signers } from "../faults/stage.ts"
import { unitRowOf } from "./unit-rows.ts"

/** A chain and lanes in which nothing happens by itself: the test triggers each block and each round. */
export type ByHand = {
  stage: Stage
  /** The workers' world, which reaches the chain through the stage's proxies. */
  world: World
  chain: ConnectedChain
  /** One per signer; the ownership lane first. */
  lanes: [Lane, Lane]
  caller: Caller
  turn: <T>(work: (turn: Turn) => Promise<T>) => Promise<T>
  newCaller(): Promise<Caller>
  /** One round of every lane. */
  tick(): Promise<void>
  mine(blocks?: number): Promise<void>
  /** Mines blocks and runs rounds until nothing is in flight. */
  settle(): Promise<void>
  transactionsOf(kind: string): Promise<(typeof transactions.$inferSelect)[]>
  close(): Promise<void>
}

export async function openByHand(
  depths: Depths = { confirmation_depth: 2, finality_depth: 6 },
  providers = 1,
): Promise<ByHand> {
  const stage = await openStage(depths, providers)
  const world = await openWorld(loadConfig({ ...stage.environment, LOG_LEVEL: "silent" }), tell)
  const { context } = world
  const chain = world.chains.get(31_337)
  const [owning, issuing] = chain?.signers ?? []
  if (!chain || !owning || !issuing) throw new Error("the stage has a chain with two signers")
  const claimant = { owner: "by hand", lease_milliseconds: 60_000 }
  const laneOf = (signer: typeof owning): Lane => ({
    ...{ context, chain, signer, claimant, jobs, checkpoint() {}, memory: {} },
  })
  const own: [Lane, Lane] = [laneOf(owning), laneOf(issuing)]
  const turn: ByHand["turn"] = (work) => inTurn(context, null, work)
  const newCaller = async (): Promise<Caller> => {
    const { id: organization_id } = await turn((t) =>
      createOrganization(t, { name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] }),
    )
    return { organization_id, kind: "api_key", credential_id: newId(), session: null }
  }
  // A test may exchange a lane.
  const tick = () => tickOf(...own)()
  const mine = (blocks = 1) => stage.anvil.client.mine({ blocks })
  return {
    ...{ stage, world, chain, lanes: own, caller: await newCaller(), turn, newCaller, tick, mine },
    async settle() {
      for (let round = 0; round < 40; round++) {
        await tick()
        await mine()
        const { read } = context.db
        const waiting = await read.select().from(effects).where(eq(effects.status, "open"))
        if (waiting.every(({ src }) => src === "watchAuthorization")) return
      }
      const rows = await context.db.read.select().from(lanes)
      throw new Error(`work is left after 40 rounds: ${rows.map(({ reason }) => reason).join("; ")}`)
    },
    async transactionsOf(kind) {
      return await context.db.read.select().from(transactions).where(eq(transactions.kind, kind))
    },
    async close() {
      await world.close()
      await stage.close()
    },
  }
}

/** Opens instances for the tests of a file, and closes them after each test. */
export function openForEachTest(): typeof openByHand {
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })
  return async (...settings) => {
    const hand = await openByHand(...settings)
    closers.push(hand.close)
    return hand
  }
}

/** A round of these lanes alone, while the others are late. */
export function tickOf(...lanes: Lane[]): () => Promise<void> {
  return async () => {
    await outwaitNewestBlock()
    for (const lane of lanes) await tickLane(lane)
  }
}

/** Waits until the cached newest block is stale, so that the next round requests it. */
export async function outwaitNewestBlock(): Promise<void> {
  await Bun.sleep(25)
}

/** A collection whose deployment is queued in its lane. */
export function newCollection({ turn, world, caller }: ByHand, by = caller) {
  return turn((t) => createCollection(t, world.context.chains, by, { name: "Autumn" }))
}

export async function activeCollection(hand: ByHand) {
  const collection = await newCollection(hand)
  await hand.settle()
  return collection
}

export async function newUnit({ turn, caller }: ByHand, collection_id: string): Promise<string> {
  return (await turn((t) => createUnit(t, caller, { collection_id }))).id
}

/** A unit with a test chip, whose issuance is queued in its lane. */
export async function pairedUnit(hand: ByHand, collection_id: string): Promise<string> {
  const { turn, world, caller } = hand
  const unit_id = await newUnit(hand, collection_id)
  const secret = world.context.config.service_secret
  await turn((t) => pairChip(t, secret, caller, { unit_id, is_test: true }))
  return unit_id
}

/** A unit on the chain, as serial 1 of a collection of its own. */
export async function issuedUnit(hand: ByHand): Promise<{ unit_id: string; address: string }> {
  const { id, address } = await activeCollection(hand)
  const unit_id = await pairedUnit(hand, id)
  await hand.settle()
  const unit = await unitRowOf(hand.world.context.db.read, unit_id)
  if (unit.token_status !== "active") throw new Error(`the token of unit ${unit_id} is not on the chain`)
  return { unit_id, address }
}

/** A unit on the chain with a relayed claim for `person` whose result was given. */
export async function relayedClaim(hand: ByHand) {
  const unit = await issuedUnit(hand)
  const { id } = await (await preparedClaim(hand, unit.unit_id, person.address))()
  await hand.settle()
  return { ...unit, id }
}

/** A unit on the chain with a replacement of its chip whose result was given. */
export async function replacedChip(hand: ByHand) {
  const unit = await issuedUnit(hand)
  const { id, chip_id } = await replaceChip(hand, unit.unit_id)
  await hand.settle()
  return { ...unit, id, chip_id }
}

/** Two units on the chain, as serials 1 and 2 of a collection of their own. */
export async function twoIssuedUnits(hand: ByHand) {
  const { id, address } = await activeCollection(hand)
  const [one, other] = [await pairedUnit(hand, id), await pairedUnit(hand, id)]
  await hand.settle()
  return { address, one, other }
}

export function replaceChip({ turn, world, caller }: ByHand, unit_id: string) {
  const { config, chains } = world.context
  const services = { secret: config.service_secret, chains }
  return turn((t) => createChipReplacement(t, services, caller, { unit_id, body: { is_test: true } }))
}

/** Gives an account operator roles, by default all of them. */
export async function grant({ stage, chain, mine }: ByHand, account: Address, roles = 15n): Promise<void> {
  await stage.anvil.client.writeContract({
    ...{ account: accountAt(0), chain: null, address: chain.config.factory_address, abi: factoryAbi },
    ...{ functionName: "setRoles", args: [account, roles] },
  })
  await mine()
}

/** An account that acts outside the service, once it has roles. */
export const outsider = accountAt(8)
/** Whom units are claimed for. */
export const [person, friend] = [accountAt(6), accountAt(7)]

/** Calls a collection's contract as the outsider; returns the hash of the transaction, which is not mined yet. */
export async function callAsOutsider(
  { stage }: ByHand,
  address: string,
  functionName: "claim" | "replaceChip",
  args: unknown[],
): Promise<Hex> {
  const call = { account: outsider, chain: null, address: address as Hex, abi: collectionAbi, gas: 300_000n }
  return await stage.anvil.client.writeContract({ ...call, functionName, args } as never)
}

/** Has the outsider claim serial 1 in the newest block; returns the transaction's hash. */
export async function claimBeside(hand: ByHand, address: string, recipient: Address): Promise<Hex> {
  await grant(hand, outsider.address)
  const hash = await callAsOutsider(hand, address, "claim", [1n, recipient])
  await hand.mine()
  return hash
}

/** Prepares a claim while the chain allows it; returns a function that creates it. */
export async function preparedClaim({ turn, world, caller }: ByHand, unit_id: string, recipient: Address) {
  const body = { recipient }
  const prepared = await prepareClaim(world.context, caller, unit_id, body)
  return () => turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
}

/** The row of the lane that issues and deploys. */
export async function issuingLane({ world }: ByHand): Promise<LaneRow> {
  const [row] = await world.context.db.read.select().from(lanes).where(eq(lanes.address, signers[1]))
  if (!row) throw new Error("the stage has a lane for each signer")
  return row
}

/** Undoes the newest blocks with a reorganization that drops their transactions. */
export async function undoBlocks({ stage }: ByHand, depth = 1): Promise<void> {
  const { client } = stage.anvil
  const { number: newest } = await client.getBlock()
  const numbers = Array.from({ length: depth }, (_, index) => newest - BigInt(index))
  const undone = await Promise.all(numbers.map((blockNumber) => client.getBlock({ blockNumber })))
  const request = client.request as (call: object) => Promise<unknown>
  await request({ method: "anvil_reorg", params: [depth, []] })
  for (const hash of undone.flatMap(({ transactions }) => transactions))
    await client.dropTransaction({ hash })
}

/** Undoes a block and all after it. */
export async function undoFrom(hand: ByHand, blockNumber: bigint | number): Promise<void> {
  const { number: newest } = await hand.stage.anvil.client.getBlock()
  await undoBlocks(hand, Number(newest) - Number(blockNumber) + 1)
}

/** Mines a lane's last transaction after revoking its signer's roles. */
export async function mineWithoutRole(hand: ByHand, lane: ByHand["lanes"][0]): Promise<void> {
  const [sent] = await hand.world.context.db.read
    .select()
    .from(transactionAttempts)
    .orderBy(desc(transactionAttempts.created_at))
    .limit(1)
  await mineAllWithoutRole(hand, lane, [sent as SentBytes])
}

/** Mines bytes of a lane after revoking its signer's roles. Throws if any of them succeed. */
export async function mineAllWithoutRole(
  hand: ByHand,
  { signer }: ByHand["lanes"][0],
  sent: readonly SentBytes[],
): Promise<void> {
  const { client } = hand.stage.anvil
  for (const { hash } of sent) await client.dropTransaction({ hash })
  await grant(hand, signer.address, 0n)
  for (const { raw } of sent) await client.sendRawTransaction({ serializedTransaction: raw })
  await hand.mine()
  for (const { hash } of sent) {
    const { status } = await client.getTransactionReceipt({ hash })
    if (status !== "reverted") throw new Error(`${hash} succeeds without the role`)
  }
}

export type SentBytes = { hash: Hex; raw: Hex }

/** Reads serial 1 from the contract. */
export async function readToken(
  { stage }: ByHand,
  address: string,
  functionName: "chipOf" | "ownerOf",
): Promise<unknown> {
  const call = { address: address as Hex, abi: collectionAbi, functionName, args: [1n] } as const
  return await stage.anvil.client.readContract(call)
}

export async function replacementNow({ world }: ByHand, id: string) {
  const [row] = await world.context.db.read.select().from(chipReplacements).where(eq(chipReplacements.id, id))
  if (!row) throw new Error(`there is no chip replacement ${id}`)
  return row
}

/**
 * Replaces the blocks since the first transaction of a kind: each transaction goes into the block that `placeOf`
 * returns, counted from there, or into none.
 */
export async function reorganize(
  hand: ByHand,
  kind: string,
  placeOf: (transaction: { kind: string; nonce: number }) => number | null,
): Promise<void> {
  const { client } = hand.stage.anvil
  const rows = await hand.world.context.db.read
    .select()
    .from(transactions)
    .innerJoin(transactionAttempts, eq(transactionAttempts.transaction_id, transactions.id))
    .orderBy(asc(transactions.nonce))
  const heightOf = ({ transactions: { block_number } }: (typeof rows)[number]) => block_number ?? Infinity
  const lowest = Math.min(...rows.filter((row) => row.transactions.kind === kind).map(heightOf))
  const replaced = rows.filter((row) => heightOf(row) >= lowest)
  const instead = replaced.flatMap((row) => {
    const place = placeOf(row.transactions)
    return place === null ? [] : [[row.transaction_attempts.raw, place]]
  })
  const { number: head } = await client.getBlock()
  const request = client.request as (call: object) => Promise<unknown>
  await request({ method: "anvil_reorg", params: [Number(head) - lowest + 1, instead] })
  for (const { transactions: row } of replaced)
    if (row.hash !== null && placeOf(row) === null) await client.dropTransaction({ hash: row.hash as Hex })
}

/**
 * A reorganization after which the deployment reverts and everything else is mined in one block, without a contract.
 * Then the deployment's signer gets its role back.
 */
export async function meetNoContract(hand: ByHand): Promise<void> {
  const { client } = hand.stage.anvil
  const [, { signer }] = hand.lanes
  const [deployment] = await hand.transactionsOf("deployCollection")
  const sent = await hand.world.context.db.read.select().from(transactionAttempts)
  const { number } = await client.getBlock()
  await undoBlocks(hand, Number(number) - Number(deployment?.block_number) + 1)
  await grant(hand, signer.address, 0n)
  for (const { raw } of sent) await client.sendRawTransaction({ serializedTransaction: raw as Hex })
  await hand.mine()
  await grant(hand, signer.address)
}

export async function claimNow({ world }: ByHand, id: string) {
  const [row] = await world.context.db.read.select().from(claims).where(eq(claims.id, id))
  if (!row) throw new Error(`there is no claim ${id}`)
  return row
}

/** The ownership lane, and what its operator is told about undone work. */
export function overhear({ lanes: [owning] }: ByHand) {
  const told: object[] = []
  const error = (fields: object) => {
    if ("actor_ids" in fields) told.push(fields)
  }
  return { lane: { ...owning, context: { ...owning.context, log: { ...owning.context.log, error } } }, told }
}

/** Runs rounds of all lanes, each followed by a block. */
export async function goOn({ tick, mine }: ByHand, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await tick()
    await mine()
  }
}

/** A reorganization after which transactions of a kind are mined before the contract is deployed. */
export async function putBeforeDeployment(hand: ByHand, sent: string): Promise<void> {
  await reorganize(hand, "deployCollection", ({ kind }) => (kind === sent ? 0 : 1))
}

/** The chain as seen through nodes that say this instead of returning logs. */
export function withoutLogs({ chain }: ByHand, said: string): ConnectedChain {
  const getContractEvents = () => Promise.reject(new Error(said))
  return { ...chain, rpc: { ...chain.rpc, getContractEvents } as typeof chain.rpc }
}

/** The chain as seen through a node that has none of the blocks with logs yet, or no logs any more, and says neither. */
export function leavingOutLogs(chain: ConnectedChain): ConnectedChain {
  return { ...chain, rpc: { ...chain.rpc, getContractEvents: async () => [] } as typeof chain.rpc }
}

/** The chain as seen through nodes without receipts. */
export function withoutReceipts({ chain }: ByHand): ConnectedChain {
  const isForReceipt = ({ method }: { method: string }) => method === "eth_getTransactionReceipt"
  const askAll: typeof chain.providers.askAll = async (question) =>
    isForReceipt(question) ? [null] : await chain.providers.askAll(question)
  const request = async (question: { method: string }) =>
    isForReceipt(question) ? null : await chain.rpc.request(question as never)
  const rpc = { ...chain.rpc, request } as typeof chain.rpc
  return { ...chain, rpc, providers: { ...chain.providers, askAll } }
}

/** The number that the contract stores for a chip. */
export function numberOf(chipId: string | null): number {
  return Number.parseInt(chipId ?? "", 16)
}
