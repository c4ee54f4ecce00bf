import { and, eq, lt, ne } from "drizzle-orm"
import type { Hex } from "viem"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import {
  actorTimers,
  chipReplacements,
  claims,
  collections,
  effects,
  lanes,
  transactionAttempts,
  transactions,
  transfers,
  units,
} from "../../src/db/schema.ts"
import { useUpNonce } from "../../src/engine/jobs/job.ts"
import { paidOverOracle } from "../faults/bounds.ts"
import { eventsOf, type Judged, judge, judgeRows, tally, type Verdict } from "../faults/judge.ts"
import { findFaultsInAnswers } from "./answers.ts"
import type { Asking, CollectionPlayed } from "./asking.ts"
import { tip as advisedTip } from "./chain/json-rpc.ts"
import type { Clients } from "./clients.ts"
import { type Fault, isOfAnotherFork } from "./faults.ts"
import { maxFeePerGasGwei } from "./ground.ts"
import { findFaultsInEvents } from "./judge-events.ts"
import { findFaultsInOwners, kept, lostForGood } from "./judge-owners.ts"
import { findFaultsAfterRestoring } from "./judge-restored.ts"
import type { Operator } from "./operator.ts"
import type { Receiver } from "./receiver.ts"
import { isForgotten, type Restoration } from "./restoration.ts"
import { writers } from "./writers.ts"

/** What a history left behind. */
type Remains = Judged & {
  faults: readonly Fault[]
  asking: Asking
  clients: Clients
  operator: Operator
  receiver: Receiver
  log: string[]
  foreign: `0x${string}`[]
  /** When each block was made, in milliseconds since the beginning. */
  made: { number: number; at: number }[]
  ended_at: Date
  /** The restored back-up; null if there was none. */
  restoration: Restoration | null
  /** Why the history did not end; null if it did. */
  failure: string | null
}

/** Reports everything that is wrong, in sentences. */
export async function findFaults(remains: Remains): Promise<string[]> {
  const { failure, operator } = remains
  if (failure !== null) return [failure, ...(await whatWaits(remains)), ...operator.halts]
  const found = [
    ...(await findFaultsOnChain(remains)),
    ...(await findFaultsInOwners(remains)),
    ...(await haltedWithoutCause(remains)),
    ...(await toldTooEarly(remains)),
    ...contradictions(remains),
    ...(await twoWriters(remains)),
    ...(await dearAttempts(remains)),
    ...(await paidOverOracle(remains.anvil.client, remains.world.context.db.read, advisedTip)),
    ...(await timersOverdue(remains)),
    ...(await findFaultsInEvents(remains.world.context.db.read, remains)),
    ...leakedSecrets(remains),
    ...operator.broken,
    ...remains.asking.breaches,
  ]
  return [...new Set(found)]
}

/** Reports what the fault matrix checks as well, collection by collection. */
async function findFaultsOnChain(remains: Remains): Promise<string[]> {
  const found: string[] = []
  for (const played of remains.asking.collections) {
    const verdict = await judgeCollection(remains, played)
    found.push(...verdict.faults)
    if (verdict.duplicates > 0) found.push(`${verdict.duplicates} effects happened twice on chain`)
    if (verdict.missing > 0) found.push(`${verdict.missing} effects that were told are not on chain`)
  }
  return found
}

async function judgeCollection(remains: Remains, played: CollectionPlayed): Promise<Verdict> {
  const { restoration, foreign } = remains
  const lost = lostForGood(remains)
  const isThere = ({ id }: { id: string }) => !lost.has(id)
  const claimed = await ended(remains, played.claims, claims, "claimed")
  const replaced = await ended(remains, played.replacements, chipReplacements, "confirmed")
  const known = {
    collection: { address: played.address },
    paired: restoration ? [] : await inOrderOfRequests(remains, played),
    claims: await kept(remains, played, claimed.filter(isThere)),
    replacements: lastOfEach(replaced).filter(isThere),
    refreshes: await refreshesOf(remains, played),
  }
  if (!restoration) {
    const verdict = await judge(remains, known, foreign)
    return { ...verdict, duplicates: verdict.duplicates - (await announcedInVain(remains, known)) }
  }
  const faults = [
    ...(await findFaultsAfterRestoring(remains, played)),
    ...(await judgeRows(remains, known, [...foreign, ...restoration.hashes])),
  ]
  const missing = (await isKnown(remains, played)) ? (await tally(remains, known)).missing : 0
  return { faults, duplicates: 0, missing }
}

