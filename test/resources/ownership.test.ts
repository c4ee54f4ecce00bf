import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import fc from "fast-check"
import type { Address } from "viem"
import { units } from "../../src/db/schema.ts"
import { noteOwner } from "../../src/engine/actors/owners.ts"
import { presentUnit } from "../../src/resources/units/present.ts"
import { getUnit } from "../../src/resources/units/service.ts"
import { contractsOn, followMoves } from "../../workers/watches/follow-owners.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import {
  alice,
  bob,
  claim,
  claimedUnit,
  issuedUnit,
  type OwnershipService,
  transfer,
  unpairedUnit,
} from "../harness/ownership.ts"
import { activeCollection, chainId, newUnit, pair, settle } from "../harness/services.ts"

const carol: Address = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
const hash = `0x${"cd".repeat(32)}`

describe.each(engines)("on $name", (engine) => {
  let service: HttpService
  let customer: Customer
  let behind: OwnershipService
  beforeAll(async () => {
    service = await startService(engine)
    customer = await createCustomer(service)
    const { context, chain: says } = service
    behind = { ...service.behind, context, caller: customer.caller, says, read: () => context.db.read }
  })
  afterAll(() => service.close())

  const ownershipOf = async (id: string) =>
    presentUnit(await getUnit(behind.read(), customer.caller, id)).ownership

  /** Notes an owner as the watch does that reads it from a block. */
  const noteOwnerOf = (id: string, owner: string, block_number: number) =>
    behind.turn(async (turn) => {
      const [row] = await turn.tx.select().from(units).where(eq(units.id, id))
      return row && (await noteOwner(turn, row, { owner, block_number }))
    })

  test("a unit is unissued without a token, then in custody, and belongs to the recipient once it is claimed", async () => {
    const unpaired = await unpairedUnit(behind)
    expect(await ownershipOf(unpaired.id)).toEqual({ status: "unissued", owner: null, updated_at: null })
    const { unit } = await issuedUnit(behind)
    const updated_at = () => service.context.clock().toISOString()
    expect(await ownershipOf(unit.id)).toEqual({ status: "custody", owner: null, updated_at: updated_at() })
    service.advance(60_000)
    const claimed = await claimedUnit(behind)
    const owned = { status: "owned", owner: alice, updated_at: updated_at() } as const
    expect(await ownershipOf(claimed.unit.id)).toEqual(owned)
    behind.says.owner = null
  })

  test("ownership does not change while a claim is open, nor if one fails", async () => {
    const { unit, session } = await issuedUnit(behind)
    const body = { recipient: alice, execution: "client_broadcast" } as const
    const { id } = await claim(behind, session, unit.id, body)
    expect((await ownershipOf(unit.id)).status).toBe("custody")
    await settle(behind, id, { outcome: "expired" })
    expect((await ownershipOf(unit.id)).status).toBe("custody")
  })

  test("a unit belongs to the recipient of a transfer once its block is read, not before", async () => {
    const { unit, session } = await claimedUnit(behind)
    const { id } = await transfer(behind, session, unit.id, { recipient: bob })
    await settle(behind, id, { outcome: "used", transaction_hash: hash })
    expect((await ownershipOf(unit.id)).owner).toBe(alice)
    await noteOwnerOf(unit.id, bob, 1)
    expect((await ownershipOf(unit.id)).owner).toBe(bob)
    const { body } = await ask(service, "GET /v1/events?limit=2", { as: customer.key })
    const told = (body.events as { type: string }[]).map(({ type }) => type)
    expect(told.toSorted()).toEqual(["ownership.changed", "transfer.confirmed"])
    behind.says.owner = null
  })

  test("an owner read at an older block changes nothing", async () => {
    const { unit } = await claimedUnit(behind)
    expect([await noteOwnerOf(unit.id, bob, 20), await noteOwnerOf(unit.id, alice, 19)]).toEqual([
      true,
      false,
    ])
    expect((await ownershipOf(unit.id)).owner).toBe(bob)
    expect(await noteOwnerOf(unit.id, alice, 20)).toBe(true)
    behind.says.owner = null
  })

  test("several moves of a token in one block are told once, even if the block is read again", async () => {
    const { unit } = await claimedUnit(behind)
    const contracts = await contractsOn(behind.read(), chainId)
    const address = unit.collection?.address as Address
    const move = (from: Address, to: Address) => ({ address, serial: 1n, from, to, block_number: 30n })
    const moves = [move(alice, bob), move(bob, carol), move(carol, bob)]
    for (let time = 0; time < 2; time++) await behind.turn((turn) => followMoves(turn, contracts, moves))
    const { body } = await ask(service, "GET /v1/events?limit=100", { as: customer.key })
    const told = (body.events as { type: string; unit_id: string; data: ReturnType<typeof presentUnit> }[])
      .filter(({ type, unit_id }) => type === "ownership.changed" && unit_id === unit.id)
      .map(({ data }) => data.ownership.owner)
    // Newest first.
    expect(told).toEqual([bob, carol, bob, alice])
    behind.says.owner = null
  })

  const optional = <Value>(values: fc.Arbitrary<Value>) => fc.option(values, { nil: undefined })

  test("the list of units returns exactly those that match all filters, newest first, in pages of any size", async () => {
    const owner = await createCustomer(service)
    const all = await makeUnits(service, owner)
    const filters = fc.record({
      collection_id: optional(fc.constantFrom(...new Set(all.map(({ collection_id }) => collection_id)))),
      token_status: optional(fc.constantFrom("pending", "active")),
      ownership_status: optional(fc.constantFrom("unissued", "custody", "owned")),
      chip_id: optional(fc.constantFrom(...all.flatMap(({ chip_id }) => chip_id ?? []))),
      external_id: optional(fc.constantFrom(...all.map(({ external_id }) => external_id))),
    })
    await fc.assert(
      fc.asyncProperty(filters, fc.integer({ min: 1, max: 7 }), async (given, limit) => {
        const wanted = Object.entries(given).filter(([, value]) => value !== undefined) as [
          keyof Listed,
          string,
        ][]
        const expected = all.filter((unit) => wanted.every(([field, value]) => unit[field] === value))
        const shown: unknown[] = []
        for (let cursor = ""; ; ) {
          const query = new URLSearchParams([
            ...wanted,
            ["limit", `${limit}`],
            ...(cursor ? [["cursor", cursor]] : []),
          ] as [string, string][])
          const { body } = await ask(service, `GET /v1/units?${query}`, { as: owner.key })
          const { units, pagination } = body as {
            units: { id: string }[]
            pagination: { next_cursor: string | null }
          }
          expect(units.length).toBeLessThanOrEqual(limit)
          shown.push(...units.map(({ id }) => id))
          if (!pagination.next_cursor) break
          cursor = pagination.next_cursor
        }
        expect(shown).toEqual(expected.map(({ id }) => id).reverse())
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  test("the list of units rejects a malformed filter, and shows no other organization's units", async () => {
    for (const [field, value] of [
      ["collection_id", "none"],
      ["chip_id", "04"],
      ["token_status", "failed"],
      ["ownership_status", "Owned"],
    ] as const) {
      const { status, fields } = await ask(service, `GET /v1/units?${field}=${value}`, { as: customer.key })
      expect([status, fields]).toEqual([400, [field]])
    }
    const stranger = await createCustomer(service)
    const { unit } = await issuedUnit(behind)
    const { chip_id } = await getUnit(behind.read(), customer.caller, unit.id)
    for (const filter of [`collection_id=${unit.collection_id}`, `chip_id=${chip_id}`]) {
      const { body } = await ask(service, `GET /v1/units?${filter}`, { as: stranger.key })
      expect(body.units).toEqual([])
    }
  })

  test("a unit's history is listed newest first, each entry as its own URL returns it", async () => {
    const { token, unit_id } = await createVisitor(service, customer)
    const path = `/v1/units/${unit_id}/claims`
    const body = { recipient: alice, execution: "client_broadcast" }
    const made: Record<string, unknown>[] = []
    for (let number = 0; number < 3; number++)
      made.unshift((await ask(service, `POST ${path}`, { as: token, body })).body)
    const first = await ask(service, `GET ${path}?limit=2`, { as: token })
    expect(first.body.claims).toEqual(made.slice(0, 2))
    const { next_cursor } = first.body.pagination as { next_cursor: string }
    const rest = await ask(service, `GET ${path}?limit=2&cursor=${next_cursor}`, { as: customer.key })
    expect(rest.body).toEqual({
      claims: made.slice(2),
      pagination: { limit: 2, has_more: false, next_cursor: null },
    })
    for (const list of ["transfers", "chip-replacements"]) {
      const { body } = await ask(service, `GET /v1/units/${unit_id}/${list}`, { as: customer.key })
      expect(body[list.replace("-", "_")]).toEqual([])
    }
  })

  test("a unit's history is available to its own session and its organization's API key only", async () => {
    const { token, unit_id } = await createVisitor(service, customer)
    const other = await createVisitor(service, customer)
    const stranger = await createCustomer(service)
    const codeOf = async (list: string, as: string) =>
      (await ask(service, `GET /v1/units/${unit_id}/${list}`, { as })).code
    for (const list of ["claims", "transfers"]) {
      expect(await codeOf(list, token)).toBeNull()
      expect(await codeOf(list, other.token)).toBe("session_token.wrong_chip")
    }
    expect(await codeOf("chip-replacements", token)).toBe("auth.unauthorized")
    for (const list of ["claims", "transfers", "chip-replacements"])
      expect(await codeOf(list, stranger.key)).toBe("unit.not_found")
  })
})

describe("a unit's public fields", () => {
  let service: HttpService
  let customer: Customer
  let collection_id: string
  beforeAll(async () => {
    service = await startService()
    customer = await createCustomer(service)
    collection_id = (await activeCollection(service.behind, customer.caller)).id
  })
  afterAll(() => service.close())

  const create = (body: object) =>
    ask(service, "POST /v1/units", { as: customer.key, body: { collection_id, ...body } })

  test("are stored as given, and changed or cleared by a PATCH", async () => {
    const shown = {
      description: "Waxed cotton.\nMade in Porto.",
      image_url: "https://shop.example/jacket.png",
      metadata: { Colour: "Moss", Year: 2026, Limited: true },
    }
    const made = await create(shown)
    expect(made.body).toMatchObject(shown)
    const path = `/v1/units/${made.body.id}`
    expect((await ask(service, `GET ${path}`, { as: customer.key })).body).toMatchObject(shown)
    const body = { metadata: { Colour: "Sand" }, image_url: null }
    const changed = await ask(service, `PATCH ${path}`, { as: customer.key, body })
    expect(changed.body).toMatchObject({ ...body, description: shown.description })
    expect(changed.body.metadata).toEqual(body.metadata)
  })

  test.each([
    ["description", "x".repeat(2_001)],
    ["description", "a\u0000b"],
    ["image_url", "http://localhost/picture.png"],
    ["image_url", "data:image/svg+xml,<svg/>"],
    ["image_url", "ipfs://bafy"],
    ["metadata", { nested: {} }],
    ["metadata", { nothing: null }],
    ["metadata", { list: [1] }],
    ["metadata", { "": "nameless" }],
    ["metadata", { "a\u0007": "bell" }],
    ["metadata", Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`name ${index}`, index]))],
    ["metadata", { long: "x".repeat(8 * 1_024) }],
    ["metadata", ["list"]],
  ])("reject a %s that does not match its schema", async (field, value) => {
    const { status, fields } = await create({ [field]: value })
    expect([status, fields]).toEqual([400, [field as string]])
  })

  test.each(["\n", "\r\n", "\r", "\t"])("keep %j in a description", async (between) => {
    const description = `Waxed cotton.${between}Made in Porto.`
    expect((await create({ description })).body).toMatchObject({ description })
  })

  test("accept the maximum size", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`name ${index}`, index]))
    expect((await create({ description: "🧥".repeat(2_000), metadata })).status).toBe(201)
  })
})

