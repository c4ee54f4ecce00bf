import { Database as File } from "bun:sqlite"
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import pg from "pg"
import { createApp } from "../../src/api/app.ts"
import { routes } from "../../src/api/routes.ts"
import { withHiddenParameters } from "../../src/db/sqlite.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Context } from "../../src/platform/context.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { organizationsWithEventsAfter } from "../../src/resources/events/service.ts"
import {
  createWebhookEndpoint,
  createWebhookReplay,
  deleteWebhookEndpoint,
} from "../../src/resources/webhook-endpoints/service.ts"
import { fireTimers } from "../../workers/watches/fire-timers.ts"
import { followEvents } from "../../workers/watches/follow-events.ts"
import { followReplays } from "../../workers/watches/follow-replays.ts"
import { reapEndpoints } from "../../workers/watches/reap-endpoints.ts"
import { reapExpired } from "../../workers/watches/reap-expired.ts"
import { dueDeliveries } from "../../workers/webhooks/due.ts"
import { recordOutcomes } from "../../workers/webhooks/outcomes.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { type Engine, engines } from "../harness/engines.ts"
import type { Plan } from "../harness/explained.ts"
import { alice } from "../harness/ownership.ts"
import { activeCollection, importedChip, newUnit, settle } from "../harness/services.ts"
import { type Watched, watchedDatabase } from "../harness/watched-database.ts"

// What each operation executes: how many statements, and whether each uses an index.

/** Statements per operation, without the look-up of the API key, which is cached. */
const statements: Record<string, number> = {
  getWelcome: 0,
  getHealth: 0,
  getOpenApiDocument: 0,
  getReceiptKeys: 1,
  getSettings: 1,
  updateSettings: 1,
  getCorsOrigins: 1,
  replaceCorsOrigins: 1,
  listPublishableKeys: 4,
  createCollection: 6,
  listCollections: 1,
  getCollection: 1,
  updateCollection: 1,
  createMetadataRefresh: 7,
  getMetadataRefresh: 2,
  createUnit: 7,
  listUnits: 3,
  getUnit: 1,
  updateUnit: 3,
  pairChip: 11,
  pairChipsInBulk: 19,
  listChips: 1,
  getChip: 1,
  createTestTap: 2,
  createTap: 5,
  createTapDiagnosis: 2,
  listTaps: 1,
  getTapReceipt: 5,
  getCurrentSessionToken: 1,
  createClaim: 14,
  getClaim: 3,
  listClaims: 3,
  createTransfer: 16,
  getTransfer: 3,
  listTransfers: 2,
  createChipReplacement: 15,
  getChipReplacement: 2,
  listChipReplacements: 2,
  revokeCurrentSessionToken: 12,
  listEvents: 8,
  getEvent: 1,
  createWebhookEndpoint: 4,
  listWebhookEndpoints: 1,
  getWebhookEndpoint: 1,
  updateWebhookEndpoint: 3,
  createWebhookSecret: 2,
  createWebhookTest: 2,
  listWebhookDeliveries: 2,
  createWebhookReplay: 12,
  deleteWebhookEndpoint: 6,
}

/** Meant to be read completely: a list of everything that is then cached for a while. */
const readsAll = ['select "id", "cors_origins" from "organizations"']

/** Reads and sorts a short list that it builds itself; `webhooks.test.ts` counts the rows that it reads for it. */
const listsFew = /\) firsts inner join "webhook_queue"/

/** These sort the few rows that an index found: the taps of one chip, due timers, versions of key sets. */
const sortsFew =
  /from "taps" where .* "taps"."chip_id" = |from "actor_timers" where|from "key_set_versions"|"position" is null/

/** Small tables or partial indexes: open work and service-wide keys are few, and all of them are wanted. */
const ofLittle =
  /\b(events_unnumbered|effects_one_open_per_invoke|webhook_endpoints_(replaying|retrying|deleted)|receipt_keys(_pkey)?)\b/

/** A stream never ends, so it is not executed here; its own statement is, and the others are those of `listEvents`. */
const ending = routes.filter(({ run }) => run.kind !== "stream")

type Asked = Pick<Watched, "text" | "params">

