import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { cursorFor, positionOf } from "../../src/http/cursor.ts"
import { instantOf } from "../../src/http/list.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { neverRotated } from "../harness/secret.ts"
import { activeCollection, newUnit, pairedTestChip, recordedTap } from "../harness/services.ts"

let service: HttpService
let customer: Customer
let collectionId: string

beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
  collectionId = (await activeCollection(service.behind, customer.caller)).id
})
afterAll(() => service.close())

const list = (path: string, as = customer.key) => ask(service, `GET /v1/${path}`, { as })
const seen = ({ status, code, fields }: Answer) => ({ status, code, fields })
const refusedOn = (...fields: string[]) => ({ status: 400, code: "validation.failed", fields })

type List = {
  units: { id: string; name: string }[]
  pagination: { limit: number; has_more: boolean; next_cursor: string | null }
}
const unitsOf = ({ body }: Answer) => body as List

async function addUnits(owner: Customer, count: number): Promise<string[]> {
  const collection = await activeCollection(service.behind, owner.caller)
  const ids: string[] = []
  for (let made = 0; made < count; made++)
    ids.push((await newUnit(service.behind, owner.caller, collection, { name: `unit ${made}` })).id)
  return ids
}

describe("a query parameter is rejected by name:", () => {
  test.each([
    ...["0", "101", "-1", "1e1", "0x10", "%2010", "10.0", "", "05", "ten", "1_0"].map((text) => [
      `units?limit=${text}`,
      "limit",
    ]),
    ["units?limit=5&limit=5", "limit"],
    ["units?limit[]=5", "limit[]"],
    ["units?foo=1", "foo"],
    ["units/01890000-0000-7000-8000-000000000000?foo=1", "foo"],
    ["settings?foo=1", "foo"],
    ...["1", "TRUE", "yes", ""].map((text) => [`chips?is_test=${text}`, "is_test"]),
    ["units?external_id=", "external_id"],
    [`units?external_id=${"x".repeat(257)}`, "external_id"],
    ["units?external_id=a%07", "external_id"],
    ["taps?chip_id=012345678", "chip_id"],
    ["taps?unit_id=nobody", "unit_id"],
    ...[
      "yesterday",
      "2026-01-01",
      "2026-02-30T00:00:00Z",
      "99999-01-01T00:00:00Z",
      "0000-01-01T00:00:00Z",
      "2026-01-01T25:00:00Z",
      "2026-01-01T00:00:00%2B01:00",
    ].map((text) => [`taps?created_after=${text}`, "created_after"]),
    ["taps?created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z", "created_before"],
    ...["garbage", "", "AAAA", "x".repeat(257), "%00"].map((text) => [`units?cursor=${text}`, "cursor"]),
  ] as [string, string][])("%s", async (path, field) => {
    expect(seen(await list(path))).toEqual(refusedOn(field))
  })
})

test.each(["%ff", "%zz", "100%", "%ED%A0%80"])(
  "a query with %s, which is not percent-encoded UTF-8, is rejected as a whole",
  async (text) => {
    const { status, code, formErrors } = await list(`units?external_id=${text}`)
    expect({ status, code, formErrors }).toEqual({
      status: 400,
      code: "validation.failed",
      formErrors: ["The query is not percent-encoded UTF-8."],
    })
  },
)

test("an operation that changes something accepts no query parameters", async () => {
  const { fields } = await ask(service, "POST /v1/collections?dry_run=true", {
    as: customer.key,
    body: { name: "a" },
  })
  expect(fields).toEqual(["dry_run"])
})

