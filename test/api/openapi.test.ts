import { afterAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createApp } from "../../src/api/app.ts"
import { type Operation, openApiDocument } from "../../src/api/openapi/document.ts"
import { examples } from "../../src/api/openapi/examples.ts"
import { api, routes } from "../../src/api/routes.ts"
import { DatabaseUnavailable } from "../../src/db/database.ts"
import { errorCatalogue } from "../../src/platform/errors.ts"
import { type Engine, engines } from "../harness/engines.ts"
import { examplesOf, validatorOf } from "../harness/openapi.ts"
import { openService } from "../harness/services.ts"

const sqlite = engines.find(({ name }) => name === "sqlite") as Engine

const document = openApiDocument(api, {
  api_base_url: "https://api.brand.test",
  docs_url: "https://api.brand.test/docs",
})
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

describe("the OpenAPI document", () => {
  test("keeps the names and paths of all operations stable", () => {
    const named = operations.map(({ path, method, operation }) => [
      operation.operationId,
      `${method} ${path}`,
    ])
    expect(Object.fromEntries(named)).toEqual(frozen)
    expect(named).toHaveLength(Object.keys(frozen).length)
  })

  test("takes its examples from the one story, and uses all of them", () => {
    expect(Object.keys(examples).sort()).toEqual(routes.map(({ operation }) => operation).sort())
  })

  describe.each(operations)("$method $path", ({ operation }) => {
    test("has a summary and a description", () => {
      expect(operation.summary).not.toBe("")
      expect(operation.description).not.toBe("")
      for (const parameter of operation.parameters) expect(parameter.description).not.toBe("")
    })

    test("has an example of every request and response that matches its schema", () => {
      const problems = contentsOf(operation).flatMap(({ schema, examples }) => {
        const check = validatorOf(document, schema)
        expect(Object.keys(examples)).not.toBeEmpty()
        return examplesOf(document, examples).flatMap((example) =>
          example === undefined ? ["an example is missing"] : check(example),
        )
      })
      expect(problems).toEqual([])
    })

    test("has the request ID in every response", () => {
      for (const { headers } of Object.values(operation.responses))
        expect(headers).toHaveProperty("X-Request-Id")
    })
  })

  test("documents 503 for an unreachable database exactly where it can occur", async () => {
    const service = await openService(sqlite)
    const { context } = service
    const away = () => {
      throw new DatabaseUnavailable("nobody answers")
    }
    const app = createApp({
      ...context,
      db: { ...context.db, read: new Proxy(context.db.read, { get: away }) },
    })
    const promised: string[] = []
    for (const { path, operation } of operations) {
      const told = operation.responses["503"]
      if (!told) continue
      expect(told.headers).toHaveProperty("Retry-After")
      promised.push(path)
    }
    for (const { path, method } of operations.filter(({ path }) => !path.startsWith("/v1/"))) {
      const address = `http://localhost${path.replace("{chip_id}", "04A1B2C3D4")}`
      const { status, headers } = await app.handle(new Request(address, { method }))
      const isAway = promised.includes(path)
      expect([path, status, headers.has("retry-after")]).toEqual([path, isAway ? 503 : 200, isAway])
    }
    await service.close()
  })

  test("requires a body exactly where an empty one, which counts as {}, is refused", () => {
    const optional = operations.filter(({ operation }) => operation.requestBody?.required === false)
    const acceptEmpty = operations.filter(({ operation: { requestBody } }) => {
      const body = requestBody?.content["application/json"]
      return body && validatorOf(document, body.schema)({}).length === 0
    })
    expect(optional).toEqual(acceptEmpty)
    expect(optional.map(({ operation }) => operation.operationId)).toEqual([
      "createMetadataRefresh",
      "createWebhookSecret",
      "createWebhookTest",
    ])
  })

  test("has only operations without a credential under the tag that says that none is needed", () => {
    const closed = operations.filter(
      ({ operation }) => operation.tags.includes("Service") && operation.security.length > 0,
    )
    expect(closed.map(({ path, method }) => `${method} ${path}`)).toEqual([])
  })

  test("documents 403 wherever a credential is taken, because its organization may be suspended", () => {
    const silent = operations.filter(
      ({ operation }) => operation.security.length > 0 && !operation.responses["403"],
    )
    expect(silent.map(({ path, method }) => `${method} ${path}`)).toEqual([])
  })

  test("describes every request and response field", () => {
    const bare = Object.entries(document.components.schemas).flatMap(([name, schema]) =>
      Object.entries((schema.properties ?? {}) as Record<string, { description?: string }>)
        .filter(([, { description }]) => !description)
        .map(([field]) => `${name}.${field}`),
    )
    expect(bare.filter((field) => field !== "ErrorResponse.error")).toEqual([])
  })

  test("has only patterns that PHP, Go and Ruby can compile, too", () => {
    const [codePoint, lookaround, longRepeat] = [/\\[upP]|[^ -~]/, /\(\?[=!<]/, /\{\d*,?\d{4,}\}/]
    const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(
      ([, text = ""]) => JSON.parse(text) as string,
    )
    expect(patterns.length).toBeGreaterThan(100)
    for (const wrong of [codePoint, lookaround, longRepeat])
      expect(patterns.filter((pattern) => wrong.test(pattern))).toEqual([])
  })

  test("gives no schema the name of a class that generated clients have already", () => {
    const taken = ["ApiClient", "ApiError", "ApiException", "Configuration"]
    expect(Object.keys(document.components.schemas).filter((name) => taken.includes(name))).toEqual([])
  })

  test("has no internal keyword", () => {
    expect(JSON.stringify(document)).not.toContain('"x-')
  })

  test("uses every code of the catalogue somewhere", () => {
    const shown = operations.flatMap(({ operation }) =>
      Object.values(operation.responses).flatMap(({ content }) =>
        Object.keys(content?.["application/json"]?.examples ?? {}),
      ),
    )
    expect(Object.keys(errorCatalogue).filter((code) => !shown.includes(code))).toEqual([])
  })
})

describe("Redocly's strictest rules", () => {
  const folder = mkdtempSync(join(tmpdir(), "service-api-"))
  afterAll(() => rmSync(folder, { recursive: true }))

  const ofThisMachine = "no-server-example.com"

  test.each([
    ["https://api.brand.test", []],
    ["http://localhost:3000", [ofThisMachine]],
  ])(
    "find nothing in the document of %s but %j: its server is the host that was requested",
    async (api_base_url, expected) => {
      const path = join(folder, `${new URL(api_base_url).hostname}.json`)
      await Bun.write(
        path,
        JSON.stringify(openApiDocument(api, { api_base_url, docs_url: `${api_base_url}/docs` })),
      )
      const { problems } = (await lint(path)) as { problems: { ruleId: string }[] }
      expect(problems.map(({ ruleId }) => ruleId)).toEqual(expected)
    },
    30_000,
  )
})

/** No request leaves this machine: any would go to a port where nothing listens. */
async function lint(path: string) {
  const redocly = join(import.meta.dir, "../../node_modules/@redocly/cli/bin/cli.js")
  const rules = ["--extends", "recommended-strict", "--format", "json"]
  const child = Bun.spawn([process.execPath, redocly, "lint", path, ...rules], {
    env: {
      ...process.env,
      REDOCLY_TELEMETRY: "off",
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
      HTTPS_PROXY: "http://127.0.0.1:9",
      HTTP_PROXY: "http://127.0.0.1:9",
    },
    stdout: "pipe",
    stderr: "ignore",
  })
  return JSON.parse(await new Response(child.stdout).text())
}

function contentsOf({ requestBody, responses }: Operation) {
  const contents = [requestBody, ...Object.values(responses)].map(
    (each) => each?.content?.["application/json"],
  )
  return contents.filter((content) => content !== undefined)
}

const frozen = {
  getWelcome: "GET /",
  getHealth: "GET /health",
  getOpenApiDocument: "GET /openapi.json",
  createTap: "POST /v1/taps",
  listTaps: "GET /v1/taps",
  getTapReceipt: "GET /v1/taps/{tap_id}/receipt",
  getReceiptKeys: "GET /.well-known/jwks.json",
  createTapDiagnosis: "POST /v1/tap-diagnoses",
  getTapRedirect: "GET /t/{chip_id}",
  createTestTap: "POST /v1/test-helpers/taps",
  pairChip: "POST /v1/chips",
  pairChipsInBulk: "POST /v1/chips/bulk",
  listChips: "GET /v1/chips",
  getChip: "GET /v1/chips/{chip_id}",
  createUnit: "POST /v1/units",
  listUnits: "GET /v1/units",
  getUnit: "GET /v1/units/{unit_id}",
  updateUnit: "PATCH /v1/units/{unit_id}",
  createCollection: "POST /v1/collections",
  listCollections: "GET /v1/collections",
  getCollection: "GET /v1/collections/{collection_id}",
  updateCollection: "PATCH /v1/collections/{collection_id}",
  createMetadataRefresh: "POST /v1/collections/{collection_id}/metadata-refreshes",
  getMetadataRefresh: "GET /v1/collections/{collection_id}/metadata-refreshes/{refresh_id}",
  createClaim: "POST /v1/units/{unit_id}/claims",
  getClaim: "GET /v1/units/{unit_id}/claims/{claim_id}",
  listClaims: "GET /v1/units/{unit_id}/claims",
  createTransfer: "POST /v1/units/{unit_id}/transfers",
  getTransfer: "GET /v1/units/{unit_id}/transfers/{transfer_id}",
  listTransfers: "GET /v1/units/{unit_id}/transfers",
  createChipReplacement: "POST /v1/units/{unit_id}/chip-replacements",
  getChipReplacement: "GET /v1/units/{unit_id}/chip-replacements/{replacement_id}",
  listChipReplacements: "GET /v1/units/{unit_id}/chip-replacements",
  getCurrentSessionToken: "GET /v1/session-tokens/current",
  revokeCurrentSessionToken: "DELETE /v1/session-tokens/current",
  listPublishableKeys: "GET /v1/publishable-keys",
  getSettings: "GET /v1/settings",
  updateSettings: "PATCH /v1/settings",
  getCorsOrigins: "GET /v1/settings/cors-origins",
  replaceCorsOrigins: "PUT /v1/settings/cors-origins",
  listEvents: "GET /v1/events",
  streamEvents: "GET /v1/events/stream",
  getEvent: "GET /v1/events/{event_id}",
  createWebhookEndpoint: "POST /v1/webhook-endpoints",
  listWebhookEndpoints: "GET /v1/webhook-endpoints",
  getWebhookEndpoint: "GET /v1/webhook-endpoints/{webhook_endpoint_id}",
  updateWebhookEndpoint: "PATCH /v1/webhook-endpoints/{webhook_endpoint_id}",
  deleteWebhookEndpoint: "DELETE /v1/webhook-endpoints/{webhook_endpoint_id}",
  createWebhookSecret: "POST /v1/webhook-endpoints/{webhook_endpoint_id}/secrets",
  createWebhookTest: "POST /v1/webhook-endpoints/{webhook_endpoint_id}/tests",
  listWebhookDeliveries: "GET /v1/webhook-endpoints/{webhook_endpoint_id}/deliveries",
  createWebhookReplay: "POST /v1/webhook-endpoints/{webhook_endpoint_id}/replays",
}
