import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createApp } from "../src/app.ts"
import { type Content, type Operation, openApiDocument } from "../src/openapi/document.ts"
import * as examples from "../src/openapi/examples.ts"
import { issueApiKey } from "../src/organizations/service.ts"
import { routes } from "../src/routes.ts"
import { type Engine, engines } from "./engines.ts"
import { validatorOf } from "./openapi-harness.ts"
import { type ChainSays, contextWithChain } from "./ownership-harness.ts"
import { createCaller, openService, settle, type TestService } from "./service-harness.ts"

const urls = { api_base_url: "https://api.brand.test", docs_url: "https://api.brand.test/docs" }
const document = openApiDocument(routes, urls)
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
/** What the examples name, and what it is called in this service. */
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

describe("every example, sent to a running service, is answered as the document says", () => {
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

  test("collections", async () => {
    const { id } = await exchange("createCollection")
    real.set(examples.collection.id, id)
    await settle(service, id, { transaction_hash: "0x01" })
    expect((await exchange("getCollection")).contract.status).toBe("active")
    await exchange("listCollections")
    await exchange("updateCollection")
  })

  test("units", async () => {
    real.set(examples.unit.id, (await exchange("createUnit")).id)
    await exchange("getUnit")
    await exchange("listUnits")
    await exchange("updateUnit")
  })

  test("chips and taps", async () => {
    const { chip_id } = await exchange("pairChip")
    real.set(examples.chip.chip_id, chip_id)
    await settle(service, realId(examples.unit.id), { serial: 1, transaction_hash: "0x02" })
    await exchange("getChip")
    await exchange("listChips")

    real.set(examples.testTap.e, (await exchange("createTestTap")).e)
    await exchange("createTap", "also")
    const { session_token } = await exchange("createTap")
    real.set(examples.tap.session_token?.token ?? "", session_token.token)
    await exchange("listTaps")
    await exchange("getCurrentSessionToken")
  })

  test("a claim and a transfer", async () => {
    const { id } = await exchange("createClaim")
    real.set(examples.claim.id, id)
    await settle(service, id, { transaction_hash: `0x${"03".repeat(32)}` })
    expect((await exchange("getClaim")).status).toBe("claimed")

    says.owner = examples.transfer.sender as `0x${string}`
    real.set(examples.transfer.id, (await exchange("createTransfer")).id)
    await exchange("getTransfer")
    await exchange("revokeCurrentSessionToken")
  })

  test("bulk pairing and a chip replacement, of another unit", async () => {
    const body = { ...examples.createUnit, external_id: "jacket-0002" }
    const made = (await (await send("POST", "/v1/units", inReal(body))).json()) as { id: string }
    real.set(examples.unit.id, made.id)
    await exchange("pairChipsInBulk")
    await settle(service, made.id, { serial: 2, transaction_hash: "0x04" })
    says.owner = null
    real.set(examples.chipReplacement.id, (await exchange("createChipReplacement")).id)
    await exchange("getChipReplacement")
  })

  test("nothing was left out", () => {
    expect([...untried]).toEqual([])
  })
})

describe.each(operations.filter(({ operation }) => operation.security.length > 0))(
  "$method $path",
  (asked) => {
    test("refuses a request without credential as the document says", async () => {
      const response = await fetch(`${baseUrl}${pathOf(asked.path)}`, { method: asked.method })
      expect(response.status).toBe(401)
      await expectDocumented(asked.operation, response)
    })

    test("refuses a parameter that it does not know as the document says", async () => {
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

/** Sends an operation's example and holds the answer to the document. Answers the body. */
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

const known = Object.keys(document.components.headers ?? {})
const sometimes = ["Idempotent-Replayed", "Retry-After"]

/** What these tests read of the bodies, whose schemas are checked. */
type Shown = {
  id: string
  chip_id: string
  e: string
  status: string
  contract: { status: string }
  session_token: { token: string }
  publishable_keys: unknown[]
}

/** A dry run, which records nothing, is the only one with a second status. */
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
    : realId(examples.tap.session_token?.token ?? "")
}

/** With the ids of this service in place of those of the examples. */
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
    collection_id: examples.collection.id,
    unit_id: examples.unit.id,
    chip_id: examples.chip.chip_id,
    claim_id: examples.claim.id,
    transfer_id: examples.transfer.id,
    replacement_id: examples.chipReplacement.id,
  }
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => realId(shown[name] ?? ""))
}