describe("a list", () => {
  test("returns 50 entries per page by default", async () => {
    expect(unitsOf(await list("units")).pagination.limit).toBe(50)
  })

  test("that is empty has no cursor", async () => {
    const stranger = await createCustomer(service)
    expect(unitsOf(await list("units", stranger.key))).toEqual({
      units: [],
      pagination: { limit: 50, has_more: false, next_cursor: null },
    })
  })

  test("shows the newest first", async () => {
    const owner = await createCustomer(service)
    const ids = await addUnits(owner, 5)
    expect(unitsOf(await list("units", owner.key)).units.map(({ id }) => id)).toEqual(ids.reverse())
  })

  test("filters by the exact external ID, within the caller's organization only", async () => {
    const body = { collection_id: collectionId, external_id: "SKU & ünit +1" }
    const made = await ask(service, "POST /v1/units", { as: customer.key, body })
    const path = `units?external_id=${encodeURIComponent(body.external_id)}`
    expect(unitsOf(await list(path)).units.map(({ id }) => id)).toEqual([String(made.body.id)])
    expect(unitsOf(await list("units?external_id=SKU")).units).toEqual([])
    const stranger = await createCustomer(service)
    expect(unitsOf(await list(path, stranger.key)).units).toEqual([])
  })

  test("of taps is empty instead of 404 for a unit of another organization", async () => {
    const visitor = await createVisitor(service, await createCustomer(service))
    const { status, body } = await list(`taps?is_test=true&unit_id=${visitor.unit_id}`)
    expect({ status, body }).toMatchObject({ status: 200, body: { taps: [] } })
  })

  test.each(["Z", "%2B00:00"])("of taps accepts a UTC time that ends in %s", async (zone) => {
    const owner = await createCustomer(service)
    await createVisitor(service, owner)
    const counted = async (query: string) => (await list(`taps?is_test=true&${query}`, owner.key)).body.taps
    expect(await counted(`created_after=2000-01-01T00:00:00.5${zone}`)).toHaveLength(1)
    expect(await counted(`created_before=2000-01-01T00:00:00${zone}`)).toEqual([])
  })

  test("of taps applies time bounds finer than a millisecond", async () => {
    const owner = await createCustomer(service)
    service.advance(367)
    await createVisitor(service, owner)
    const at = service.context.clock().toISOString()
    const counted = async (bound: string, digits: string) => {
      const time = at.replace("Z", `${digits}Z`)
      return (await list(`taps?is_test=true&${bound}=${time}`, owner.key)).body.taps as unknown[]
    }
    for (const digits of ["", "000000"]) {
      expect(await counted("created_after", digits)).toHaveLength(1)
      expect(await counted("created_before", digits)).toHaveLength(0)
    }
    for (const digits of ["5", "0005", "000001"]) {
      expect(await counted("created_after", digits)).toHaveLength(0)
      expect(await counted("created_before", digits)).toHaveLength(1)
    }
  })

  test("accepts time bounds up to the end of the year 9999", () => {
    const last = instantOf("9999-12-31T23:59:59.9999Z", "created_before")
    expect(last?.toISOString()).toBe("9999-12-31T23:59:59.999Z")
  })

  test("of taps excludes test chips unless they are requested", async () => {
    const owner = await createCustomer(service)
    const { chip_id } = await createVisitor(service, owner)
    expect((await list("taps", owner.key)).body).toMatchObject({ taps: [] })
    expect((await list(`taps?is_test=true&chip_id=${chip_id.toLowerCase()}`, owner.key)).body).toMatchObject({
      taps: [{ chip_id, is_test: true, counter: 1, skipped: 0 }],
    })
  })
})

