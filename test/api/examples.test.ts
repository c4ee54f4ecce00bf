import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createApp } from "../../src/api/app.ts"
import { type Content, type Operation, openApiDocument } from "../../src/api/openapi/document.ts"
import { examples } from "../../src/api/openapi/examples.ts"
import { api } from "../../src/api/routes.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { type Engine, engines } from "../harness/engines.ts"
import { validatorOf } from "../harness/openapi.ts"
import { type ChainSays, contextWithChain } from "../harness/ownership.ts"
import { createCaller, openService, settle, type TestService } from "../harness/services.ts"

const urls = { api_base_url: "https://api.brand.test", docs_url: "https://api.brand.test/docs" }
const document = openApiDocument(api, urls)
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)
const sqlite = engines.find(({ name }) => name === "sqlite") as Engine
const untried = new Set(operations.map(({ operation }) => operation.operationId))
const says: ChainSays = { owner: null, isReachable: true }

let service: TestService
let app: ReturnType<typeof createApp>
let apiKey: string
let baseUrl: string
/** Maps the examples' values to those of this service. */
const real = new Map<string, string>()

beforeAll(async () => {
  service = await openService(sqlite)
  const { organization_id } = await createCaller(service)
  apiKey = (await service.turn((turn) => issueApiKey(turn, { organization_id, name: "examples" }))).key
  app = createApp(contextWithChain(service, says)).listen({ hostname: "localhost", port: 0 })
  baseUrl = `http://localhost:${app.server?.port}`
})
afterAll(async () => {
  await app.stop()
  await service.close()
})

describe("every example, sent to a running service, gets the documented response:", () => {
  test("the service itself", async () => {
    await exchange("getWelcome")
    await exchange("getHealth")
    await exchange("getOpenApiDocument")
  })

  test("settings and publishable keys", async () => {
    await exchange("getSettings")
    await exchange("updateSettings")
    await exchange("replaceCorsOrigins")
    await exchange("getCorsOrigins")
    await exchange("replaceCorsOrigins")
    await exchange("getCorsOrigins")
    const { publishable_keys } = await exchange("listPublishableKeys")
    expect(publishable_keys).toHaveLength(1)
  })

  test("webhook endpoints", async () => {
    const { id } = await exchange("createWebhookEndpoint")
    real.set(examples.createWebhookEndpoint.response.id, id)
    await exchange("listWebhookEndpoints")
    await exchange("getWebhookEndpoint")
    await exchange("createWebhookSecret")
    await exchange("createWebhookTest")
    await exchange("listWebhookDeliveries")
    await exchange("createWebhookReplay")
    await exchange("updateWebhookEndpoint")
    const { events } = await exchange("listEvents")
    real.set(examples.getEvent.response.id, String(events[0]?.id))
    await exchange("getEvent")
    await exchange("deleteWebhookEndpoint")
    // test/events/stream.test.ts covers it: a response without an end cannot be compared.
    untried.delete("streamEvents")
  })

  test("collections", async () => {
    const { id } = await exchange("createCollection")
    real.set(examples.createCollection.response.id, id)
    await settle(service, id, { transaction_hash: "0x01" })
    expect((await exchange("getCollection")).contract.status).toBe("active")
    real.set(examples.createMetadataRefresh.response.id, (await exchange("createMetadataRefresh")).id)
    await exchange("getMetadataRefresh")
    await exchange("listCollections")
    await exchange("updateCollection")
  })

  test("units", async () => {
    real.set(examples.createUnit.response.id, (await exchange("createUnit")).id)
    await exchange("getUnit")
    await exchange("listUnits")
    await exchange("updateUnit")
  })

  test("chips and taps", async () => {
    const { chip_id } = await exchange("pairChip")
    real.set(examples.getChip.response.chip_id, chip_id)
    await settle(service, realId(examples.createUnit.response.id), { serial: 1, transaction_hash: "0x02" })
    await exchange("getChip")
    await exchange("listChips")

    await expectTapRedirect(chip_id)
    await exchange("createTapDiagnosis")
    real.set(examples.createTestTap.response.e, (await exchange("createTestTap")).e)
    await exchange("createTap", "also")
    const tapped = await exchange("createTap")
    real.set(examples.createTap.response.session_token?.token ?? "", tapped.session_token.token)
    await exchange("listTaps")
    real.set(examples.createTap.response.id, tapped.id)
    await exchange("getTapReceipt")
    await exchange("getReceiptKeys")
    await exchange("getCurrentSessionToken")
  })

  test("a claim and a transfer", async () => {
    const { id } = await exchange("createClaim")
    real.set(examples.createClaim.response.id, id)
    await settle(service, id, { transaction_hash: `0x${"03".repeat(32)}` })
    expect((await exchange("getClaim")).status).toBe("claimed")
    await exchange("listClaims")

    says.owner = examples.createTransfer.response.sender as `0x${string}`
    real.set(examples.createTransfer.response.id, (await exchange("createTransfer")).id)
    await exchange("getTransfer")
    await exchange("listTransfers")
    await exchange("revokeCurrentSessionToken")
  })

  test("bulk pairing and a chip replacement, of another unit", async () => {
    const body = { ...examples.createUnit.request, external_id: "jacket-0002" }
    const made = (await (await send("POST", "/v1/units", inReal(body))).json()) as { id: string }
    real.set(examples.createUnit.response.id, made.id)
    await exchange("pairChipsInBulk")
    await settle(service, made.id, { serial: 2, transaction_hash: "0x04" })
    says.owner = null
    real.set(examples.createChipReplacement.response.id, (await exchange("createChipReplacement")).id)
    await exchange("getChipReplacement")
    await exchange("listChipReplacements")
  })

  test("all operations were covered", () => {
    expect([...untried]).toEqual([])
  })
})

