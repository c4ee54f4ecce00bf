import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { routes } from "../../src/api/routes.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
  type Visitor,
} from "../harness/api.ts"
import { createProduct, importedChip } from "../harness/services.ts"

// A resource of another organization gets, byte for byte, the same response as one that does not exist.

let service: HttpService
let customer: Customer
let visitor: Visitor
let theirs: Record<string, string>

const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
  visitor = await createVisitor(service, customer)
  const stranger = await createCustomer(service)
  const claimed = await createVisitor(service, stranger)
  const replaced = await createVisitor(service, stranger)
  const transferred = await createVisitor(service, stranger)
  const claim = await ask(service, `POST /v1/units/${claimed.unit_id}/claims`, {
    as: claimed.token,
    body: { recipient },
  })
  const replacement = await ask(service, `POST /v1/units/${replaced.unit_id}/chip-replacements`, {
    as: stranger.key,
    body: { is_test: true },
  })
  service.chain.owner = recipient
  const transfer = await ask(service, `POST /v1/units/${transferred.unit_id}/transfers`, {
    as: transferred.token,
    body: { recipient: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC" },
  })
  service.chain.owner = null
  const collection = await ask(service, "POST /v1/collections", {
    as: stranger.key,
    body: { name: "Theirs" },
  })
  const webhook = await ask(service, "POST /v1/webhook-endpoints", {
    as: stranger.key,
    body: { url: "https://203.0.112.9/" },
  })
  const events = await ask(service, "GET /v1/events", { as: stranger.key })
  theirs = {
    unit_id: claimed.unit_id,
    chip_id: claimed.chip_id,
    imported_chip_id: (await importedChip(service.behind, stranger.caller)).chip_id,
    product_id: await createProduct(service.behind, stranger.caller),
    claim_id: String(claim.body.id),
    replacement_id: String(replacement.body.id),
    collection_id: String(collection.body.id),
    transfer_id: String(transfer.body.id),
    webhook_endpoint_id: String(webhook.body.id),
    event_id: String((events.body.events as { id: string }[])[0]?.id),
    "unit_id of a transfer": transferred.unit_id,
    "unit_id of a replacement": replaced.unit_id,
  }
  for (const [id, path, visitor] of [
    [theirs.claim_id, "claims", claimed],
    [theirs.replacement_id, "chip-replacements", replaced],
    [theirs.transfer_id, "transfers", transferred],
  ] as const) {
    const own = await ask(service, `GET /v1/units/${visitor.unit_id}/${path}/${id}`, { as: stranger.key })
    expect(own.status).toBe(200)
  }
})
afterAll(() => service.close())

const nobodys = (name: string) => (name.endsWith("chip_id") ? "00000000AA" : newId())

function withoutRequestId({ status, text, body, headers }: Answer) {
  const { error } = body as { error?: { request_id: string } }
  const kept = [...headers].filter(
    ([name]) => !["x-request-id", "date"].includes(name) && !/^x-ratelimit/.test(name),
  )
  return { status, text: text.replaceAll(error?.request_id ?? "", ""), kept }
}

const bodies: Record<string, unknown> = {
  updateUnit: { name: "mine" },
  updateCollection: { redirect_url: null },
  createClaim: { recipient },
  createTransfer: { recipient },
  createChipReplacement: { is_test: true },
  updateWebhookEndpoint: { status: "paused" },
  createWebhookReplay: { created_after: "2026-01-01T00:00:00Z" },
}

describe("a path with IDs of another organization gets the same response as one with IDs that do not exist:", () => {
  const addressed = routes
    .filter(({ path }) => path.includes("{"))
    .flatMap((route) => route.credentials.map((kind) => [route.operation, kind, route] as const))

  test.each(addressed)("%s with an %s", async (operation, kind, { method, path }) => {
    const as = kind === "api_key" ? customer.key : visitor.token
    const send = (idOf: (name: string) => string) => {
      const address = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => idOf(name))
      return ask(service, `${method} ${address}`, { as, body: bodies[operation] })
    }
    const parent = /\{(transfer|replacement)_id\}/.exec(path)?.[1]
    const idOf = (name: string) => theirs[`${name} of a ${parent}`] ?? theirs[name]
    const answer = await send((name) => String(idOf(name)))
    expect(answer.status).toBe(404)
    expect(withoutRequestId(answer)).toEqual(withoutRequestId(await send(nobodys)))
  })

  test.each(["claims", "chip-replacements"])("one of its %s under a unit of the caller", async (kind) => {
    const as = customer.key
    const id = kind === "claims" ? theirs.claim_id : theirs.replacement_id
    const answer = await ask(service, `GET /v1/units/${visitor.unit_id}/${kind}/${id}`, { as })
    const nothing = await ask(service, `GET /v1/units/${visitor.unit_id}/${kind}/${newId()}`, { as })
    expect(answer.status).toBe(404)
    expect(withoutRequestId(answer)).toEqual(withoutRequestId(nothing))
  })
})

describe("a body with an ID of another organization gets the same response as one with an ID that does not exist:", () => {
  const e = "0123456789ABCDEF0123456789ABCDEF"
  type BodyWith = (id: string) => Record<string, unknown>
  const cases: [
    string,
    "/v1/units" | "/v1/chips" | "/v1/chips/bulk" | "/v1/taps" | "/v1/test-helpers/taps",
    string,
    BodyWith,
  ][] = [
    ["the collection of a unit", "/v1/units", "collection_id", (collection_id) => ({ collection_id })],
    ["the unit of a chip", "/v1/chips", "unit_id", (unit_id) => ({ unit_id, is_test: true })],
    [
      "an imported chip to pair",
      "/v1/chips",
      "imported_chip_id",
      (chip_id) => ({ unit_id: visitor.unit_id, chip_id, e }),
    ],
    [
      "a unit of a bulk request",
      "/v1/chips/bulk",
      "unit_id",
      (unit_id) => ({ chips: [{ unit_id, is_test: true }] }),
    ],
    ["the chip of a tap", "/v1/taps", "chip_id", (chip_id) => ({ chip_id, e })],
    ["the chip of a test tap", "/v1/test-helpers/taps", "chip_id", (chip_id) => ({ chip_id })],
  ]

  test.each(cases)("%s", async (_name, path, name, bodyWith) => {
    const send = (id: string) => ask(service, `POST ${path}`, { as: customer.key, body: bodyWith(id) })
    const answer = await send(String(theirs[name]))
    expect(answer.status).toBe(404)
    expect(withoutRequestId(answer)).toEqual(withoutRequestId(await send(nobodys(name))))
  })

  test("the product of a unit", async () => {
    const send = (product_id: unknown) =>
      ask(service, `PATCH /v1/units/${visitor.unit_id}`, { as: customer.key, body: { product_id } })
    const answer = await send(theirs.product_id)
    expect(answer.fields).toEqual(["product_id"])
    expect(withoutRequestId(answer)).toEqual(withoutRequestId(await send(newId())))
  })
})

test("an external ID that another organization uses is available", async () => {
  const body = { name: "a", external_id: "the same" }
  const stranger = await createCustomer(service)
  expect((await ask(service, "POST /v1/collections", { as: stranger.key, body })).status).toBe(201)
  expect((await ask(service, "POST /v1/collections", { as: customer.key, body })).status).toBe(201)
})
