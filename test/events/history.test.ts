import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { exampleOf } from "../../src/api/docs/event-types.ts"
import { chipReplacements, chips, claims, collections, taps, transfers, units } from "../../src/db/schema.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import { type EventType, eventTypes } from "../../src/engine/events/types.ts"
import { ApiError } from "../../src/platform/errors.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { ask, type Customer, createCustomer, type HttpService, startService } from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { alice, bob, claim, openEffect, replaceChip, sessionOf, transfer } from "../harness/ownership.ts"
import { seedOf } from "../harness/seed.ts"
import { activeCollection, newUnit, pair, settle } from "../harness/services.ts"

// Random histories, several steps at a time: replaying the feed yields the state of the resources, and each change of a
// status was reported once. HISTORY_SEED repeats a run.

const seed = seedOf("HISTORY_SEED")
const histories = 3
const rounds = 30
const atATime = 4

type Told = {
  id: string
  type: EventType
  unit_id: string | null
  is_test: boolean
  data: Record<string, unknown>
}
type Random = () => number

describe.each(engines)("on $name", (engine) => {
  let service: HttpService
  beforeAll(async () => {
    service = await startService(engine)
  }, 60_000)
  afterAll(() => service.close())

  test.each(Array.from({ length: histories }, (_, index) => seed + index))(
    "replaying the feed of a random history yields the state of the resources (seed %d)",
    async (seed) => {
      const random = randomOf(seed)
      const customer = await createCustomer(service)
      await usualHistory(customer)
      for (let round = 0; round < rounds; round++) {
        const steps = Array.from({ length: atATime }, () => oneStep(customer, random))
        for (const { reason } of (await Promise.allSettled(steps)).filter(
          (each) => each.status === "rejected",
        ))
          if (!(reason instanceof ApiError)) throw reason
        service.advance(1 + Math.floor(random() * 5))
      }
      const told = await readFeed(customer)
      for (const event of told) {
        met.set(event.type, event)
        outcomes.add(outcomeOf(event))
      }
      expect(replayed(told)).toEqual(await standing(customer))
      expect(countTypes(told)).toEqual(await countChanges(customer, told))
    },
    60_000,
  )

  test("the histories produced every event type about resources", () => {
    const ofResources = eventTypes.filter((type) => !type.startsWith("webhook_endpoint."))
    // Failures are left to chance, and these chips have no tamper detection.
    const certain = ofResources.filter((type) => !type.endsWith(".failed") && type !== "chip.tampered")
    expect(certain.filter((type) => !met.has(type))).toEqual([])
  })
  test("the documentation's example events have the same is_test and data fields as real ones", () => {
    const formOf = ({ is_test, data }: Pick<Told, "is_test" | "data">) => [is_test, Object.keys(data).sort()]
    for (const [type, event] of met)
      expect([type, ...formOf(exampleOf(type) as Told)]).toEqual([type, ...formOf(event)])
  })
  test("the documentation's example events have outcomes that real ones have", () => {
    for (const type of met.keys()) expect([...outcomes]).toContain(outcomeOf(exampleOf(type) as Told))
  })
  const met = new Map<EventType, Told>()
  const outcomes = new Set<string>()

  const ownershipOf = ({ caller }: Customer) => {
    const { context, behind, chain } = service
    return { ...behind, context, caller, says: chain, read: () => context.db.read }
  }

  /** What random steps seldom reach: units that were handed on, and every end of a lifecycle. */
  async function usualHistory(customer: Customer): Promise<void> {
    const { behind } = service
    const { caller } = customer
    const ownership = ownershipOf(customer)
    const output = { transaction_hash: `0x${"ab".repeat(32)}` }
    const collection = await activeCollection(behind, caller)
    const [first, second, third] = await Promise.all(
      [0, 1, 2].map(async () => {
        const { id } = await newUnit(behind, caller, collection)
        const { chip_id } = await pair(behind, caller, { unit_id: id, is_test: true })
        await settle(behind, id, { ...output, serial: ++serials })
        return { id, session: sessionOf(caller, chip_id, id) }
      }),
    )
    if (!first || !second || !third) throw new Error("three units were made")
    service.chain.owner = null
    const relayed = await claim(ownership, first.session, first.id, { recipient: alice })
    await settle(behind, relayed.id, output)
    const sent = { recipient: alice, execution: "client_broadcast" as const }
    const unsent = await claim(ownership, second.session, second.id, sent)
    await settle(behind, unsent.id, { ...output, outcome: "expired" })
    const replaced = await replaceChip(ownership, third.id, { is_test: true })
    await settle(behind, replaced.id, output)
    service.chain.owner = alice
    for (const outcome of ["expired", "used"]) {
      const { id } = await transfer(ownership, first.session, first.id, { recipient: bob })
      await settle(behind, id, { ...output, outcome })
    }
  }

  /** One random action on whatever exists; many are rejected. */
  async function oneStep(customer: Customer, random: Random): Promise<void> {
    const { behind } = service
    const { caller } = customer
    const owned = await rowsOf(customer)
    const unit = pick(owned.units, random)
    const tapped = pick(
      owned.chips.filter(({ unit_id }) => unit_id !== null),
      random,
    )
    const behindAll = ownershipOf(customer)
    const step = random()
    if (step < 0.06 || owned.collections.length === 0)
      return void (await behind.turn((turn) =>
        createCollection(turn, service.context.chains, caller, { name: "Random" }),
      ))
    const collection = pick(owned.collections, random)
    if (collection && (step < 0.18 || !unit)) return void (await newUnit(behind, caller, collection))
    if (unit && step < 0.3) return void (await pair(behind, caller, { unit_id: unit.id, is_test: true }))
    if (step < 0.6) return await settleSomething(owned, random)
    if (!tapped?.unit_id) return
    const { chip_id, unit_id: id } = tapped
    const session = sessionOf(caller, chip_id, id)
    const owner = owned.claims.some((each) => each.unit_id === id && each.status === "claimed") ? alice : null
    service.chain.owner = owner
    if (step < 0.72)
      await behind.turn(async (turn) => {
        const { e } = await createTestTap(turn, behind.secret, caller, { chip_id })
        await createTap(turn, behind.secret, caller, { chip_id, e })
      })
    else if (step < 0.86)
      await claim(behindAll, session, id, {
        recipient: alice,
        execution: random() < 0.5 ? "service_relay" : "client_broadcast",
      })
    else if (step < 0.94) await transfer(behindAll, session, id, { recipient: bob })
    else await replaceChip(behindAll, id, { is_test: true })
  }

  /** Settles something open with a result of the chain or of its watch. */
  async function settleSomething(owned: Rows, random: Random): Promise<void> {
    const { collections, units, claims, transfers, replacements } = owned
    const open = [
      ...collections.filter(({ status }) => status === "deploying"),
      ...units.filter(({ token_status }) => token_status === "pending"),
      ...claims.filter(({ status }) => status === "claiming"),
      ...transfers.filter(({ status }) => status === "prepared"),
      ...replacements.filter(({ status }) => status === "prepared" || status === "submitted"),
    ]
    const actor = pick(open, random)
    const effect = actor && (await openEffect(service.behind, actor.id))
    if (!effect) return
    const isWatched = effect.src === "watchAuthorization"
    const fails = random() < 0.2 && effect.src !== "issueUnits"
    const outcome = pick(["used", "expired"], random)
    const result = fails
      ? { error: { code: "internal.error", message: "It ended in an unexpected way." } }
      : {
          output: {
            transaction_hash: `0x${"ab".repeat(32)}`,
            serial: ++serials,
            ...(isWatched && { outcome }),
          },
        }
    await service.behind.turn((turn) => settleEffect(turn, effect.id, result))
  }
  let serials = 0

  async function rowsOf({ caller }: Customer) {
    const { organization_id } = caller
    const { read } = service.context.db
    return {
      collections: await read
        .select()
        .from(collections)
        .where(eq(collections.organization_id, organization_id)),
      units: await read.select().from(units).where(eq(units.organization_id, organization_id)),
      chips: await read.select().from(chips).where(eq(chips.organization_id, organization_id)),
      taps: await read.select().from(taps).where(eq(taps.organization_id, organization_id)),
      claims: await read.select().from(claims).where(eq(claims.organization_id, organization_id)),
      transfers: await read.select().from(transfers).where(eq(transfers.organization_id, organization_id)),
      replacements: await read
        .select()
        .from(chipReplacements)
        .where(eq(chipReplacements.organization_id, organization_id)),
    }
  }
  type Rows = Awaited<ReturnType<typeof rowsOf>>

  async function readFeed(customer: Customer): Promise<Told[]> {
    const all: Told[] = []
    for (;;) {
      const after = all.at(-1)?.id ?? "0"
      const { body } = await ask(service, `GET /v1/events?after=${after}&limit=100`, { as: customer.key })
      const page = body.events as Told[]
      all.push(...page)
      if (page.length < 100) return all
    }
  }

  /** Reads what each resource's GET shows now. */
  async function standing(customer: Customer): Promise<State> {
    const get = async (path: string) => (await ask(service, `GET ${path}`, { as: customer.key })).body
    const rows = await rowsOf(customer)
    const state: State = {}
    for (const { id, status } of rows.collections)
      if (status !== "deploying") state[`collection ${id}`] = await get(`/v1/collections/${id}`)
    for (const { id } of rows.units) state[`unit ${id}`] = await get(`/v1/units/${id}`)
    for (const { id, unit_id } of rows.claims)
      state[`claim ${id}`] = await get(`/v1/units/${unit_id}/claims/${id}`)
    for (const { id, unit_id } of rows.transfers)
      state[`transfer ${id}`] = await get(`/v1/units/${unit_id}/transfers/${id}`)
    for (const { id, unit_id, status } of rows.replacements)
      if (status !== "submitted")
        state[`chip_replacement ${id}`] = await get(`/v1/units/${unit_id}/chip-replacements/${id}`)
    const { taps: listed } = (await get("/v1/taps?is_test=true&limit=100")) as { taps: { id: string }[] }
    for (const tap of listed) state[`tap ${tap.id}`] = tap
    return state
  }

  /**
   * Counts how often each change was made according to the rows, and the changes of owner that claims imply.
   */
  async function countChanges(customer: Customer, told: Told[]): Promise<Record<string, number>> {
    const rows = await rowsOf(customer)
    const changes = [
      ...rows.collections
        .filter(({ status }) => status !== "deploying")
        .map(({ status }) => `collection.${status}`),
      ...rows.units.map(() => "unit.created"),
      ...rows.units.filter(({ token_status }) => token_status === "active").map(() => "unit.issued"),
      // Chips from a replacement have no pairing event of their own.
      ...rows.chips.filter(({ unit_id }) => unit_id !== null).map(() => "chip.paired"),
      ...rows.taps.map(() => "tap.recorded"),
      ...rows.claims.flatMap((each) => begunAndEnded("claim", "claiming", each)),
      ...rows.transfers.flatMap((each) => begunAndEnded("transfer", "prepared", each)),
      ...rows.replacements.flatMap((each) => begunAndEnded("chip_replacement", "prepared", each)),
    ]
    return countOf([...changes, ...changesOfOwners(told)])
  }
})

