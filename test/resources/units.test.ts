import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import fc from "fast-check"
import { failure } from "../../machines/failures.ts"
import { effects } from "../../src/db/schema.ts"
import { sendEvent, settleEffect } from "../../src/engine/actors/runtime.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import { presentCollection } from "../../src/resources/collections/present.ts"
import {
  createCollection,
  getCollection,
  listCollections,
  updateCollection,
} from "../../src/resources/collections/service.ts"
import { presentListedUnit, presentUnit, presentUnitSnapshot } from "../../src/resources/units/present.ts"
import { createUnit, getUnit, listUnits, updateUnit } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  chainId,
  createCaller,
  createProduct,
  newUnit,
  openService,
  pair,
  refusal,
  settle,
  type TestService,
} from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  let service: TestService
  let caller: Caller
  let stranger: Caller

  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
    stranger = await createCaller(service)
  })
  afterAll(() => service.close())

  const read = () => service.context.db.read
  const create = (owner: Caller, body: Parameters<typeof createCollection>[3]) =>
    service.turn((turn) => createCollection(turn, service.context.chains, owner, body))

  test("a new collection is deploying, with its address already known", async () => {
    const collection = await create(caller, {
      name: "Autumn Winter",
      external_id: "aw",
      redirect_url: "https://example.com",
    })
    expect(presentCollection(collection)).toEqual({
      id: collection.id,
      contract: {
        address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
        chain_id: chainId,
        status: "deploying",
      },
      name: "Autumn Winter",
      external_id: "aw",
      redirect_url: "https://example.com/",
      symbol: "AW",
      description: null,
      image_url: null,
      failure: null,
      created_at: service.context.clock().toISOString(),
    })
    expect(await getCollection(read(), caller, collection.id.toUpperCase())).toEqual(collection)
  })

  test("a collection becomes active when it is deployed", async () => {
    const collection = await create(caller, { name: "Deployed", symbol: "d!" })
    await settle(service, collection.id, { transaction_hash: "0x01" })
    expect(await getCollection(read(), caller, collection.id)).toEqual({ ...collection, status: "active" })
  })

  test("a collection whose deployment failed has a failure until it is retried", async () => {
    const { id } = await create(caller, { name: "Failed" })
    const shown = async () => presentCollection(await getCollection(read(), caller, id))
    const error = failure("collection.deployment_reverted")
    const [effect] = await read().select().from(effects).where(eq(effects.actor_id, id))
    await service.turn((turn) => settleEffect(turn, effect?.id ?? "", { error }))
    expect(await shown()).toMatchObject({ contract: { status: "failed" }, failure: error })
    await service.turn((turn) => sendEvent(turn, id, { type: "RETRY" }))
    expect(await shown()).toMatchObject({ contract: { status: "deploying" }, failure: null })
  })

  test("an external ID is unique within an organization, not across organizations", async () => {
    await create(caller, { name: "One", external_id: "shared" })
    await create(stranger, { name: "One", external_id: "shared" })
    expect(await refusal(create(caller, { name: "Two", external_id: "shared" }))).toBe(
      "collection.already_exists",
    )
  })

  test("an external ID requested a hundred times at once is used once", async () => {
    const asked = Array.from({ length: 100 }, () =>
      create(caller, { name: "Race", external_id: "race" }).then(
        () => "created",
        (error) => error.code,
      ),
    )
    const answers = await Promise.all(asked)
    expect(answers.filter((answer) => answer === "created")).toHaveLength(1)
    expect(new Set(answers)).toEqual(new Set(["created", "collection.already_exists"]))
  })

  test("a chain must be allowed, configured, and named if there is no default", async () => {
    const bare = await createCaller(service, { default_chain_id: null, allowed_chain_ids: [chainId, 5] })
    expect(await refusal(create(bare, { name: "x" }))).toEqual({ fields: ["chain_id"] })
    expect(await refusal(create(bare, { name: "x", chain_id: 5 }))).toEqual({ fields: ["chain_id"] })
    expect(await refusal(create(bare, { name: "x", chain_id: 6 }))).toEqual({ fields: ["chain_id"] })
    expect((await create(bare, { name: "x", chain_id: chainId })).chain_id).toBe(chainId)
  })

  test("a collection's redirect can be replaced and cleared", async () => {
    const { id } = await create(caller, { name: "Moved" })
    const set = (redirect_url: string | null) =>
      service.turn((turn) => updateCollection(turn, caller, id, { redirect_url }))
    expect((await set("https://example.com/a")).redirect_url).toBe("https://example.com/a")
    expect((await set(null)).redirect_url).toBeNull()
    expect(await refusal(set("ftp://example.com"))).toEqual({ fields: ["redirect_url"] })
  })

  test("another organization's collection is not found", async () => {
    const { id } = await create(caller, { name: "Mine", external_id: "mine" })
    const change = (turn: Parameters<typeof updateCollection>[0]) =>
      updateCollection(turn, stranger, id, { redirect_url: null })
    expect(await refusal(getCollection(read(), stranger, id))).toBe("collection.not_found")
    expect(await refusal(getCollection(read(), stranger, "no-uuid"))).toBe("collection.not_found")
    expect(await refusal(service.turn(change))).toBe("collection.not_found")
    expect(await refusal(service.turn((turn) => createUnit(turn, stranger, { collection_id: id })))).toBe(
      "collection.not_found",
    )
    const page = { limit: 10, after: null }
    expect((await listCollections(read(), stranger, { external_id: "mine", page })).rows).toEqual([])
  })

  test("quotas of collections and units are exact", async () => {
    const small = await createCaller(service, { quota_collections: 1, quota_units: 2 })
    const collection = await create(small, { name: "Only" })
    expect(await refusal(create(small, { name: "Second" }))).toBe("quota.exceeded")
    await newUnit(service, small, collection)
    await newUnit(service, small, collection)
    expect(await refusal(newUnit(service, small, collection))).toBe("quota.exceeded")
  })

  test("a new unit waits for a chip, with all fields as given", async () => {
    const collection = await activeCollection(service, caller)
    const product_id = await createProduct(service, caller)
    const unit = await newUnit(service, caller, collection, {
      external_id: "unit-1",
      name: "Coat",
      attributes: { size: "M", nested: { list: [1, null, true] } },
      redirect_url: "https://example.com/coat",
      product_id,
    })
    const snapshot = {
      id: unit.id,
      external_id: "unit-1",
      name: "Coat",
      attributes: { size: "M", nested: { list: [1, null, true] } },
      created_at: service.context.clock().toISOString(),
      redirect_url: "https://example.com/coat",
      collection: {
        id: collection.id,
        name: "Autumn Winter",
        external_id: null,
        contract: { address: collection.address, chain_id: chainId, status: "active" },
        token: { status: "pending", serial: null },
      },
    }
    expect(presentUnitSnapshot(unit)).toEqual(snapshot as never)
    expect(presentUnit(await getUnit(read(), caller, unit.id))).toEqual({
      ...snapshot,
      product_id,
      chip_id: null,
      description: null,
      image_url: null,
      metadata: null,
      ownership: { status: "unissued", owner: null, updated_at: null },
    } as never)
  })

  test("an issued unit has its serial and chip", async () => {
    const unit = await newUnit(service, caller, await activeCollection(service, caller))
    const { chip_id } = await pair(service, caller, { unit_id: unit.id, is_test: true })
    await settle(service, unit.id, { serial: 7, transaction_hash: "0x02" })
    const shown = presentUnit(await getUnit(read(), caller, unit.id))
    expect(shown.collection?.token).toEqual({ status: "active", serial: 7 })
    expect(shown.chip_id).toBe(chip_id)
  })

  test("a unit in a list has four fields", async () => {
    await newUnit(service, caller, await activeCollection(service, caller), { external_id: "listed" })
    const { rows } = await listUnits(read(), caller, {
      external_id: "listed",
      page: { limit: 10, after: null },
    })
    expect(rows.map(presentListedUnit)).toEqual([
      {
        id: expect.any(String) as never,
        external_id: "listed",
        name: null,
        created_at: service.context.clock().toISOString(),
      },
    ])
  })

  test("an update changes only the fields that are given", async () => {
    const { id } = await newUnit(service, caller, await activeCollection(service, caller), {
      external_id: "kept",
      name: "Before",
      attributes: { a: 1 },
    })
    const unit = await getUnit(service.context.db.read, caller, id)
    const change = (body: Parameters<typeof updateUnit>[3]) =>
      service.turn((turn) => updateUnit(turn, caller, unit.id, body))
    expect(await change({ name: "After", attributes: null })).toEqual({
      ...unit,
      name: "After",
      attributes: null,
    })
    expect(await change({ external_id: "kept" })).toMatchObject({ external_id: "kept", name: "After" })
    expect(await change({ external_id: null })).toMatchObject({ external_id: null })
    expect(await refusal(change({}))).toEqual({ fields: [] })
  })

  test("an update cannot give a unit another unit's external ID", async () => {
    const collection = await activeCollection(service, caller)
    await newUnit(service, caller, collection, { external_id: "held" })
    const unit = await newUnit(service, caller, collection, { external_id: "free" })
    const change = service.turn((turn) => updateUnit(turn, caller, unit.id, { external_id: "held" }))
    expect(await refusal(change)).toBe("unit.already_exists")
    expect(await refusal(newUnit(service, caller, collection, { external_id: "held" }))).toBe(
      "unit.already_exists",
    )
  })

  test("an unknown product, or one of another organization, is rejected on product_id", async () => {
    const collection = await activeCollection(service, caller)
    for (const product_id of [newId(), await createProduct(service, stranger)])
      expect(await refusal(newUnit(service, caller, collection, { product_id }))).toEqual({
        fields: ["product_id"],
      })
  })

  test("another organization's unit is not found", async () => {
    const { id } = await newUnit(service, caller, await activeCollection(service, caller), {
      external_id: "own",
    })
    const change = () => service.turn((turn) => updateUnit(turn, stranger, id, { name: "taken" }))
    expect(await refusal(getUnit(read(), stranger, id))).toBe("unit.not_found")
    expect(await refusal(getUnit(read(), stranger, "no-uuid"))).toBe("unit.not_found")
    expect(await refusal(change())).toBe("unit.not_found")
    const page = { limit: 10, after: null }
    expect((await listUnits(read(), stranger, { external_id: "own", page })).rows).toEqual([])
  })

  test("pages of any size return every unit once, newest first, including units created at the same instant", async () => {
    const owner = await createCaller(service)
    const collection = await activeCollection(service, owner)
    const made: string[] = []
    for (let number = 0; number < 23; number++) {
      service.setTime(new Date(Date.UTC(2026, 4, 1, 0, 0, Math.floor(number / 5))))
      made.push((await newUnit(service, owner, collection)).id)
    }
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 30 }), async (limit) => {
        const shown: string[] = []
        let after: Parameters<typeof listUnits>[2]["page"]["after"] = null
        do {
          const { rows, next } = await listUnits(read(), owner, { page: { limit, after } })
          expect(rows.length).toBeWithin(1, limit + 1)
          shown.push(...rows.map(({ id }) => id))
          after = next
        } while (after)
        expect(shown).toEqual(made.toReversed())
      }),
      { numRuns: 30 },
    )
  })
})
