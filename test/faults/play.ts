import { join } from "node:path"
import { and, count, eq, inArray } from "drizzle-orm"
import { type Address, type Hex, keccak256 } from "viem"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import {
  type CollectionRow,
  chipReplacements,
  claims,
  collections,
  lanes,
  transactions,
  units,
} from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { inTurn } from "../../src/platform/context.ts"
import { ApiError } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import { createChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { pairChip, pairChipsInBulk } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { createMetadataRefresh } from "../../src/resources/metadata-refreshes/service.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { watchStillness } from "./bounds.ts"
import { accountAt, type Stage, type Worker } from "./stage.ts"

/** What a run requested from the service, in order. */
export type Played = {
  collection: Pick<CollectionRow, "address">
  /** In the order in which chips were paired to them. */
  paired: { unit_id: string; chip_id: string }[]
  claims: { id: string; unit_id: string; recipient: Address }[]
  replacements: { id: string; unit_id: string; chip_id: string }[]
  refreshes: { id: string }[]
}

/** What happens around a run; each hook is called repeatedly while blocks are mined. */
export type Events = {
  /** Before each block. */
  beforeBlock?: (play: Play) => Promise<void>
}

export type Play = {
  stage: Stage
  /** What has been requested so far. */
  played: Partial<Played>
  /** Blocks mined so far. */
  blocks: number
  /** What happened during the run, for the table. */
  happened: Set<string>
  workers: Worker[]
  wallet?: { stop(): Promise<void> }
}

/** The fault that a run is about did not occur, so the run proves nothing. */
export class NothingShown extends Error {
  override name = "NothingShown"
}

const blockMilliseconds = 100
const longestBlockMilliseconds = 1_000
/** How many blocks nothing must be in flight before a run is judged. */
const quietBlocks = 4

/**
 * One run: a collection, units paired singly and in bulk, claims by relay and by the client's own wallet, a chip
 * replacement, a metadata refresh. Ends when everything is done and nothing is in flight. Throws if that takes too
 * long.
 */
export async function play(
  stage: Stage,
  workers: Worker[],
  events: Events,
  must: string[],
  patienceMilliseconds: number,
): Promise<Played & { play: Play }> {
  const current: Play = { stage, played: {}, blocks: 0, happened: new Set(), workers }
  const producer = startBlocks(current, events)
  const deadline = performance.now() + patienceMilliseconds
  const stillness = watchStillness(stage, () => must.every((event) => current.happened.has(event)))
  const until = async (what: string, isSo: () => Promise<boolean>) => {
    while (!(await isSo())) {
      producer.check()
      await stillness.look()
      if (performance.now() > deadline)
        throw new (must.includes(what) ? NothingShown : Error)(`not in time: ${what}`)
      await Bun.sleep(30)
    }
  }
  try {
    const asked = await act(current, until)
    for (const event of must) await until(event, async () => current.happened.has(event))
    let since = current.blocks
    await until("nothing is on its way any more", async () => {
      if (!(await isQuiet(stage))) since = current.blocks
      return current.blocks - since > quietBlocks
    })
    return { ...asked, play: current }
  } finally {
    await current.wallet?.stop()
    await producer.stop()
  }
}

type Until = (what: string, isSo: () => Promise<boolean>) => Promise<void>

async function act(current: Play, until: Until): Promise<Played> {
  const { stage, played } = current
  const { context } = stage.world
  const secret = context.config.service_secret
  const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
  const caller = await newCaller(turn)

  const collection = await turn((t) =>
    createCollection(t, context.chains, caller, { name: "Autumn Jackets" }),
  )
  played.collection = collection
  const made = await turn(async (t) => {
    const rows = []
    for (let index = 0; index < 6; index++)
      rows.push(await createUnit(t, caller, { collection_id: collection.id }))
    return rows.map(({ id }) => id)
  })
  await until("the collection is deployed", async () => (await statusOf(stage, collection.id)) === "active")

  const pairSingly = (unit_id: string) => turn((t) => pairChip(t, secret, caller, { unit_id, is_test: true }))
  const [one, two, three, four, five, six] = made as [string, string, string, string, string, string]
  const first = await pairSingly(one)
  const bulk = await turn((t) =>
    pairChipsInBulk(t, secret, caller, {
      chips: [two, three, four, five].map((unit_id) => ({ unit_id, is_test: true })),
    }),
  )
  const last = await pairSingly(six)
  const paired = [first, ...bulk, last].map(({ chip_id, unit }) => ({ chip_id, unit_id: unit?.id ?? "" }))
  played.paired = paired
  await until("the units are issued", () => areIssued(stage, made))

  const claimed: Played["claims"] = []
  played.claims = claimed
  const claim = async (
    unit_id: string,
    recipient: Address,
    execution: "service_relay" | "client_broadcast",
  ) => {
    const row = await claimOnce(current, until, caller, unit_id, { recipient, execution })
    claimed.push({ id: row.id, unit_id, recipient })
    return row
  }
  await claim(one, accountAt(6).address, "service_relay")
  await claim(two, accountAt(7).address, "service_relay")
  const own = await claim(three, accountAt(5).address, "client_broadcast")
  const replacement = await turn((t) =>
    createChipReplacement(t, { secret, chains: context.chains }, caller, {
      unit_id: four,
      body: { is_test: true },
    }),
  )
  const { id, chip_id } = replacement
  const replacements = [{ id, unit_id: four, chip_id }]
  played.replacements = replacements
  const refreshes = [await turn((t) => createMetadataRefresh(t, caller, collection.id))]
  played.refreshes = refreshes
  current.wallet = startWallet(stage, own.transaction as { to: Address; data: Hex })
  await until("claims, replacement and refresh have ended", () => areEnded(stage))
  return { collection, paired, claims: claimed, replacements, refreshes }
}

/** A separate organization. */
export async function newCaller(turn: <T>(work: (turn: Turn) => Promise<T>) => Promise<T>): Promise<Caller> {
  const { id } = await turn((t) =>
    createOrganization(t, { name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] }),
  )
  return { organization_id: id, kind: "api_key", credential_id: newId(), session: null }
}

