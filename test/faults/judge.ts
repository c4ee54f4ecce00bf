import { asc, eq } from "drizzle-orm"
import { type Address, type Hex, isAddressEqual, parseEventLogs } from "viem"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import {
  actorEvents,
  actors,
  chipReplacements,
  chips,
  claims,
  lanes,
  type TransactionRow,
  transactionAttempts,
  transactions,
  units,
} from "../../src/db/schema.ts"
import type { MachineName } from "../../src/engine/actors/lifecycles.ts"
import { replay } from "../../src/engine/actors/runtime.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Context } from "../../src/platform/context.ts"
import type { Played } from "./play.ts"
import type { Anvil } from "./stage.ts"

/** What a judge reads. */
export type Judged = {
  anvil: {
    client: Pick<Anvil["client"], "getBlock" | "getBlockNumber" | "getLogs" | "getTransactionReceipt">
  }
  world: { context: Pick<Context, "config" | "db"> }
  unstored: Hex[]
}

/**
 * Reads only the chain and the database, and reports everything that is wrong. `foreign` are transactions that the
 * test itself sent with a signer's key.
 */
export async function judge(stage: Judged, played: Played, foreign: Hex[] = []): Promise<Verdict> {
  const faults = [...(await effectsOnChain(stage, played)), ...(await judgeRows(stage, played, foreign))]
  return { faults, ...(await tally(stage, played)) }
}

/** Reports rows that contradict the chain or each other. */
export async function judgeRows(stage: Judged, played: Played, foreign: Hex[]): Promise<string[]> {
  return [
    ...(await rowsAsOnChain(stage, played)),
    ...(await noncesAndHashes(stage, foreign)),
    ...(await journals(stage)),
    ...stage.unstored.map((hash) => `${hash} was sent before it was stored`),
  ]
}

export type Verdict = { faults: string[]; duplicates: number; missing: number }

/** The events of the collection, in the order of the canonical chain. */
export async function eventsOf(
  { anvil }: Pick<Judged, "anvil">,
  { collection }: { collection: { address: string } },
) {
  const logs = await anvil.client.getLogs({ address: collection.address as Address, fromBlock: 0n })
  return parseEventLogs({ abi: collectionAbi, logs })
}

async function issuedChips(stage: Judged, played: Played): Promise<string[]> {
  const events = await eventsOf(stage, played)
  return events.flatMap((event) =>
    event.eventName === "Issued"
      ? (event.args.chips.slice(2).match(/.{10}/g) ?? []).map((chip) => chip.toUpperCase())
      : [],
  )
}

/** Counts effects that happened more than once, and those that never did. */
export async function tally(stage: Judged, played: Played) {
  const events = await eventsOf(stage, played)
  const seen: string[] = (await issuedChips(stage, played)).map((chip) => `issued ${chip}`)
  let announced = 0
  for (const event of events) {
    if (event.eventName === "ContractURIUpdated") seen.push(`announced ${++announced}`)
    if (event.eventName === "ChipReplaced") seen.push(`replaced ${hexOf(event.args.chip)}`)
    if (event.eventName !== "Transfer" || BigInt(event.args.from) === 0n) continue
    seen.push(`claimed by ${event.args.to}`)
  }
  const wanted = [
    ...played.paired.map(({ chip_id }) => `issued ${chip_id}`),
    ...played.claims.map(({ recipient }) => `claimed by ${recipient}`),
    ...played.replacements.map(({ chip_id }) => `replaced ${chip_id}`),
    ...played.refreshes.map((_refresh, index) => `announced ${index + 1}`),
  ]
  const deployed = (await deployments(stage, played)) - 1
  return {
    duplicates:
      seen.length -
      new Set(seen).size +
      Math.max(deployed, 0) +
      Math.max(announced - played.refreshes.length, 0),
    missing: wanted.filter((effect) => !seen.includes(effect)).length + Math.max(-deployed, 0),
  }
}

async function deployments({ anvil, world }: Judged, { collection }: Played): Promise<number> {
  const address = world.context.config.chains[0]?.factory_address as Address
  const logs = await anvil.client.getLogs({ address, fromBlock: 0n })
  return parseEventLogs({ abi: factoryAbi, logs, eventName: "CollectionDeployed" }).filter(({ args }) =>
    isAddressEqual(args.collection, collection.address as Address),
  ).length
}

function hexOf(chip: number): string {
  return chip.toString(16).padStart(10, "0").toUpperCase()
}

async function effectsOnChain(stage: Judged, played: Played): Promise<string[]> {
  const events = await eventsOf(stage, played)
  const serials = events.flatMap((event) =>
    event.eventName === "Transfer" && BigInt(event.args.from) === 0n ? [Number(event.args.tokenId)] : [],
  )
  const inOrder = played.paired.map((_pair, index) => index + 1)
  const wanted = played.paired.map(({ chip_id }) => chip_id)
  const issued = await issuedChips(stage, played)
  return [
    ...differences("serials on chain", serials, inOrder),
    ...differences("chips in the order of requests", issued, wanted),
  ]
}

function differences(what: string, found: unknown, wanted: unknown): string[] {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)]
  return one === other ? [] : [`${what}: ${one} instead of ${other}`]
}