type Listed = {
  id: string
  external_id: string
  collection_id: string
  chip_id: string | null
  token_status: string
  ownership_status: string
}

/** Creates units of two collections in every state, some created at the same instant, oldest first. */
async function makeUnits(service: HttpService, { caller }: Customer): Promise<Listed[]> {
  const { behind } = service
  const collections = [await activeCollection(behind, caller), await activeCollection(behind, caller)]
  const made: Listed[] = []
  for (let number = 0; number < 18; number++) {
    if (number % 3 === 0) service.advance(1_000)
    const collection = collections[number % 2]
    if (!collection) throw new Error("there are two collections")
    const external_id = `unit-${number}`
    const { id } = await newUnit(behind, caller, collection, { external_id })
    const unit = { id, external_id, collection_id: collection.id, chip_id: null }
    const ownership_status = ["unissued", "custody", "owned"][Math.floor(number / 2) % 3] ?? ""
    if (ownership_status === "unissued") {
      made.push({ ...unit, token_status: "pending", ownership_status })
      continue
    }
    const { chip_id } = await pair(behind, caller, { unit_id: id, is_test: true })
    await settle(behind, id, { serial: number + 1, transaction_hash: hash })
    if (ownership_status === "owned") {
      const session = {
        ...caller,
        kind: "session_token",
        session: { chip_id, unit_id: id, expires_at: new Date(8.64e15) },
      } as const
      const { id: claimId } = await claim({ ...behind, context: service.context }, session, id, {
        recipient: alice,
      })
      await settle(behind, claimId, { transaction_hash: hash })
    }
    made.push({ ...unit, chip_id, token_status: "active", ownership_status })
  }
  return made
}