type State = Record<string, Record<string, unknown>>
type Unit = { chip_id: string; collection: { id: string; contract: unknown } | null }

/** The state known to a reader of the feed: the last event about each resource. */
function replayed(told: Told[]): State {
  const state: State = {}
  const contracts = new Map<string, unknown>()
  for (const { type, unit_id, data } of told) {
    const [thing] = type.split(".")
    const unit = state[`unit ${unit_id}`] as Unit | undefined
    if (thing === "chip") Object.assign(unit ?? {}, { chip_id: data.chip_id })
    else if (thing === "ownership") state[`unit ${unit_id}`] = data
    else state[`${thing} ${data.id}`] = data
    if (type === "chip_replacement.confirmed") Object.assign(unit ?? {}, { chip_id: data.chip_id })
    // A unit shows its collection's contract, and one created meanwhile may still show it as it was before.
    if (thing === "collection") contracts.set(String(data.id), data.contract)
    for (const { collection } of Object.values(state) as Unit[])
      if (collection && contracts.has(collection.id)) collection.contract = contracts.get(collection.id)
  }
  return state
}

/**
 * A unit changes its owner with the claim that takes it out of custody. With a transfer it does so in the block that
 * is read, and no blocks are read here.
 */
function changesOfOwners(told: Told[]): string[] {
  const claimed = told.filter(({ type }) => type === "claim.claimed").map(({ unit_id }) => unit_id)
  return [...new Set(claimed)].map(() => "ownership.changed")
}

function begunAndEnded(thing: string, first: string, { status }: { status: string }): string[] {
  return [`${thing}.created`, ...(status === first ? [] : [`${thing}.${status}`])]
}

function countTypes(told: Told[]): Record<string, number> {
  return countOf(told.map(({ type }) => type))
}

function countOf(words: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words.sort()) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

function pick<T>(some: T[], random: Random): T | undefined {
  return some[Math.floor(random() * some.length)]
}

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What an event says of how its resource fares, as far as its type settles that. */
function outcomeOf({ type, data }: Pick<Told, "type" | "data">): string {
  const { status, failure, execution, ownership } = data as {
    status?: string
    failure?: object | null
    execution?: string
    ownership?: { status: string }
  }
  const sentBy = status === "expired" ? execution : undefined
  return JSON.stringify({ type, sentBy, held: ownership?.status, hasFailed: Boolean(failure) })
}
