import { and, eq } from "drizzle-orm"
import { type Address, isAddressEqual } from "viem"
import { actors, chipReplacements, chips, claims, transfers, units } from "../../src/db/schema.ts"
import { eventsOf, type Judged } from "../faults/judge.ts"
import type { Asking, CollectionPlayed } from "./asking.ts"
import type { Fault } from "./faults.ts"
import type { Restoration } from "./restoration.ts"

type Remains = Judged & {
  asking: Asking
  faults: readonly Fault[]
  restoration: Restoration | null
  log: readonly string[]
}

/**
 * Reports what contradicts the chain in statements about owners, and claims and transfers that failed without cause.
 */
export async function findFaultsInOwners(remains: Remains): Promise<string[]> {
  const found: string[] = []
  for (const played of remains.asking.collections) {
    const tokens = await readTokens(remains, played)
    found.push(
      ...(await ownersNotAsOnChain(remains, played, tokens)),
      ...(await transfersNotMade(remains, played, tokens)),
      ...(await lockedToOthers(remains, played, tokens)),
    )
  }
  return [...found, ...(await failedWithoutCause(remains))]
}

/**
 * The successes that the chain has, or should have: all but those whose unit a reorganization gave to somebody else.
 */
export async function kept<T extends { unit_id: string; recipient: Address }>(
  remains: Remains,
  played: CollectionPlayed,
  ended: T[],
): Promise<T[]> {
  if (!remains.faults.some(({ kind }) => kind === "reorganize")) return ended
  const tokens = await readTokens(remains, played)
  const serials = await serialsOf(remains)
  return ended.filter(({ unit_id, recipient }) => {
    const moves = tokens.get(serials.get(unit_id) ?? 0)?.moves ?? []
    const others = played.claims.filter((claim) => claim.unit_id === unit_id && claim.recipient !== recipient)
    const [first] = moves
    return !first || !others.some((other) => isAddressEqual(other.recipient, first.to))
  })
}

/** What an operator was told that a reorganization undid permanently, by actor ID. */
export function lostForGood({ log }: { log: readonly string[] }): Set<string> {
  const told = log.filter((line) => line.includes("was reported as done, but"))
  return new Set(told.flatMap((line) => line.match(/"actor_ids":\[([^\]]*)\]/)?.[1]?.match(/[\w-]+/g) ?? []))
}

/** The history of each serial on the chain. */
export type Token = { chip: string; owner: Address; moves: Move[]; is_swapped: boolean }

type Move = { from: Address; to: Address }

/** By serial. */
export async function readTokens(
  { anvil }: Pick<Judged, "anvil">,
  collection: CollectionPlayed,
): Promise<Map<number, Token>> {
  const tokens = new Map<number, Token>()
  const set = (serial: bigint, change: (before: Token) => Partial<Token>) => {
    const none = { chip: "", owner: collection.address as Address, moves: [], is_swapped: false }
    const before = tokens.get(Number(serial)) ?? none
    tokens.set(Number(serial), { ...before, ...change(before) })
  }
  for (const { eventName, args } of await eventsOf({ anvil }, { collection })) {
    if (eventName === "Issued") {
      const given = (args.chips.slice(2).match(/.{10}/g) ?? []).map((chip) => chip.toUpperCase())
      for (const [index, chip] of given.entries()) set(args.first + BigInt(index), () => ({ chip }))
    }
    if (eventName === "ChipReplaced") {
      const chip = args.chip.toString(16).padStart(10, "0").toUpperCase()
      set(args.serial, () => ({ chip, is_swapped: true }))
    }
    if (eventName === "Transfer" && BigInt(args.from) !== 0n)
      set(args.tokenId, ({ moves }) => ({ owner: args.to, moves: [...moves, args] }))
  }
  return tokens
}

async function ownersNotAsOnChain(
  { world }: Remains,
  { id, address }: CollectionPlayed,
  tokens: ReadonlyMap<number, Token>,
): Promise<string[]> {
  const rows = await world.context.db.read.select().from(units).where(eq(units.collection_id, id))
  return rows.flatMap((unit) => {
    const token = tokens.get(unit.serial ?? 0)
    if (!token) return []
    const owner = isAddressEqual(token.owner, address as Address) ? null : token.owner
    if (unit.claimed === (owner !== null) && (unit.owner ?? "") === (owner ?? "")) return []
    const here = `to ${unit.owner} here, claimed: ${unit.claimed}`
    return [`serial ${unit.serial} belongs to ${owner} on chain and ${here}`]
  })
}

/**
 * Claims by the service itself lock in the chip that it knows, even if a restore has lost another one; unless a
 * reorganization undid them for good.
 */
async function lockedToOthers(
  { world, log }: Remains,
  { id }: CollectionPlayed,
  tokens: ReadonlyMap<number, Token>,
): Promise<string[]> {
  const rows = await world.context.db.read
    .select({ id: claims.id, serial: units.serial, chip_id: chips.chip_id })
    .from(units)
    .innerJoin(chips, eq(chips.unit_id, units.id))
    .innerJoin(claims, eq(claims.unit_id, units.id))
    .where(
      and(eq(units.collection_id, id), eq(claims.status, "claimed"), eq(claims.execution, "service_relay")),
    )
  const lost = lostForGood({ log })
  return rows.flatMap(({ id, serial, chip_id }) => {
    const token = tokens.get(serial ?? 0)
    if (lost.has(id) || !token || token.moves.length === 0 || token.chip === chip_id) return []
    return [`serial ${serial} was claimed here for chip ${chip_id} and is locked to ${token.chip}`]
  })
}

