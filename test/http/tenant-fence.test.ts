import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { routes } from "../../src/api/routes.ts"
import { chips } from "../../src/db/schema.ts"
import { newId } from "../../src/platform/ids.ts"
import { createTestTap } from "../../src/resources/taps/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { createProduct, importedChip } from "../harness/services.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

// Every query filters by the calling organization. Row-level security would have Postgres check it again, but workers
// and the runtime work for all organizations and would have to bypass it, and SQLite has none. So this test inspects
// what the database returns: while one organization requests everything there is, including by another's IDs, no
// returned row, used or not, contains anything of the other.
describe.each(engines)("on $name no data of another organization is read by", (engine) => {
  let service: HttpService
  let us: Customer
  let theirs: Record<string, string>
  let theirE: string
  const seen: string[] = []

  beforeAll(async () => {
    service = await startService(engine)
    const { db } = service.context
    const watched = watchedDatabase(db, ({ rows }) => {
      seen.push(...rows.map((row) => JSON.stringify(row).toLowerCase()), "")
    })
    Object.assign(db, watched)
    us = await createCustomer(service)
    const them = await createCustomer(service)
    const { unit_id, chip_id, token } = await createVisitor(service, them)
    const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    const claim = await ask(service, `POST /v1/units/${unit_id}/claims`, { as: token, body: { recipient } })
    const unit = await ask(service, `GET /v1/units/${unit_id}`, { as: them.key })
    theirs = {
      organization_id: them.caller.organization_id,
      unit_id,
      chip_id,
      claim_id: String(claim.body.id),
      collection_id: String((unit.body.collection as { id: string }).id),
      product_id: await createProduct(service.behind, them.caller),
      spare_chip_id: (await importedChip(service.behind, them.caller)).chip_id,
      transfer_id: newId(),
      replacement_id: newId(),
    }
    const emit = service.behind.turn((turn) =>
      createTestTap(turn, service.behind.secret, them.caller, { chip_id }),
    )
    theirE = (await emit).e
  })
  afterAll(() => service.close())

  // A stream never ends, so it cannot be awaited; listEvents covers what it reads.
  const asked = routes.filter(
    ({ credentials, run }) => credentials.includes("api_key") && run.kind !== "stream",
  )
  test.each(asked.map((route) => [route.operation, route] as const))(
    "%s",
    async (operation, { method, path }) => {
      seen.length = 0
      const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name) => theirs[name] ?? newId())
      const body = method === "GET" || method === "DELETE" ? undefined : bodyOf(operation)
      const answer = await ask(service, `${method} ${filled}`, {
        as: us.key,
        ...(body !== undefined && { body }),
      })
      expect(answer.status).not.toBe(400)
      expect(answer.status).toBeLessThan(500)
      expect(seen.length).toBeGreaterThan(0)
      const found = Object.entries(theirs).filter(([, id]) =>
        seen.some((row) => row.includes(id.toLowerCase())),
      )
      expect(found).toEqual([])
    },
  )

  test("the check itself detects a leaked row", async () => {
    seen.length = 0
    await service.context.db.read.select().from(chips)
    expect(seen.some((row) => row.includes(String(theirs.chip_id).toLowerCase()))).toBe(true)
  })

  function bodyOf(operation: string): unknown {
    const { unit_id, chip_id, spare_chip_id, collection_id, product_id } = theirs
    const bodies: Record<string, unknown> = {
      createTap: { chip_id, e: theirE },
      createTestTap: { chip_id },
      createTapDiagnosis: { url: `https://shop.example/${chip_id}?e=${theirE}` },
      pairChip: { unit_id, chip_id: spare_chip_id, e: theirE },
      pairChipsInBulk: { chips: [{ unit_id, is_test: true }] },
      createUnit: { collection_id },
      updateUnit: { product_id },
      createCollection: { name: "Ours" },
      updateCollection: { redirect_url: null },
      createChipReplacement: { is_test: true },
      updateSettings: { default_redirect_url: null },
      replaceCorsOrigins: { cors_origins: [] },
      createWebhookEndpoint: { url: "https://203.0.112.9/" },
      updateWebhookEndpoint: { status: "paused" },
      createWebhookReplay: { created_after: "2026-01-01T00:00:00Z" },
    }
    return bodies[operation] ?? {}
  }
})
