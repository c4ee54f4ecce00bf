import { and, eq, lte } from "drizzle-orm"
import { type Address, createPublicClient, custom, type Hex } from "viem"
import { foundry } from "viem/chains"
import type { Database } from "../../src/db/database.ts"
import { webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { openDatabase } from "../../src/db/open.ts"
import { type Given, query } from "../../src/db/query.ts"
import { actorEvents, actors, effects, transactionAttempts, transactions } from "../../src/db/schema.ts"
import { authorizationSeconds } from "../../src/engine/chain/authorizer.ts"
import { inTurn } from "../../src/platform/context.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import type { Asking, Stage } from "./asking.ts"
import { apiNames, type Cast, createCast, workerNames } from "./cast.ts"
import { headOf, type SimulatedChain } from "./chain/chain.ts"
import { answerRpc, wholeView } from "./chain/json-rpc.ts"
import { type Chest, createChest, storeChips } from "./chest.ts"
import { type Clients, createClients } from "./clients.ts"
import { drawFaults, type Fault, lastsUntil, rageSeconds } from "./faults.ts"
import { impoverish, keepFunded } from "./funds.ts"
import { blockSeconds, depths, epoch, type Ground, preparePlot } from "./ground.ts"
import { createGuardian } from "./guardian.ts"
import { findFaults } from "./judge.ts"
import { createOperator, haltedLanes } from "./operator.ts"
import { createPassersBy } from "./passers-by.ts"
import { createProvider } from "./providers.ts"
import { createReceiver } from "./receiver.ts"
import { createRestorer, type Store } from "./restoration.ts"
import { createSimulation, inProcess, runUntil, type Simulation, serve, sleep } from "./scheduler.ts"
import { servers } from "./seams/line.ts"
import { askForChipsOnChain, takeStock } from "./stock.ts"
import { followFeed, playStory, readAgain, readFeed } from "./story.ts"
import { sendNonsense } from "./stranger.ts"
import { streamOf } from "./streams.ts"
import { createWakeUpLine } from "./wake-ups.ts"
import { calm, createMiner, mineAtOnce, type Surroundings, startMining, unleash } from "./weather.ts"

/** A seed, which determines what is requested and in which order things happen, and what goes wrong. */
export type Plan = { seed: bigint; faults: Fault[] }

export type Outcome = Plan & {
  /** Everything that is wrong, in sentences. */
  found: string[]
  /** How much was requested. */
  asked: string
  /** A hash of everything that happened: the same for the same plan, whatever ran before. */
  digest: string
  trace: string[] | null
  log: string[]
  simulated_seconds: number
  seams: number
  deaths: number
  reorganizations: number
  blocks: number
  requests: number
}

/**
 * How long the service may need, once nothing goes wrong any more, to finish what it began: an authorization that
 * cannot be used, because a reorganization undid its prerequisite, is open until its deadline.
 */
const patienceSeconds = authorizationSeconds + 200

export function planOf(seed: bigint): Plan {
  return { seed, faults: drawFaults(seed, [...apiNames, ...workerNames], providersOf(seed)) }
}

function providersOf(seed: bigint): number {
  return 1 + streamOf(seed, "providers").below(3)
}

/** Runs one history from an empty chain and database to its end, and judges it. */
export async function playHistory(
  ground: Ground,
  { seed, faults }: Plan,
  isTraced = false,
): Promise<Outcome> {
  const simulation = createSimulation(seed, epoch, isTraced)
  const has = (kind: Fault["kind"]) => faults.some((fault) => fault.kind === kind)
  const plot = await preparePlot(ground, {
    providers: providersOf(seed),
    confirmation_depth: has("hasty") || has("instant") ? 1 : depths.confirmation_depth,
    finality_depth: has("instant") ? 1 : depths.finality_depth,
    is_released: has("hand_on"),
  })
  const { chain, config } = plot
  const poverty = faults.find((fault) => fault.kind === "poor")
  if (poverty) await impoverish(chain, poverty)
  serve(simulation)
  const store: Store = { db: openDatabase(config.database_url) }
  const wakeUpLine = createWakeUpLine(simulation)
  const cast = createCast(simulation, config, wakeUpLine)
  const clients = createClients(simulation, cast, streamOf(seed, "clients"))
  const operator = createOperator(simulation, cast, store, chain)
  const guardian = createGuardian(simulation, chain, ground.contracts.factory_address)
  const restorer = createRestorer(simulation, cast, store)
  const miner = createMiner()
  const unstored: Hex[] = []
  const providers = plot.urls.map((url, index) =>
    createProvider(url, chain, streamOf(seed, `provider ${index}`), async (hash) => {
      if (!(await isStored(store, hash))) unstored.push(hash)
    }),
  )
  servers.clear()
  const receiver = createReceiver("https://93.184.215.14/events", streamOf(seed, "receiver"))
  for (const { url, serve: answer } of [...providers, receiver]) servers.set(url, answer)

  const strangers: Asking["strangers"] = [null, "", "end_sk_forged", "x".repeat(500)]
  const asking: Asking = { collections: [], secrets: [...plot.secrets], strangers, breaches: [], feed: [] }
  const chest = has("restore") ? createChest(streamOf(seed, "chest")) : null
  const stage: Stage = {
    ...{ simulation, chain, clients, receiver, chest, chance: streamOf(seed, "story") },
    most_skew_seconds: mostSkew(faults),
    isRestored: () => restorer.restoration !== null,
  }
  const breached = (error: Error) => void asking.breaches.push(error.message)
  let maker = ""
  let neighbour: string | null = null
  const passersBy = createPassersBy(stage, asking, () => neighbour)
  const beside: Promise<void>[] = []
  const around: Surroundings = {
    ...{ simulation, cast, clients, wakeUpLine, providers, receiver, chain, miner },
    act(fault) {
      if (fault.kind === "operator") void operator.follow(fault)
      else if (fault.kind === "rotate") void operator.rotate(fault)
      else if (fault.kind === "authorizer") beside.push(operator.rotateAuthorizer(fault).catch(breached))
      else if (fault.kind === "pause") guardian.pause(fault)
      else if (fault.kind === "poor") void keepFunded(simulation, chain, fault)
      else if (fault.kind === "restore") beside.push(takeStockAfter(fault).catch(breached))
      else if (fault.kind === "hostile")
        void sendNonsense(clients, fault.salt, { tokens: strangers, values: valuesIn(asking) })
      else passersBy.come(fault)
    },
  }

  async function live(): Promise<void> {
    startMining(around, blockSeconds)
    for (const name of [...apiNames, ...workerNames]) cast.start(name)
    const hasNeighbour = has("burst")
    const keys = await newOrganizations(cast, { chest, hasNeighbour })
    maker = keys.maker
    neighbour = keys.neighbour
    asking.secrets.push(...Object.values(keys).filter((key) => key !== null))
    strangers.push(keys.stranger)
    void operator.watchLanes()
    const ends = unleash(around, faults)
    followFeed(stage, maker, asking).catch(breached)
    const played = playStory(stage, maker, asking)
    await Promise.all([played, sleep(simulation, lastsUntil(faults)).then(() => calm(around, faults, ends))])
    await Promise.all([...beside, passersBy.gone()])
    await quiet(around, store)
    if (restorer.restoration && (await askForChipsOnChain(stage, operator, asking)))
      await quiet(around, store)
    await readAgain(stage, maker, asking)
    await readFeed(stage, maker, asking)
    await operator.explainEachState()
  }

  async function takeStockAfter(fault: Extract<Fault, { kind: "restore" }>): Promise<void> {
    if (await restorer.restore(fault)) await takeStock(stage, asking)
  }

  let isOver = false
  let failure: string | null = null
  inProcess(null, () => {
    live()
      .catch((error) => {
        failure = String((error as Error).stack)
      })
      .finally(() => {
        isOver = true
      })
  })
  const log = cast.lines
  await runUntil(simulation, () => isOver, (rageSeconds + patienceSeconds) * 1_000).catch((error) => {
    failure = (error as Error).message
  })
  const { now, hash, steps } = simulation
  cast.end()
  serve(null)
  const found = await findFaults({
    ...{ faults, asking, clients, operator, receiver, log, unstored, failure },
    restoration: restorer.restoration,
    ended_at: new Date(epoch + now),
    world: { context: { config, db: store.db } },
    anvil: { client: clientOf(chain) },
    made: miner.made,
    foreign: miner.stolen.map((transaction) => transaction.hash),
  })
  const digest = await digestOf(store.db, chain, hash)
  await store.db.close()
  return {
    ...{ seed, faults, found, digest, trace: simulation.trace, log },
    asked: countsOf(asking, clients),
    simulated_seconds: Math.round(now / 1_000),
    seams: steps,
    deaths: cast.deaths,
    reorganizations: miner.reorganizations,
    blocks: chain.blocks.length,
    requests: clients.exchanges.length,
  }
}

/** Two clocks may be wrong in opposite directions. */
function mostSkew(faults: readonly Fault[]): number {
  return faults.reduce((most, fault) => {
    return fault.kind === "clock" ? Math.max(most, 2 * Math.abs(fault.by_seconds)) : most
  }, 0)
}

async function isStored({ db }: Store, hash: Hex): Promise<boolean> {
  return (await attemptsOfHash(db.read, { hash })).length > 0
}

const attemptsOfHash = query((db, { hash }: Given<{ hash: string }>) =>
  db
    .select({ hash: transactionAttempts.hash })
    .from(transactionAttempts)
    .where(eq(transactionAttempts.hash, hash)),
)

/**
 * Creates, as an operator, the brand of the story, a stranger and optionally a neighbour. Returns an API key of each.
 */
async function newOrganizations(
  cast: Cast,
  { chest, hasNeighbour }: { chest: Chest | null; hasNeighbour: boolean },
): Promise<{ maker: string; stranger: string; neighbour: string | null }> {
  return await cast.visit("operator", async ({ context }) => {
    const make = (name: string, encoded: Chest | null) =>
      inTurn(context, null, async (turn) => {
        const chains = { default_chain_id: foundry.id, allowed_chain_ids: [foundry.id] }
        const { id } = await createOrganization(turn, { name, ...chains })
        if (encoded) await storeChips(turn, context.config.service_secret, id, encoded)
        return (await issueApiKey(turn, { organization_id: id, name: null })).key
      })
    return {
      maker: await make("Maker", chest),
      stranger: await make("Stranger", null),
      neighbour: hasNeighbour ? await make("Neighbour", null) : null,
    }
  })
}

/** Waits until nothing is in flight and everything is final, for which the chain mines ahead. */
async function quiet({ simulation, chain, miner }: Surroundings, store: Store): Promise<void> {
  await still(simulation, store, chain)
  await mineAtOnce({ simulation, chain, miner }, depths.finality_depth)
  await still(simulation, store, chain)
}

/**
 * Waits until nothing has been in flight for some blocks: a wallet may yet notice that a reorganization undid its
 * transaction.
 */
async function still(simulation: Simulation, store: Store, chain: SimulatedChain): Promise<void> {
  let since = headOf(chain).number
  while (headOf(chain).number - since < stillBlocks) {
    await sleep(simulation, blockSeconds * 1_000)
    if (await isBusy(store.db, chain)) since = headOf(chain).number
  }
}

const stillBlocks = 4

async function isBusy({ read }: Database, chain: SimulatedChain): Promise<boolean> {
  if ((await openEffects(read, {})).length > 0) return true
  if ((await dueDeliveries(read, { at: new Date() })).length > 0) return true
  if ((await haltedLanes(read, {})).length > 0) return true
  return (await allTransactions(read, {})).some(({ status, block_number, block_hash }) => {
    if (status === "final" && block_hash === null) return false
    const isSettled = status === "confirmed" || status === "reverted" || status === "final"
    return !isSettled || chain.blocks[block_number ?? -1]?.hash !== block_hash
  })
}

const openEffects = query((db) =>
  db.select({ id: effects.id }).from(effects).where(eq(effects.status, "open")),
)
/** Deliveries that a dead worker had started wait for the end of its lease. */
const dueDeliveries = query((db, { at }: Given<{ at: Date }>) =>
  db
    .select({ event_id: webhookQueue.event_id })
    .from(webhookQueue)
    .innerJoin(webhookEndpoints, eq(webhookEndpoints.id, webhookQueue.endpoint_id))
    .where(and(eq(webhookEndpoints.status, "enabled"), lte(webhookQueue.due_at, at))),
)
const allTransactions = query((db) => db.select().from(transactions))

function clientOf(chain: SimulatedChain) {
  const request = ({ method, params }: { method: string; params?: readonly unknown[] }) =>
    answerRpc(chain, wholeView(chain), method, params ?? [])
  return createPublicClient({
    chain: foundry,
    transport: custom({ request }, { retryCount: 0 }),
    cacheTime: 0,
  })
}

function valuesIn({ collections, secrets }: Asking): string[] {
  const pairs = collections.flatMap(({ paired }) => paired)
  const ids = collections.flatMap(({ id, claims, replacements }) => [
    id,
    ...[...claims, ...replacements].map((each) => each.id),
  ])
  const address: Address = `0x${"ab".repeat(20)}`
  // Values of chips, but no credentials.
  const values = secrets.filter((secret) => /^[0-9A-F]+$/.test(secret))
  return [...ids, ...pairs.flatMap(({ unit_id, chip_id }) => [unit_id, chip_id]), ...values, address]
}

function countsOf({ collections }: Asking, { exchanges }: Clients): string {
  const sum = (of: (played: Asking["collections"][number]) => unknown[]) =>
    collections.reduce((total, played) => total + of(played).length, 0)
  const numbers = {
    collections: collections.length,
    "units paired": sum(({ paired }) => paired),
    claims: sum(({ claims }) => claims),
    transfers: sum(({ transfers }) => transfers),
    "chip replacements": sum(({ replacements }) => replacements),
    requests: exchanges.length,
  }
  return Object.entries(numbers)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ")
}

async function digestOf({ read }: Database, chain: SimulatedChain, seen: bigint): Promise<string> {
  const rows = []
  for (const table of [actorEvents, actors, effects, transactions, transactionAttempts])
    rows.push(await read.select().from(table))
  const blocks = chain.blocks.map(({ hash, receipts }) => [
    hash,
    receipts.map(({ gas_used }) => String(gas_used)),
  ])
  return new Bun.CryptoHasher("sha256").update(JSON.stringify([rows, blocks, String(seen)])).digest("hex")
}