describe.each(engines)("on $name", (engine) => {
  let seen: Seen
  beforeAll(async () => {
    seen = await askEverything(engine)
  }, 120_000)
  afterAll(() => seen.close())

  test("every operation was executed successfully", () => {
    expect([...new Set(seen.exchanges.map(({ operation }) => operation))].sort()).toEqual(
      ending.map(({ operation }) => operation).sort(),
    )
    expect(
      seen.exchanges.filter(({ answer }) => answer.status >= 300).map(({ answer }) => answer.text),
    ).toEqual([])
  })

  test("no operation executes more or fewer statements than listed here", () => {
    const most: Record<string, number> = {}
    for (const { operation, asked } of seen.exchanges)
      most[operation] = Math.max(most[operation] ?? 0, asked.length)
    expect(most).toEqual(statements)
  })

  test("every statement uses an index", async () => {
    const all = [...seen.exchanges.flatMap(({ asked }) => asked), ...seen.ofWorkers]
    const known = new Map(all.map((asked) => [asked.text, asked]))
    const wrong: string[] = []
    for (const asked of known.values()) {
      if (readsAll.includes(asked.text) || listsFew.test(asked.text)) continue
      for (const step of await seen.stepsWithoutIndex(asked))
        if (!ofLittle.test(step)) wrong.push(`${step}: ${asked.text}`)
    }
    expect(wrong).toEqual([])
  })
})

type Seen = {
  exchanges: { operation: string; answer: Answer; asked: Asked[] }[]
  ofWorkers: Asked[]
  /** The steps of a statement's plan that scan a whole table or index. */
  stepsWithoutIndex(asked: Asked): Promise<string[]>
  close(): Promise<void>
}

async function askEverything(engine: Engine): Promise<Seen> {
  const service = await startService(engine)
  let asked: Asked[] = []
  const context: Context = {
    ...service.context,
    db: watchedDatabase(service.context.db, (each) => asked.push(each)),
  }
  const app = createApp(context).listen({ hostname: "127.0.0.1", port: 0 })
  const watched = { ...service, base_url: `http://127.0.0.1:${app.server?.port}` }
  const exchanges: Seen["exchanges"] = []

  async function note(
    operation: string,
    question: string,
    as: string,
    body?: unknown,
  ): Promise<Record<string, unknown>> {
    asked = []
    const answer = await ask(watched, question, { as, ...(body !== undefined && { body }) })
    exchanges.push({ operation, answer, asked })
    return answer.body
  }

  const maker = await createCustomer(service)
  await ask(watched, "GET /v1/settings", { as: maker.key })
  await askAsMaker(service, maker, note)
  await askAsVisitor(service, maker, note)
  await askAboutEvents(maker, note)
  asked = []
  await fireTimers(context)
  await reapExpired(context)
  await askAsDeliverer(context, maker)
  await organizationsWithEventsAfter(context.db.read, [maker.caller.organization_id, newId()], 1)
  const explain = await explainOn(engine, service)
  return {
    exchanges,
    ofWorkers: asked,
    stepsWithoutIndex: explain.stepsWithoutIndex,
    async close() {
      await explain.close()
      await app.stop(true)
      await service.close()
    },
  }
}

type Note = (
  operation: string,
  question: string,
  as: string,
  body?: unknown,
) => Promise<Record<string, unknown>>