async function transfersNotMade(
  remains: Remains,
  played: CollectionPlayed,
  tokens: ReadonlyMap<number, Token>,
): Promise<string[]> {
  if (remains.faults.some(({ kind }) => kind === "reorganize")) return []
  const rows = await remains.world.context.db.read.select().from(transfers)
  const serials = await serialsOf(remains)
  return played.transfers.flatMap(({ id, unit_id, recipient }) => {
    if (rows.find((row) => row.id === id)?.status !== "confirmed") return []
    const moves = tokens.get(serials.get(unit_id) ?? 0)?.moves ?? []
    const isMade = moves.some(({ to }) => isAddressEqual(to, recipient))
    return isMade ? [] : [`transfer ${id} is confirmed and ${recipient} never had the unit`]
  })
}

/** A failed claim or transfer requires somebody on the chain who was quicker. */
async function failedWithoutCause(remains: Remains): Promise<string[]> {
  const { read } = remains.world.context.db
  const found: string[] = []
  for (const actor of await read.select().from(actors)) {
    const [state = ""] = actor.state.split(".")
    if (!["failed", "expired"].includes(state) || actor.machine === "session-token") continue
    if (await (state === "failed" ? hasCause : isStranded)(remains, actor)) continue
    found.push(`${actor.machine} ${actor.id} is ${state} and nothing on chain stands against it`)
  }
  return found
}

/** Every authorization is used in time or superseded, unless a reorganization undid its prerequisite. */
async function isStranded(remains: Remains, { id }: { id: string }): Promise<boolean> {
  const { read } = remains.world.context.db
  const [claim] = await read.select().from(claims).where(eq(claims.id, id))
  const [transfer] = await read.select().from(transfers).where(eq(transfers.id, id))
  const row = claim ?? transfer
  if (!row || !wasOutdone(remains, row)) return false
  const { moves } = await tokenOf(remains, row.unit_id)
  return !isIn(moves, row)
}

async function hasCause(
  remains: Remains,
  { id, machine }: { id: string; machine: string },
): Promise<boolean> {
  const { read } = remains.world.context.db
  if (machine === "chip-replacement") {
    const [row] = await read.select().from(chipReplacements).where(eq(chipReplacements.id, id))
    if (!row) return false
    // After a restore the chain may have a later replacement that nobody knows any more.
    if (remains.restoration !== null || (await tokenOf(remains, row.unit_id)).moves.length > 0) return true
    return wereToldBlocksReplaced(remains) && (await wasClaimed(remains, row))
  }
  if (machine === "claim") {
    const [row] = await read.select().from(claims).where(eq(claims.id, id))
    if (!row) return false
    if (wasOutdone(remains, row)) return true
    const { moves, is_swapped } = await tokenOf(remains, row.unit_id)
    // After a restore the chain may have a replacement that nobody knows any more.
    const isSuperseded = is_swapped && (row.execution === "client_broadcast" || remains.restoration !== null)
    return (moves.length > 0 || isSuperseded) && !isIn(moves, row)
  }
  if (machine !== "transfer") return false
  const [row] = await read.select().from(transfers).where(eq(transfers.id, id))
  if (!row) return false
  if (wasOutdone(remains, row)) return true
  const { moves } = await tokenOf(remains, row.unit_id)
  return moves.some(({ from }) => isAddressEqual(from, row.sender as Address)) && !isIn(moves, row)
}

/**
 * Whether somebody else was quicker in blocks that were replaced later, although they were deep enough to be reported.
 */
function wasOutdone(remains: Remains, { id, unit_id }: { id: string; unit_id: string }) {
  const others = remains.asking.collections
    .flatMap(({ claims, transfers, replacements, moves }) => [
      ...[...claims, ...transfers, ...replacements].filter((other) => other.id !== id),
      ...moves,
    ])
    .filter((other) => other.unit_id === unit_id)
  return others.length > 0 && wereToldBlocksReplaced(remains)
}

/** Whether a claim was reported that a reorganization has since undone. */
async function wasClaimed({ world }: Remains, { unit_id }: { unit_id: string }): Promise<boolean> {
  const isIts = and(eq(claims.unit_id, unit_id), eq(claims.status, "claimed"))
  return (await world.context.db.read.select().from(claims).where(isIts)).length > 0
}

function wereToldBlocksReplaced({ faults, world }: Remains): boolean {
  const depth = world.context.config.chains[0]?.confirmation_depth ?? 0
  return faults.some((fault) => fault.kind === "reorganize" && fault.depth >= depth)
}

function isIn(moves: readonly Move[], { recipient }: { recipient: string }): boolean {
  return moves.some(({ to }) => isAddressEqual(to, recipient as Address))
}

/** The token of a unit; one without a history if there is none. */
async function tokenOf(remains: Remains, unitId: string): Promise<Pick<Token, "moves" | "is_swapped">> {
  const [unit] = await remains.world.context.db.read.select().from(units).where(eq(units.id, unitId))
  const played = remains.asking.collections.find(({ id }) => id === unit?.collection_id)
  const tokens = played && (await readTokens(remains, played))
  return tokens?.get(unit?.serial ?? 0) ?? { moves: [], is_swapped: false }
}

async function serialsOf({ world }: Remains): Promise<Map<string, number>> {
  const rows = await world.context.db.read.select({ id: units.id, serial: units.serial }).from(units)
  return new Map(rows.map(({ id, serial }) => [id, serial ?? 0]))
}