/** A chain in the middle of a reorganization may not know the owner for a moment; a client retries. */
async function claimOnce(
  { stage }: Play,
  until: Until,
  caller: Caller,
  unitId: string,
  body: { recipient: Address; execution: "service_relay" | "client_broadcast" },
) {
  const { context } = stage.world
  let made: Awaited<ReturnType<typeof createClaim>> | undefined
  await until("the claim is taken", async () => {
    try {
      const prepared = await prepareClaim(context, caller, unitId, body)
      made = await inTurn(context, null, (turn) =>
        createClaim(turn, caller, { unit_id: unitId, body, prepared }),
      )
      return true
    } catch (error) {
      if (error instanceof ApiError && error.code === "claim.owner_unknown") return false
      throw error
    }
  })
  if (!made) throw new Error("no claim was made")
  return made
}

async function statusOf({ world }: Stage, collectionId: string): Promise<string | undefined> {
  const [row] = await world.context.db.read.select().from(collections).where(eq(collections.id, collectionId))
  return row?.status
}

async function areIssued({ world }: Stage, unitIds: string[]): Promise<boolean> {
  const [active] = await world.context.db.read
    .select({ units: count() })
    .from(units)
    .where(and(inArray(units.id, unitIds), eq(units.token_status, "active")))
  return Number(active?.units) === unitIds.length
}

async function areEnded({ world }: Stage): Promise<boolean> {
  const { read } = world.context.db
  const openClaims = await read.select().from(claims).where(eq(claims.status, "claiming"))
  const openReplacements = await read
    .select()
    .from(chipReplacements)
    .where(inArray(chipReplacements.status, ["prepared", "submitted"]))
  const openRefreshes = await read
    .select()
    .from(metadataRefreshes)
    .where(inArray(metadataRefreshes.status, ["prepared", "submitted"]))
  return [openClaims, openReplacements, openRefreshes].every((open) => open.length === 0)
}