/** A collection lost in a restore is owed nothing, not even its deployment. */
async function isKnown({ world }: Remains, { id }: CollectionPlayed): Promise<boolean> {
  const rows = await world.context.db.read
    .select({ id: collections.id })
    .from(collections)
    .where(eq(collections.id, id))
  return rows.length > 0
}

/** Responses before a restore say nothing about responses after it, and vice versa. */
function contradictions({ clients, faults, asking, restoration }: Remains): string[] {
  const { exchanges } = clients
  const judged = restoration
    ? [
        exchanges.filter(({ answered_at }) => answered_at <= restoration.ended_at),
        exchanges.filter((exchange) => !isForgotten(restoration, exchange)),
      ]
    : [exchanges]
  return judged.flatMap((told) => findFaultsInAnswers(told, faults, asking.strangers))
}

/**
 * Announcements that were repeated because a reorganization brought older bytes back next to new ones. Nobody rejects
 * them, and they do no harm.
 */
async function announcedInVain(
  remains: Remains,
  known: { collection: { address: string }; refreshes: unknown[] },
): Promise<number> {
  const { faults, world } = remains
  if (!faults.some(({ kind }) => kind === "reorganize")) return 0
  const sent = await world.context.db.read
    .select({ id: transactions.id })
    .from(transactions)
    .where(and(eq(transactions.kind, "refreshMetadata"), eq(transactions.to, known.collection.address)))
  const announced = (await eventsOf(remains, known)).filter(
    ({ eventName }) => eventName === "ContractURIUpdated",
  )
  return Math.max(Math.min(announced.length, sent.length) - known.refreshes.length, 0)
}

/** If the API's clocks differed, the order is the one that was chosen. */
async function inOrderOfRequests({ faults, world }: Remains, { paired }: CollectionPlayed) {
  if (!faults.some((fault) => fault.kind === "clock" && fault.process.startsWith("api"))) return paired
  const rows = await world.context.db.read.select({ id: units.id, serial: units.serial }).from(units)
  const serials = new Map(rows.map(({ id, serial }) => [id, serial ?? 0]))
  const serialOf = ({ unit_id }: { unit_id: string }) => serials.get(unit_id) ?? 0
  return [...paired].sort((one, other) => serialOf(one) - serialOf(other))
}

/** The requests that ended successfully. */
async function ended<T extends { id: string }>(
  { world }: Remains,
  asked: T[],
  table: typeof claims | typeof chipReplacements,
  status: string,
): Promise<T[]> {
  const rows = await world.context.db.read.select({ id: table.id, status: table.status }).from(table)
  return asked.filter(({ id }) => rows.some((row) => row.id === id && row.status === status))
}

/** All that were created: a client without a response requests another one, which is accepted a minute later. */
async function refreshesOf({ world }: Remains, { id }: CollectionPlayed): Promise<{ id: string }[]> {
  return await world.context.db.read
    .select({ id: metadataRefreshes.id })
    .from(metadataRefreshes)
    .where(eq(metadataRefreshes.collection_id, id))
}

/** A unit has the chip that no later one has replaced. */
function lastOfEach<T extends Swap>(replacements: T[]): T[] {
  return replacements.filter(
    ({ unit_id, chip_id }) =>
      !replacements.some((next) => next.unit_id === unit_id && next.previous_chip_id === chip_id),
  )
}

type Swap = CollectionPlayed["replacements"][number]

/**
 * A lane halts only if somebody else uses its key, if the chain is ahead of a back-up, or if a provider follows another
 * chain.
 */
async function haltedWithoutCause({ operator, faults, restoration }: Remains): Promise<string[]> {
  const mayHalt =
    restoration !== null || faults.some((fault) => fault.kind === "steal" || isOfAnotherFork(fault))
  return mayHalt ? [] : operator.halts.map((halt) => `halted without a cause: ${halt}`)
}