async function askAsMaker(service: HttpService, maker: Customer, note: Note): Promise<void> {
  const { key, caller } = maker
  const { behind } = service
  const collection = await activeCollection(behind, caller)
  const [unit, second, third, fourth] = await Promise.all(
    [0, 1, 2, 3].map(() => newUnit(behind, caller, collection)),
  )
  const chip = await importedChip(behind, caller)
  const replacement = await importedChip(behind, caller)
  const { e } = emitSun(chip.tag, 1)

  await note("getWelcome", "GET /", key)
  await note("getHealth", "GET /health", key)
  await note("getOpenApiDocument", "GET /openapi.json", key)
  await note("getSettings", "GET /v1/settings", key)
  await note("updateSettings", "PATCH /v1/settings", key, { default_redirect_url: "https://shop.example" })
  await note("getCorsOrigins", "GET /v1/settings/cors-origins", key)
  const cors_origins = ["https://shop.example"]
  await note("replaceCorsOrigins", "PUT /v1/settings/cors-origins", key, { cors_origins })
  await note("listPublishableKeys", "GET /v1/publishable-keys", key)
  await note("createCollection", "POST /v1/collections", key, { name: "Autumn" })
  for (const filter of ["", "?external_id=nothing", "?limit=1"])
    await note("listCollections", `GET /v1/collections${filter}`, key)
  await note("getCollection", `GET /v1/collections/${collection.id}`, key)
  await note("updateCollection", `PATCH /v1/collections/${collection.id}`, key, { redirect_url: null })
  const refreshes = `/v1/collections/${collection.id}/metadata-refreshes`
  const refresh = await note("createMetadataRefresh", `POST ${refreshes}`, key, {})
  await note("getMetadataRefresh", `GET ${refreshes}/${refresh.id}`, key)
  await note("createUnit", "POST /v1/units", key, { collection_id: collection.id, external_id: "item-1" })
  for (const filter of [
    "",
    "?external_id=nothing",
    `?chip_id=${chip.chip_id}`,
    `?collection_id=${collection.id}`,
    `?collection_id=${collection.id}&ownership_status=owned`,
    `?collection_id=${collection.id}&external_id=nothing`,
    "?token_status=pending",
    "?token_status=active",
    "?ownership_status=custody",
  ])
    await note("listUnits", `GET /v1/units${filter}`, key)
  await note("listUnits", `GET /v1/units?limit=1&collection_id=${collection.id}`, key)
  const { pagination } = await note("listUnits", "GET /v1/units?limit=1", key)
  await note("listUnits", `GET /v1/units?limit=1&cursor=${(pagination as Page).next_cursor}`, key)
  await note("getUnit", `GET /v1/units/${unit?.id}`, key)
  await note("updateUnit", `PATCH /v1/units/${unit?.id}`, key, { external_id: "item-2" })
  await note("pairChip", "POST /v1/chips", key, { unit_id: unit?.id, chip_id: chip.chip_id, e })
  await note("pairChip", "POST /v1/chips", key, { unit_id: second?.id, is_test: true })
  const chips = [third, fourth].map((each) => ({ unit_id: each?.id, is_test: true }))
  const bulk = await note("pairChipsInBulk", "POST /v1/chips/bulk", key, { chips })
  for (const filter of ["", "?is_test=true", "?is_test=false"])
    await note("listChips", `GET /v1/chips${filter}`, key)
  await note("getChip", `GET /v1/chips/${chip.chip_id}`, key)
  const [test] = (bulk.chips ?? bulk.data ?? []) as { chip_id: string }[]
  const emitted = await note("createTestTap", "POST /v1/test-helpers/taps", key, { chip_id: test?.chip_id })
  const tap = await note("createTap", "POST /v1/taps", key, { chip_id: test?.chip_id, e: emitted.e })
  await note("createTap", "POST /v1/taps", key, {
    chip_id: chip.chip_id,
    e: emitSun(chip.tag, 2).e,
    dry_run: true,
  })
  await note("createTapDiagnosis", "POST /v1/tap-diagnoses", key, {
    url: `https://shop.example/${chip.chip_id}?e=${emitSun(chip.tag, 3).e}`,
  })
  const since = "created_after=2026-01-01T00:00:00Z"
  for (const filter of [
    "",
    "?is_test=true",
    `?${since}`,
    `?chip_id=${chip.chip_id}`,
    `?chip_id=${chip.chip_id}&${since}`,
    `?unit_id=${unit?.id}`,
    `?unit_id=${unit?.id}&${since}&is_test=true`,
    `?unit_id=${unit?.id}&chip_id=${chip.chip_id}&created_before=2030-01-01T00:00:00Z`,
  ])
    await note("listTaps", `GET /v1/taps${filter}`, key)
  await note("getTapReceipt", `GET /v1/taps/${tap.id}/receipt`, key)
  await note("getReceiptKeys", "GET /.well-known/jwks.json", key)

  await settle(behind, String(unit?.id), { serial: 1, transaction_hash: "0x02" })
  const made = await note("createChipReplacement", `POST /v1/units/${unit?.id}/chip-replacements`, key, {
    chip_id: replacement.chip_id,
    e: emitSun(replacement.tag, 1).e,
  })
  await note("getChipReplacement", `GET /v1/units/${unit?.id}/chip-replacements/${made.id}`, key)
  await note("listChipReplacements", `GET /v1/units/${unit?.id}/chip-replacements`, key)
}

type Page = { next_cursor: string }

async function askAsVisitor(service: HttpService, maker: Customer, note: Note): Promise<void> {
  const { token, unit_id } = await createVisitor(service, maker)
  await note("getCurrentSessionToken", "GET /v1/session-tokens/current", token)
  const claim = await note("createClaim", `POST /v1/units/${unit_id}/claims`, token, { recipient: alice })
  await note("getClaim", `GET /v1/units/${unit_id}/claims/${claim.id}`, token)
  await note("listClaims", `GET /v1/units/${unit_id}/claims`, token)
  await settle(service.behind, String(claim.id), { transaction_hash: `0x${"ab".repeat(32)}` })
  service.chain.owner = alice
  const recipient = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
  const transfer = await note("createTransfer", `POST /v1/units/${unit_id}/transfers`, token, { recipient })
  await note("getTransfer", `GET /v1/units/${unit_id}/transfers/${transfer.id}`, token)
  await note("listTransfers", `GET /v1/units/${unit_id}/transfers`, maker.key)
  await note("revokeCurrentSessionToken", "DELETE /v1/session-tokens/current", token)
}