describe.each(operations.filter(({ operation }) => operation.security.length > 0))(
  "$method $path",
  (asked) => {
    test("rejects a request without a credential as documented", async () => {
      const response = await fetch(`${baseUrl}${pathOf(asked.path)}`, { method: asked.method })
      expect(response.status).toBe(401)
      await expectDocumented(asked.operation, response)
    })

    test("rejects an unknown parameter as documented", async () => {
      const response = await send(
        asked.method,
        `${pathOf(asked.path)}?no_such=1`,
        {},
        tokenFor(asked.operation),
      )
      expect([400, 401]).toContain(response.status)
      await expectDocumented(asked.operation, response)
    })
  },
)

/** Sends an operation's example, checks the response against the document, and returns its body. */
async function exchange(operationId: string, example: "first" | "also" = "first"): Promise<Shown> {
  const asked = operations.find(({ operation }) => operation.operationId === operationId)
  if (!asked) throw new Error(`there is no operation ${operationId}`)
  const { operation, method, path } = asked
  const name = example === "first" ? operationId : "alternative"
  const body = operation.requestBody?.content["application/json"]?.examples[name]?.value
  const response = await send(method, pathOf(path), inReal(body), tokenFor(operation))
  expect({ operationId, status: response.status }).toEqual({
    operationId,
    status: statusOf(operation, example),
  })
  untried.delete(operationId)
  return (await expectDocumented(operation, response)) as Shown
}

/** Checks the tap URL of a chip with a redirect and of one that does not exist. */
async function expectTapRedirect(chipId: string): Promise<void> {
  const asked = operations.find(({ operation }) => operation.operationId === "getTapRedirect")
  if (!asked) throw new Error("the document has no getTapRedirect")
  for (const [id, status] of [
    [chipId, 302],
    ["00000000AA", 200],
  ] as const) {
    const response = await fetch(`${baseUrl}${asked.path.replace("{chip_id}", id)}`, { redirect: "manual" })
    expect(response.status).toBe(status)
    const documented = asked.operation.responses[status]
    for (const name of Object.keys(documented?.headers ?? {}))
      expect([name, response.headers.has(name)]).toEqual([name, true])
    const page = documented?.content?.["text/html"]?.examples.getTapRedirect?.value ?? ""
    expect(await response.text()).toBe(String(page))
  }
  untried.delete("getTapRedirect")
}

const known = Object.keys(document.components.headers ?? {})
const sometimes = ["Idempotent-Replayed", "Retry-After"]

/** What these tests read from the bodies, whose schemas are already checked. */
type Shown = {
  id: string
  chip_id: string
  e: string
  status: string
  contract: { status: string }
  session_token: { token: string }
  publishable_keys: unknown[]
  events: { id: string }[]
}

/** Only an operation with a dry run, which records nothing, has a second success status. */
function statusOf({ responses }: Operation, example: "first" | "also"): number {
  const [first = 0, second] = Object.keys(responses)
    .map(Number)
    .filter((status) => status < 300)
  return example === "first" ? (second ?? first) : first
}

async function expectDocumented(operation: Operation, response: Response): Promise<unknown> {
  const documented = operation.responses[response.status]
  if (!documented) throw new Error(`${operation.operationId}: ${response.status} is not in the document`)
  const headers = Object.keys(documented.headers ?? {})
  const missing = headers.filter((name) => !sometimes.includes(name) && !response.headers.has(name))
  const unsaid = known.filter((name) => response.headers.has(name) && !headers.includes(name))
  expect({ operationId: operation.operationId, status: response.status, missing, unsaid }).toEqual({
    operationId: operation.operationId,
    status: response.status,
    missing: [],
    unsaid: [],
  })
  const schema = (documented.content as Content | undefined)?.["application/json"]?.schema
  if (!schema) {
    expect(await response.text()).toBe("")
    return null
  }
  expect(response.headers.get("content-type")).toStartWith("application/json")
  const body = await response.json()
  expect(validatorOf(document, schema)(body)).toEqual([])
  return body
}

function send(method: string, path: string, body: unknown, token = apiKey): Promise<Response> {
  return fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(method === "GET" || method === "DELETE" ? {} : { body: JSON.stringify(body) }),
  })
}

function tokenFor({ security }: Operation): string {
  return security.some((scheme) => "apiKey" in scheme)
    ? apiKey
    : realId(examples.createTap.response.session_token?.token ?? "")
}

/** Replaces the examples' IDs by those of this service. */
function inReal<T>(value: T): T {
  if (value === undefined) return value
  let text = JSON.stringify(value)
  for (const [shown, here] of real) text = text.replaceAll(shown, here)
  return JSON.parse(text)
}

function realId(shown: string): string {
  return real.get(shown) ?? shown
}

function pathOf(template: string): string {
  const shown: Record<string, string> = {
    collection_id: examples.createCollection.response.id,
    unit_id: examples.createUnit.response.id,
    chip_id: examples.getChip.response.chip_id,
    tap_id: examples.createTap.response.id,
    claim_id: examples.createClaim.response.id,
    transfer_id: examples.createTransfer.response.id,
    replacement_id: examples.createChipReplacement.response.id,
    refresh_id: examples.createMetadataRefresh.response.id,
    event_id: examples.getEvent.response.id,
    webhook_endpoint_id: examples.createWebhookEndpoint.response.id,
  }
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => realId(shown[name] ?? ""))
}