describe("a cursor", () => {
  const walk = async (owner: Customer, onPage: (page: number) => Promise<unknown> = async () => {}) => {
    const ids: string[] = []
    let cursor: string | null = null
    for (let page = 0; ; page++) {
      const answer: Answer = await list(`units?limit=7${cursor ? `&cursor=${cursor}` : ""}`, owner.key)
      const { units, pagination } = unitsOf(answer)
      ids.push(...units.map(({ id }) => id))
      expect(pagination.has_more).toBe(pagination.next_cursor !== null)
      if (!pagination.next_cursor) return ids
      cursor = pagination.next_cursor
      await onPage(page)
    }
  }

  test("reaches every entry once even if all were created at the same time", async () => {
    const owner = await createCustomer(service)
    const ids = await addUnits(owner, 30)
    expect(await walk(owner)).toEqual(ids.reverse())
  })

  test("skips and repeats nothing while entries are added", async () => {
    const owner = await createCustomer(service)
    const ids = await addUnits(owner, 20)
    service.advance(1)
    expect(await walk(owner, () => addUnits(owner, 3))).toEqual(ids.reverse())
  })

  test("is null when the last page is exactly full", async () => {
    const owner = await createCustomer(service)
    await addUnits(owner, 7)
    expect(unitsOf(await list("units?limit=7", owner.key)).pagination).toEqual({
      limit: 7,
      has_more: false,
      next_cursor: null,
    })
  })

  test("also works with an ID of the path or filters in the other case", async () => {
    const owner = await createCustomer(service)
    const collection = await activeCollection(service.behind, owner.caller)
    for (let made = 0; made < 2; made++) await newUnit(service.behind, owner.caller, collection)
    const chip = await pairedTestChip(service.behind, owner.caller)
    for (let tapped = 0; tapped < 2; tapped++) await recordedTap(service.behind, owner.caller, chip)
    for (const [path, id] of [
      ["units?collection_id=", collection.id],
      ["taps?is_test=true&chip_id=", chip.chip_id],
    ] as const) {
      const { next_cursor } = unitsOf(await list(`${path}${id}&limit=1`, owner.key)).pagination
      for (const written of [id.toLowerCase(), id.toUpperCase()])
        expect((await list(`${path}${written}&cursor=${next_cursor}`, owner.key)).status).toBe(200)
    }
  })

  describe("is rejected", () => {
    let cursor: string
    beforeAll(async () => {
      await addUnits(customer, 2)
      cursor = String(unitsOf(await list("units?limit=1")).pagination.next_cursor)
    })

    test.each([
      ["by another list", (valid: string) => list(`collections?cursor=${valid}`)],
      ["with another filter", (valid: string) => list(`units?external_id=a&cursor=${valid}`)],
      ["when it is truncated", (valid: string) => list(`units?cursor=${valid.slice(0, -1)}`)],
      ["when a character is appended", (valid: string) => list(`units?cursor=${valid}A`)],
      [
        "when a character is changed",
        (valid: string) => list(`units?cursor=${valid.replace(/^./, (c) => (c === "A" ? "B" : "A"))}`),
      ],
    ])("%s", async (_name, ask) => {
      expect(seen(await ask(cursor))).toEqual(refusedOn("cursor"))
    })

    test("if it was issued to another organization", async () => {
      const stranger = await createCustomer(service)
      expect(seen(await list(`units?cursor=${cursor}`, stranger.key))).toEqual(refusedOn("cursor"))
    })

    test("but not if only the limit differs", async () => {
      expect((await list(`units?limit=9&cursor=${cursor}`)).status).toBe(200)
    })
  })

  test("decodes to its position, and fails to decode with any character changed", () => {
    const scope = { operation: "listUnits", organization_id: newId(), filters: "{}" }
    const time = fc.integer({ min: 0, max: 4e12 })
    fc.assert(
      fc.property(
        time,
        fc.uuid(),
        fc.nat(),
        fc.constantFrom(..."Aa0-_z"),
        (created, id, place, character) => {
          const cursor = cursorFor(neverRotated("a secret"), scope, { created_at: new Date(created), id })
          expect(positionOf(neverRotated("a secret"), scope, cursor)).toEqual({
            created_at: new Date(created),
            id,
          })
          const index = place % cursor.length
          const changed = cursor.slice(0, index) + character + cursor.slice(index + 1)
          if (changed !== cursor) expect(() => positionOf(neverRotated("a secret"), scope, changed)).toThrow()
          expect(() => positionOf(neverRotated("another secret"), scope, cursor)).toThrow()
        },
      ),
    )
  })
})