/** Returns whether nothing is waiting, and everything is where the database says it is. */
async function isQuiet({ world, anvil }: Stage): Promise<boolean> {
  const { read } = world.context.db
  for (const { status, block_number, block_hash } of await read.select().from(transactions)) {
    if (status === "final" && block_hash === null) continue
    if (!["confirmed", "reverted", "final"].includes(status) || block_number === null) return false
    // What only the state of a block shows is done, and judged again until it is final.
    if (block_hash === null) continue
    const block = await anvil.client.getBlock({ blockNumber: BigInt(block_number) }).catch(() => null)
    if (block?.hash !== block_hash) return false
  }
  const halted = await read.select().from(lanes).where(eq(lanes.status, "halted"))
  return halted.length === 0
}

function startBlocks(current: Play, events: Events) {
  let stopped = false
  let failure: unknown
  const make = async () => {
    while (!stopped) {
      await events.beforeBlock?.(current)
      await current.stage.anvil.client.mine({ blocks: 1 })
      current.blocks += 1
      await paceOfWorkers(current.stage)
    }
  }
  const running = make().catch((error) => {
    failure = error
  })
  return {
    check() {
      if (failure) throw failure
    },
    async stop() {
      stopped = true
      await running
    },
  }
}

/**
 * Waits so that, on a busy machine, workers do not begin a round to find that dozens of blocks have passed; a dead
 * worker is waited for only for a while.
 */
async function paceOfWorkers({ proxies }: Stage): Promise<void> {
  const looks = () => proxies.reduce((sum, proxy) => sum + proxy.looks, 0)
  const before = looks()
  const deadline = performance.now() + longestBlockMilliseconds
  await Bun.sleep(blockMilliseconds)
  while (looks() === before && performance.now() < deadline) await Bun.sleep(20)
}

/**
 * The recipient's own wallet, which sends its claim again while a reorganization has undone it, and signs anew if it
 * was mined before the unit's token or the contract was back: then it succeeds without effect.
 */
function startWallet({ anvil: { client } }: Stage, { to, data }: { to: Address; data: Hex }) {
  let stopped = false
  let last: { nonce: number; raw: Hex }
  const account = accountAt(5)
  const call = { to, data, type: "eip1559", chainId: 31_337, gas: 300_000n } as const
  const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 1n }
  const sign = (nonce: number) => account.signTransaction({ ...call, ...fees, nonce })
  async function insist(nonce: number, raw: Hex): Promise<void> {
    const used = await client.getTransactionCount({ address: account.address, blockTag: "pending" })
    if (used <= nonce) await client.sendRawTransaction({ serializedTransaction: raw })
    const { logs } = await client.getTransactionReceipt({ hash: keccak256(raw) })
    if (logs.length === 0) last = { nonce: nonce + 1, raw: await sign(nonce + 1) }
  }
  async function run(): Promise<void> {
    last = { nonce: 0, raw: await sign(0) }
    while (!stopped) {
      // In the middle of a reorganization the chain may not know it.
      await insist(last.nonce, last.raw).catch(() => {})
      await Bun.sleep(50)
    }
  }
  const running = run()
  return {
    async stop() {
      stopped = true
      await running
    },
  }
}

/** Reopens a halted lane with the operator's real command. */
export async function retryLane(stage: Stage, laneId: string): Promise<void> {
  const command = [
    process.execPath,
    join(import.meta.dir, "../../src/operator.ts"),
    "retry",
    laneId,
    "--json",
  ]
  const child = Bun.spawn(command, {
    env: { ...process.env, ...stage.environment, LOG_LEVEL: "silent" },
    stdout: "pipe",
    stderr: "pipe",
  })
  if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text())
}