/** Executes what a worker does to number events, queue them for an endpoint and send them. */
async function askAsDeliverer(context: Context, { caller }: Customer): Promise<void> {
  const { organization_id } = caller
  const url = "https://203.0.112.9/hook"
  const { endpoint } = await inTurn(context, null, (turn) =>
    createWebhookEndpoint(turn, context.config.service_secret, caller, { body: { url }, url }),
  )
  await inTurn(context, null, (turn) =>
    recordEvent(turn, {
      ...{ type: "unit.created", organization_id, unit_id: newId(), collection_id: null, is_test: false },
      ...{ data: {}, endpoint_id: null },
    }),
  )
  await followEvents(context)
  const at = context.clock()
  const [delivery] = await dueDeliveries(context.db.read, endpoint.id, { at, limit: 10 })
  if (!delivery) throw new Error("an event was to be sent")
  const answer = { response_status: 500, error: "responded with status 500", milliseconds: 1 }
  await inTurn(context, null, (turn) => recordOutcomes(turn, endpoint.id, [{ delivery, answer }]))
  const since = new Date(0)
  await inTurn(context, null, (turn) =>
    createWebhookReplay(turn, caller, endpoint.id, { since, event_id: delivery.event.id }),
  )
  await followReplays(context)
  await inTurn(context, null, (turn) => sendEvent(turn, endpoint.id, { type: "PAUSE" }))
  await followEvents(context)
  await inTurn(context, null, (turn) => deleteWebhookEndpoint(turn, caller, endpoint.id))
  while (await reapEndpoints(context));
}

async function askAboutEvents({ key }: Customer, note: Note): Promise<void> {
  const { events } = (await note("listEvents", "GET /v1/events?after=0", key)) as { events: SeenEvent[] }
  const event = events.find(({ unit_id }) => unit_id !== null)
  for (const filter of [
    "",
    "?type=unit.created",
    `?unit_id=${event?.unit_id}`,
    `?collection_id=${event?.collection_id}`,
    "?is_test=true",
    `?after=${event?.id}&type=unit.created`,
  ])
    await note("listEvents", `GET /v1/events${filter}`, key)
  await note("getEvent", `GET /v1/events/${event?.id}`, key)
  const made = await note("createWebhookEndpoint", "POST /v1/webhook-endpoints", key, {
    url: "https://receiver.test/events",
  })
  const one = `/v1/webhook-endpoints/${made.id}`
  await note("listWebhookEndpoints", "GET /v1/webhook-endpoints", key)
  await note("getWebhookEndpoint", `GET ${one}`, key)
  await note("updateWebhookEndpoint", `PATCH ${one}`, key, { description: "ours" })
  await note("createWebhookSecret", `POST ${one}/secrets`, key)
  await note("createWebhookTest", `POST ${one}/tests`, key)
  await note("listWebhookDeliveries", `GET ${one}/deliveries`, key)
  await note("createWebhookReplay", `POST ${one}/replays`, key, { event_id: event?.id })
  await note("createWebhookReplay", `POST ${one}/replays`, key, { created_after: "2026-01-01T00:00:00Z" })
  await note("deleteWebhookEndpoint", `DELETE ${one}`, key)
}

type SeenEvent = { id: string; unit_id: string | null; collection_id: string | null }

type Explain = Pick<Seen, "stepsWithoutIndex" | "close">

async function explainOn(engine: Engine, service: HttpService): Promise<Explain> {
  const url = service.behind.database_url
  return engine.name === "sqlite" ? explainOnSqlite(url) : await explainOnPostgres(url)
}

function explainOnSqlite(url: string): Explain {
  const file = new File(url.replace("sqlite:", ""), { readonly: true })
  return {
    async stepsWithoutIndex({ text, params }) {
      const steps = file
        .prepare(`explain query plan ${withHiddenParameters(text)}`)
        .all(...(params as never[])) as {
        detail: string
      }[]
      const sorts = sortsFew.test(text) ? [] : [/^USE TEMP B-TREE/]
      const wrong = [/^SCAN (?!CONSTANT|oldest|\(subquery)/, ...sorts]
      return steps
        .map(({ detail }) => detail)
        .filter((detail) => wrong.some((pattern) => pattern.test(detail)))
    },
    async close() {
      file.close()
    },
  }
}

/** Small tables are scanned even if there is an index, so scans are disabled to see whether Postgres could use one. */
async function explainOnPostgres(url: string): Promise<Explain> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query("set enable_seqscan = off")
  return {
    async stepsWithoutIndex({ text, params }) {
      const { rows } = await client.query(`explain (format json) ${text}`, params)
      return readsWhole(rows[0]["QUERY PLAN"][0].Plan)
    },
    close: () => client.end(),
  }
}

function readsWhole(plan: Plan): string[] {
  const type = plan["Node Type"]
  const isWhole = type === "Seq Scan" || (/^(Bitmap )?Index/.test(type) && !plan["Index Cond"])
  const name = plan["Index Name"] ?? plan["Relation Name"]
  return [...(isWhole ? [`${type} of ${name}`] : []), ...(plan.Plans ?? []).flatMap(readsWhole)]
}