async function rowsAsOnChain(stage: Judged, played: Played): Promise<string[]> {
  const { read } = stage.world.context.db
  const { client } = stage.anvil
  const faults: string[] = []
  for (const [index, { unit_id }] of played.paired.entries()) {
    const [unit] = await read.select().from(units).where(eq(units.id, unit_id))
    if (unit?.serial !== index + 1) faults.push(`unit ${index + 1} has serial ${unit?.serial}`)
  }
  const canonical = async (what: string, hash: string | null) => {
    const receipt = hash && (await client.getTransactionReceipt({ hash: hash as Hex }).catch(() => null))
    if (receipt === null || receipt === "" || receipt.status !== "success")
      faults.push(`${what} has no receipt on the chain: ${hash}`)
  }
  for (const { id } of played.claims) {
    const [claim] = await read.select().from(claims).where(eq(claims.id, id))
    if (claim?.status !== "claimed") faults.push(`claim is ${claim?.status}`)
    await canonical("the claim", claim?.transaction_hash ?? null)
  }
  for (const { id, unit_id, chip_id } of played.replacements) {
    const [replacement] = await read.select().from(chipReplacements).where(eq(chipReplacements.id, id))
    if (replacement?.status !== "confirmed") faults.push(`replacement is ${replacement?.status}`)
    await canonical("the replacement", replacement?.transaction_hash ?? null)
    const [chip] = await read.select().from(chips).where(eq(chips.chip_id, chip_id))
    if (chip?.unit_id !== unit_id) faults.push("the new chip is not the unit's")
  }
  for (const { id } of played.refreshes) {
    const [refresh] = await read.select().from(metadataRefreshes).where(eq(metadataRefreshes.id, id))
    if (refresh?.status !== "confirmed") faults.push(`refresh is ${refresh?.status}`)
    await canonical("the refresh", refresh?.transaction_hash ?? null)
  }
  for (const row of await read.select().from(transactions)) {
    if (row.hash === null) continue
    const receipt = await client.getTransactionReceipt({ hash: row.hash as Hex }).catch(() => null)
    // Without the block's hash, it is judged again until what only the state of its block shows is final.
    const isThere =
      row.block_hash === null
        ? receipt?.blockNumber === BigInt(row.block_number ?? -1)
        : receipt?.blockHash === row.block_hash
    if (!isThere)
      faults.push(`${row.kind} with nonce ${row.nonce} is ${row.status} and not where it is said to be`)
  }
  return faults
}

/** Every nonce of a signer is used by stored bytes, without a gap. */
async function noncesAndHashes(stage: Judged, foreign: Hex[]): Promise<string[]> {
  const { read } = stage.world.context.db
  const stored = new Set((await read.select().from(transactionAttempts)).map(({ hash }) => hash))
  const { client } = stage.anvil
  const faults: string[] = []
  const head = await client.getBlockNumber({ cacheTime: 0 })
  const numbers = Array.from({ length: Number(head) + 1 }, (_, number) => BigInt(number))
  const blocks = await Promise.all(
    numbers.map((blockNumber) => client.getBlock({ blockNumber, includeTransactions: true })),
  )
  const sent = blocks.flatMap((block) => block.transactions)
  for (const { address } of await read.select().from(lanes)) {
    const own = sent.filter(({ from }) => isAddressEqual(from, address as Address))
    for (const { hash } of own)
      if (!stored.has(hash) && !foreign.includes(hash))
        faults.push(`${hash} is on chain and was never stored`)
    const rows = await read.select().from(transactions)
    const known = new Set(rows.map(({ hash }) => hash))
    for (const { hash } of own)
      if (stored.has(hash) && !known.has(hash)) faults.push(`${hash} was mined after it was given up`)
    // What another sender had used the nonce for is final or gone: a reorganization may have undone that, too.
    const isOver = ({ status, hash }: TransactionRow) => status === "final" && hash === null
    const highest = rows
      .filter((row) => row.lane_id.endsWith(address) && !isOver(row))
      .reduce((most, { nonce }) => Math.max(most, nonce + 1), 0)
    if (own.length < highest) faults.push(`${address} used ${own.length} nonces of ${highest}`)
  }
  return faults
}

const arrows: Record<string, string[]> = {
  "unit-token": ["pending active"],
  "collection-contract": ["deploying active", "deploying failed", "failed deploying"],
  claim: ["claiming claimed", "claiming expired", "claiming failed"],
  transfer: ["prepared confirmed", "prepared expired", "prepared failed"],
  "chip-replacement": ["prepared submitted", "submitted confirmed", "submitted failed", "prepared failed"],
  "metadata-refresh": ["prepared submitted", "submitted confirmed", "submitted failed", "prepared failed"],
}

/** Each journal replays to the stored snapshot, and its status never moved backwards. */
async function journals(stage: Judged): Promise<string[]> {
  const { read } = stage.world.context.db
  const faults: string[] = []
  for (const actor of await read.select().from(actors)) {
    if (actor.machine === "session-token") continue
    const journal = await journalOf(read, { actor_id: actor.id })
    const events = journal.map(({ event }) => event)
    faults.push(
      ...differences(
        `the journal of ${actor.machine}`,
        sorted(replay(actor.machine as MachineName, events)),
        sorted(actor.snapshot),
      ),
    )
    for (const { from_state, to_state } of journal) {
      const [from, to] = [from_state?.split(".")[0], to_state.split(".")[0]]
      if (from === undefined || from === to) continue
      if (!arrows[actor.machine]?.includes(`${from} ${to}`)) faults.push(`${actor.machine}: ${from} to ${to}`)
    }
  }
  return faults
}

const journalOf = query((db, { actor_id }: Given<{ actor_id: string }>) =>
  db.select().from(actorEvents).where(eq(actorEvents.actor_id, actor_id)).orderBy(asc(actorEvents.number)),
)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!value || typeof value !== "object") return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]))
}
