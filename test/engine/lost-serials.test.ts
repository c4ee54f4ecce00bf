import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { asc, eq } from "drizzle-orm"
import { type Address, encodeFunctionData, type Hex, parseEventLogs } from "viem"
import { chainCursors, foundSerials } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import {
  bulkPairings,
  type CollectionRow,
  chipReplacements,
  claims,
  collections,
  effects,
  lanes,
  transactionAttempts,
  units,
} from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import type { Secret } from "../../src/platform/sealing.ts"
import { createChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { pairChip, pairChipsInBulk } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { startWorkers, type Workers } from "../../workers/start.ts"
import { retryLane } from "../faults/play.ts"
import { accountAt, openStage, type Stage } from "../faults/stage.ts"
import { until } from "../harness/engine.ts"
import { importedChip, refusal } from "../harness/services.ts"

const root = join(import.meta.dir, "../..")
const logRangeBlocks = 7
/** Blocks before the collection's, which no search may reach. */
const olderBlocks = 30

let service: Service
beforeEach(async () => {
  service = await openService()
}, 30_000)
afterEach(() => service.close())

describe("after a restore from an older back-up", () => {
  test("chips that are paired again get the serials that they have on the chain, and others the next ones", async () => {
    const { known, b, c, d, e, f, replacing, x, y, later, last } = await importChips(
      ...(["known", "b", "c", "d", "e", "f", "replacing", "x", "y", "later", "last"] as const),
    )
    const [issued] = await pairSingly([known])
    await untilIssued([issued])
    const file = await backUp()

    const [single] = await pairSingly([b])
    await untilIssued([single])
    const bulk = await pairInBulk([c, d, e])
    await untilIssued(bulk)
    await untilIssued(await pairSingly([f]))
    await claimByRelay(bulk[0])
    await replaceChip(bulk[1], replacing)

    await restore(file)
    const halted = await untilHalted(2)
    for (const { reason } of halted)
      expect(reason).toMatch(
        /has \d+ transactions of 0x\w+, but the database knows of \d+: .+ operator retry/,
      )
    for (const { id } of halted) await retryLane({ ...service.stage, environment: service.environment }, id)

    const [ofE, ofX] = await pairSingly([e, x])
    const mixed = await pairInBulk([replacing, y, c, b])
    const [ofD] = await pairSingly([d])
    await untilIssued([ofE, ofX, ...mixed, ofD])
    // Lost serials in chain order: b 2, c 3, d 4 until its replacement, e 5, f 6.
    expect(await serialsOf([ofE, ...mixed.filter((_unit, index) => index !== 1)])).toEqual([5, 4, 3, 2])
    const fresh = await serialsOf([ofX, mixed[1], ofD])
    expect(fresh.toSorted()).toEqual([7, 8, 9])

    expect(await refusal(prepare(mixed[2], accountAt(8).address))).toBe("claim.already_claimed")
    const [stillOwned] = await service.read
      .select()
      .from(units)
      .where(eq(units.id, mixed[2] as string))
    expect(stillOwned).toMatchObject({ owner: accountAt(6).address, claimed: true })
    await claimByRelay(mixed[3])
    await untilIssued(await pairInBulk([later]))
    await untilIssued(await pairSingly([last]))
    expect(await issuedOnChain()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    const bound = await chipsOnChain(11)
    expect(new Set(bound).size).toBe(11)
    expect(bound.slice(0, 6)).toEqual([known, b, c, replacing, e, f].map(({ chip_id }) => chip_id))

    const found = await service.read.select().from(foundSerials).orderBy(asc(foundSerials.serial))
    expect(found.map(({ serial, chip_id }) => ({ serial, chip_id }))).toEqual(
      [b, c, replacing, e, f].map(({ chip_id }, index) => ({ serial: index + 2, chip_id })),
    )
    expect(service.warnings).toEqual([
      expect.objectContaining({ collection_id: service.collection.id, serials: 5 }),
    ])
    const open = await service.read.select().from(bulkPairings)
    expect(open.every(({ issued_at }) => issued_at !== null)).toBe(true)
    expect(service.provider.refused).toEqual([])
  }, 60_000)

  test("pairings in the back-up get the serials of their chips on the chain, however they were batched", async () => {
    const { known, b, c, d, e, f, x } = await importChips("known", "b", "c", "d", "e", "f", "x")
    await untilIssued(await pairSingly([known]))
    await service.workers.stop()
    const survived = await pairSingly([b, c])
    const file = await backUp()
    const alsoJoined = await pairSingly([d])
    service.workers = start(service.world)
    await untilIssued([...survived, ...alsoJoined])
    await untilIssued(await pairInBulk([e, f]))

    await restore(file)
    const again = await pairSingly([d, e, x])
    for (const { id } of await untilHalted(1))
      await retryLane({ ...service.stage, environment: service.environment }, id)
    await untilIssued([...survived, ...again])
    expect(await serialsOf([...survived, ...again])).toEqual([2, 3, 4, 5, 7])
    expect(await issuedOnChain()).toEqual([1, 2, 3, 4, 5, 6, 7])
  }, 60_000)

  test("a claim that is open in the back-up ends with the transaction that made it on the chain", async () => {
    const { known } = await importChips("known")
    const [unit] = await pairSingly([known])
    await untilIssued([unit])
    await service.workers.stop()
    const claimId = await startClaim(unit)
    const file = await backUp()
    service.workers = start(service.world)
    const { transaction_hash } = await untilClaimed(claimId)
    await service.stage.anvil.client.mine({ blocks: 5 * logRangeBlocks })

    await restore(file)
    for (const { id } of await untilHalted(1))
      await retryLane({ ...service.stage, environment: service.environment }, id)
    expect((await untilClaimed(claimId)).transaction_hash).toBe(transaction_hash)
    expect(service.provider.refused).toEqual([])
  }, 30_000)
})

describe("if another sender issues first", () => {
  test("a batch that reverts for it is planned again behind the other's serials", async () => {
    const { known, other, ours } = await importChips("known", "other", "ours")
    const { client } = service.stage.anvil
    await untilIssued(await pairSingly([known]))
    service.blocks.pause()
    const [unit] = await pairSingly([ours])
    const [hash] = await untilInPool()
    // The pool drops ours, which is sent again after the other's is in a block.
    await client.dropTransaction({ hash })
    const foreign = await issueAsOther(2n, other)
    service.blocks.resume()
    await untilIssued([unit])
    const [ofOther] = await pairSingly([other])
    await untilIssued([ofOther])
    expect(await serialsOf([unit, ofOther])).toEqual([3, 2])
    const [found] = await service.read.select().from(foundSerials)
    expect(await fatesOf(hash)).toContain("reverted")
    expect(found).toMatchObject({ serial: 2, chip_id: other.chip_id, transaction_hash: foreign })
  }, 30_000)
})

/** The outcome of every transaction with the nonce of these bytes, which may have been sent again at another price. */
async function fatesOf(hash: Hex): Promise<(string | null)[]> {
  const attempts = await service.read.select().from(transactionAttempts)
  const own = attempts.find((attempt) => attempt.hash === hash)?.transaction_id
  const receipts = attempts
    .filter(({ transaction_id }) => transaction_id === own)
    .map((attempt) => service.stage.anvil.client.getTransactionReceipt({ hash: attempt.hash as Hex }))
  const answers = await Promise.allSettled(receipts)
  return answers.map((answer) => (answer.status === "fulfilled" ? answer.value.status : null))
}

describe("a provider that rejects a log search", () => {
  test("delays that collection only, with a reason that says what to change, until it accepts", async () => {
    const { known, other, ours } = await importChips("known", "other", "ours")
    await untilIssued(await pairSingly([known]))
    await issueAsOther(2n, other)
    service.provider.refuses_logs = true
    const [unit] = await pairSingly([ours])
    await until(async () => (await lastErrorOf(unit))?.includes("lower log_range_blocks of chain") === true)

    const { caller, collection } = await newCollection(service.world)
    const beside = await turn((t) => createUnit(t, caller, { collection_id: collection.id }))
    await turn((t) => pairChip(t, secret(), caller, { unit_id: beside.id, is_test: true }))
    await untilIssued([beside.id])
    expect(await serialsOf([unit])).toEqual([null])

    service.provider.refuses_logs = false
    await untilIssued([unit])
    expect(await serialsOf([unit])).toEqual([3])
  }, 30_000)
})

test("a confirmed deployment records the block of the factory's event", async () => {
  const { client } = service.stage.anvil
  const logs = await client.getLogs({ address: service.factory, fromBlock: 0n })
  const [deployed] = parseEventLogs({ abi: factoryAbi, logs, eventName: "CollectionDeployed" })
  const [row] = await service.read.select().from(collections)
  expect(row?.deployed_block).toBe(Number(deployed?.blockNumber))
})

type Service = Awaited<ReturnType<typeof openService>>
type ImportedChip = { chip_id: string; tag: SunChip; reads: number }
type UnitId = string
type UnitsOf<Chips> = { [Index in keyof Chips]: UnitId }

/** A collection on a separate chain, behind a provider with the limits of public ones. */
async function openService() {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  const factory = stage.world.context.config.chains[0]?.factory_address as Address
  const folder = mkdtempSync(join(tmpdir(), "lost-serials-"))
  const provider = startStrictProvider(stage.anvil.url)
  await stage.anvil.client.writeContract({
    ...{ account: accountAt(0), chain: null, address: factory, abi: factoryAbi },
    ...{ functionName: "setRoles", args: [other.address, 1n] },
  })
  await stage.anvil.client.mine({ blocks: olderBlocks })
  const blocks = startBlocks(stage)
  const environment = { ...stage.environment, DATA_DIR: folder, CHAINS: join(folder, "chains.json") }
  const { chains } = stage.world.context.config
  const settings = { ...chains[0], rpc_urls: [provider.url], log_range_blocks: logRangeBlocks }
  const { chain_id, send_url: _unset, ...chain } = settings
  writeFileSync(environment.CHAINS, JSON.stringify({ [String(chain_id)]: chain }))
  const warnings: unknown[] = []
  const opened = await openWithWorkers(environment, warnings)
  // The chain was read before the collection existed, as in nearly every real case.
  await until(async () => (await opened.world.context.db.read.select().from(chainCursors)).length > 0)
  const { caller, collection } = await newCollection(opened.world)
  return {
    ...opened,
    stage,
    factory,
    folder,
    provider,
    blocks,
    environment,
    warnings,
    caller,
    collection,
    get read(): Queries {
      return this.world.context.db.read
    },
    async close() {
      await this.workers.stop()
      await this.world.close()
      await blocks.stop()
      provider.stop()
      await stage.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function openWithWorkers(
  environment: Record<string, string>,
  warnings: unknown[],
): Promise<{ world: World; workers: Workers }> {
  const opened = await openWorld(loadConfig({ ...environment, LOG_LEVEL: "silent" }), tell)
  const warn = (fields: object) => void warnings.push(fields)
  const context: Context = { ...opened.context, log: { debug() {}, info() {}, warn, error() {} } }
  const world = { ...opened, context }
  return { world, workers: start(world) }
}

/** A lease in a back-up has to expire, so it is a short one. */
function start(world: World): Workers {
  return startWorkers(world, { lease_milliseconds: 600, checkpoint() {} })
}

async function newCollection({ context }: World): Promise<{ caller: Caller; collection: CollectionRow }> {
  const settings = { name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] }
  const { id: organization_id } = await inTurn(context, null, (turn) => createOrganization(turn, settings))
  const caller: Caller = { organization_id, kind: "api_key", credential_id: newId(), session: null }
  const collection = await inTurn(context, null, (turn) =>
    createCollection(turn, context.chains, caller, { name: "Autumn Jackets" }),
  )
  await until(async () => {
    const [row] = await context.db.read.select().from(collections).where(eq(collections.id, collection.id))
    return row?.status === "active"
  })
  return { caller, collection }
}

/** Forwards everything except log searches that are too wide or that begin before the collection. */
function startStrictProvider(chainUrl: string) {
  const provider = { refused: [] as unknown[], refuses_logs: false }
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text()
      const { id, method, params } = JSON.parse(body)
      const [{ fromBlock, toBlock }] = method === "eth_getLogs" ? params : [{}]
      const isRange = fromBlock !== undefined && toBlock !== undefined
      const isTooWide = isRange && BigInt(toBlock) - BigInt(fromBlock) >= BigInt(logRangeBlocks)
      const isTooLow = isRange && BigInt(fromBlock) < BigInt(olderBlocks - 10)
      if (isTooWide || isTooLow || (isRange && provider.refuses_logs)) {
        provider.refused.push(params)
        return Response.json({ jsonrpc: "2.0", id, error: { code: -32_602, message: "range refused" } })
      }
      return await fetch(chainUrl, { method: "POST", headers: { "content-type": "application/json" }, body })
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  return Object.assign(provider, { url, stop: () => server.stop(true) })
}

function startBlocks({ anvil }: Stage) {
  let isPaused = false
  let making: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    if (!isPaused) making = anvil.client.mine({ blocks: 1 }).catch(() => {})
  }, 100)
  return {
    pause: () => {
      isPaused = true
    },
    resume: () => {
      isPaused = false
    },
    async stop() {
      clearInterval(timer)
      await making
    },
  }
}

function turn<T>(work: (turn: Turn) => Promise<T>): Promise<T> {
  return inTurn(service.world.context, null, work)
}

async function importChips<Name extends string>(...names: Name[]): Promise<Record<Name, ImportedChip>> {
  const imported: [string, ImportedChip][] = []
  for (const name of names)
    imported.push([name, { ...(await importedChip({ secret: secret(), turn }, service.caller)), reads: 0 }])
  return Object.fromEntries(imported) as Record<Name, ImportedChip>
}

/** The body that pairs a chip to a new unit. A chip keeps counting, whatever the database lost. */
async function pairingOf(chip: ImportedChip): Promise<{ unit_id: string; chip_id: string; e: string }> {
  chip.reads += 1
  const { id } = await turn((t) => createUnit(t, service.caller, { collection_id: service.collection.id }))
  return { unit_id: id, chip_id: chip.chip_id, e: emitSun(chip.tag, chip.reads).e }
}

async function pairSingly<const Chips extends ImportedChip[]>(paired: Chips): Promise<UnitsOf<Chips>> {
  const ids: UnitId[] = []
  for (const chip of paired) {
    const body = await pairingOf(chip)
    await turn((t) => pairChip(t, secret(), service.caller, body))
    ids.push(body.unit_id)
  }
  return ids as UnitsOf<Chips>
}

async function pairInBulk<const Chips extends ImportedChip[]>(paired: Chips): Promise<UnitsOf<Chips>> {
  const bodies: Awaited<ReturnType<typeof pairingOf>>[] = []
  for (const chip of paired) bodies.push(await pairingOf(chip))
  await turn((t) => pairChipsInBulk(t, secret(), service.caller, { chips: bodies }))
  return bodies.map(({ unit_id }) => unit_id) as UnitsOf<Chips>
}

function secret(): Secret {
  return service.world.context.config.service_secret
}

async function untilIssued(unitIds: UnitId[]): Promise<void> {
  await until(async () => (await serialsOf(unitIds)).every((serial) => serial !== null))
}

async function serialsOf(unitIds: UnitId[]): Promise<(number | null)[]> {
  const rows = await service.read.select().from(units)
  return unitIds.map((id) => rows.find((row) => row.id === id)?.serial ?? null)
}

function prepare(unitId: UnitId, recipient: Address) {
  return prepareClaim(service.world.context, service.caller, unitId, { recipient })
}

async function claimByRelay(unitId: UnitId): Promise<void> {
  await untilClaimed(await startClaim(unitId))
}

async function startClaim(unitId: UnitId): Promise<string> {
  const recipient = accountAt(6).address
  const prepared = await prepare(unitId, recipient)
  const { id } = await turn((t) =>
    createClaim(t, service.caller, { unit_id: unitId, body: { recipient }, prepared }),
  )
  return id
}

async function untilClaimed(claimId: string): Promise<typeof claims.$inferSelect> {
  const find = async () => (await service.read.select().from(claims).where(eq(claims.id, claimId)))[0]
  await until(async () => (await find())?.status === "claimed")
  return (await find()) as typeof claims.$inferSelect
}

async function replaceChip(unitId: UnitId, chip: ImportedChip): Promise<void> {
  chip.reads += 1
  const body = { chip_id: chip.chip_id, e: emitSun(chip.tag, chip.reads).e }
  const { chains } = service.world.context
  const { id } = await turn((t) =>
    createChipReplacement(t, { secret: secret(), chains }, service.caller, { unit_id: unitId, body }),
  )
  await until(async () => {
    const [row] = await service.read.select().from(chipReplacements).where(eq(chipReplacements.id, id))
    return row?.status === "confirmed"
  })
}

async function backUp(): Promise<string> {
  const file = join(service.folder, "back-up.db")
  const child = Bun.spawn([process.execPath, join(root, "src/back-up.ts"), file], {
    env: { PATH: process.env.PATH, ...service.environment },
    stdout: "ignore",
    stderr: "pipe",
  })
  const complaint = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(complaint)
  return file
}

async function restore(file: string): Promise<void> {
  await service.workers.stop()
  await service.world.close()
  for (const name of readdirSync(service.folder))
    if (name.startsWith("service.db")) rmSync(join(service.folder, name))
  cpSync(file, join(service.folder, "service.db"))
  Object.assign(service, await openWithWorkers(service.environment, service.warnings))
}

/** A key with the role to issue that is not the service's. */
const other = accountAt(8)

/** Issues a chip with a key that the database does not know. */
function issueAsOther(serial: bigint, { chip_id }: ImportedChip): Promise<Hex> {
  return service.stage.anvil.client.sendTransaction({
    account: other,
    to: service.collection.address as Address,
    data: encodeFunctionData({
      abi: collectionAbi,
      functionName: "issue",
      args: [serial, `0x${chip_id}`, false],
    }),
    gas: 300_000n,
  })
}

async function lastErrorOf(unitId: UnitId): Promise<string | null> {
  const [effect] = await service.read.select().from(effects).where(eq(effects.actor_id, unitId))
  return effect?.last_error ?? null
}

/** Returns the hashes of pending transactions, once there are any. */
async function untilInPool(): Promise<[Hex, ...Hex[]]> {
  const { client } = service.stage.anvil
  let hashes: Hex[] = []
  await until(async () => {
    const { pending } = await client.getTxpoolContent()
    hashes = Object.values(pending).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash))
    return hashes.length > 0
  })
  return hashes as [Hex, ...Hex[]]
}

async function untilHalted(count: number): Promise<(typeof lanes.$inferSelect)[]> {
  const halted = () => service.read.select().from(lanes).where(eq(lanes.status, "halted"))
  await until(async () => (await halted()).length === count)
  return await halted()
}

/** The serials in the order in which the chain issued them. */
async function issuedOnChain(): Promise<number[]> {
  const address = service.collection.address as Address
  const logs = await service.stage.anvil.client.getLogs({ address, fromBlock: 0n })
  return parseEventLogs({ abi: collectionAbi, logs, eventName: "Transfer" })
    .filter(({ args }) => BigInt(args.from) === 0n)
    .map(({ args }) => Number(args.tokenId))
}

async function chipsOnChain(count: number): Promise<string[]> {
  const token = { address: service.collection.address as Address, abi: collectionAbi } as const
  const bound: string[] = []
  for (let serial = 1n; serial <= count; serial++) {
    const read = { ...token, functionName: "chipOf", args: [serial] } as const
    const chip = await service.stage.anvil.client.readContract(read)
    bound.push(chip.toString(16).padStart(10, "0").toUpperCase())
  }
  return bound
}