/** Success is reported at the confirmation depth; if no block was replaced, the times of blocks show this. */
async function toldTooEarly({
  world,
  anvil,
  clients,
  faults,
  made,
  restoration,
}: Remains): Promise<string[]> {
  if (faults.some(({ kind }) => kind === "reorganize")) return []
  const { config, db } = world.context
  const { read } = db
  const least = config.chains[0]?.confirmation_depth ?? 0
  const told = new Map<string, number>()
  for (const exchange of clients.exchanges) {
    if (restoration && isForgotten(restoration, exchange)) continue
    const { body, answered_at } = exchange
    const { id, status } = (body ?? {}) as { id?: string; status?: string }
    if (!id || !["claimed", "confirmed"].includes(status ?? "")) continue
    told.set(id, Math.min(told.get(id) ?? answered_at, answered_at))
  }
  const found: string[] = []
  for (const table of [claims, transfers, chipReplacements, metadataRefreshes])
    for (const { id, hash } of await read
      .select({ id: table.id, hash: table.transaction_hash })
      .from(table)) {
      const at = told.get(id)
      if (at === undefined || hash === null) continue
      const { blockNumber } = await anvil.client.getTransactionReceipt({ hash: hash as Hex })
      const head = made.findLast((block) => block.at <= at)?.number ?? 0
      const depth = head - Number(blockNumber) + 1
      if (depth < least) found.push(`${id} was told of at a depth of ${depth}`)
    }
  return found
}

/** Only one process writes under one epoch of a lane's lease. */
async function twoWriters({ world }: Remains): Promise<string[]> {
  const names = new Map<string, string[]>()
  for (const { process, lane_id, epoch } of await world.context.db.read.selectDistinct().from(writers)) {
    const lease = `epoch ${epoch} of ${lane_id}`
    names.set(lease, [...(names.get(lease) ?? []), process])
  }
  return [...names].flatMap(([lease, processes]) =>
    processes.length > 1 ? [`${processes.join(" and ")} wrote under ${lease}`] : [],
  )
}

/** A filler or cancellation may cost up to twice what the chain's configuration allows. */
async function dearAttempts({ world }: Remains): Promise<string[]> {
  const cap = BigInt(maxFeePerGasGwei) * 10n ** 9n
  const { hash, is_cancel, max_fee_per_gas } = transactionAttempts
  const attempts = await world.context.db.read
    .select({ hash, is_cancel, max_fee_per_gas, kind: transactions.kind })
    .from(transactionAttempts)
    .innerJoin(transactions, eq(transactions.id, transactionAttempts.transaction_id))
  return attempts.flatMap((attempt) => {
    const onlyUsesUp = attempt.is_cancel || attempt.kind === useUpNonce
    return BigInt(attempt.max_fee_per_gas) > (onlyUsesUp ? 2n * cap : cap)
      ? [`${attempt.hash} costs ${attempt.max_fee_per_gas} wei per gas`]
      : []
  })
}

/** A timer that is due fires, even if nobody reads its actor. */
async function timersOverdue({ world, ended_at }: Remains): Promise<string[]> {
  const before = new Date(ended_at.getTime() - sweepMilliseconds)
  const overdue = await world.context.db.read
    .select({ actor_id: actorTimers.actor_id })
    .from(actorTimers)
    .where(lt(actorTimers.due_at, before))
  return overdue.map(({ actor_id }) => `a timer of actor ${actor_id} is due and not fired`)
}

const sweepMilliseconds = 20_000

function leakedSecrets({ asking, log }: Remains): string[] {
  const secrets = asking.secrets.filter((secret) => secret.length >= 16)
  return log.flatMap((line) =>
    secrets.some((secret) => line.includes(secret)) ? [`a log line has a secret: ${line.slice(0, 120)}`] : [],
  )
}

/** What keeps a history from ending. */
async function whatWaits({ world }: Remains): Promise<string[]> {
  const { read } = world.context.db
  const open = await read.select().from(effects).where(eq(effects.status, "open")).limit(5)
  const onTheirWay = await read.select().from(transactions).where(ne(transactions.status, "final")).limit(8)
  return [
    ...open.map(
      ({ src, queue, attempts, last_error }) => `${src} waits in ${queue} after ${attempts}: ${last_error}`,
    ),
    ...onTheirWay.map(
      ({ kind, nonce, status, block_number }) =>
        `${kind} with nonce ${nonce} is ${status} in ${block_number}`,
    ),
    ...(await read.select().from(lanes)).map(({ id, status, reason }) => `${id} is ${status}: ${reason}`),
  ]
}
