import { afterAll, beforeAll, expect, test } from "bun:test"
import { webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { actors } from "../../src/db/schema.ts"
import { createHealth } from "../../src/operator/console/health.ts"
import { newId } from "../../src/platform/ids.ts"
import { type Engine, engines } from "../harness/engines.ts"
import { createCaller, openService, type TestService } from "../harness/services.ts"

const [sqlite, postgres] = engines
let service: TestService
beforeAll(async () => {
  service = await openService(sqlite as Engine)
}, 60_000)
afterAll(() => service.close())

/** What the console calls wrong, and where it leads to. */
async function wrongSigns({ context } = service) {
  const signs = await createHealth(context)()
  return signs.filter(({ is_wrong }) => is_wrong).map(({ text, address }) => ({ text, address }))
}

/** An endpoint for which an event waits. */
async function waitingEndpoint(
  at: TestService,
  endpoint: Pick<typeof webhookEndpoints.$inferInsert, "organization_id" | "url" | "status" | "failure">,
  event: Pick<typeof webhookQueue.$inferInsert, "attempts" | "due_at" | "last_error">,
): Promise<string> {
  const [endpoint_id, created_at] = [newId(), event.due_at as Date]
  await at.turn(async ({ tx }) => {
    await tx.insert(webhookEndpoints).values({ ...endpoint, id: endpoint_id, secrets: [], created_at })
    const queued = { endpoint_id, event_id: newId(), line: newId(), position: 1, created_at }
    await tx.insert(webhookQueue).values({ ...event, ...queued })
  })
  return endpoint_id
}

test("the console says how many more webhook endpoints have events waiting than it names", async () => {
  const { organization_id } = await createCaller(service)
  const hourAgo = new Date(service.context.clock().getTime() - 3_600_000)
  for (let n = 0; n < 7; n++) {
    const endpoint = { organization_id, url: `https://${n}.example/`, status: "enabled" as const }
    await waitingEndpoint(service, endpoint, { attempts: 0, due_at: hourAgo })
  }
  const said = (await wrongSigns()).filter(({ text }) => text.includes("webhook endpoint"))
  expect(said.length).toBe(6)
  expect(said.at(-1)).toEqual({
    text: "2 more webhook endpoints have events waiting",
    address: "/console/webhooks",
  })
})

test("the console calls no endpoint wrong that its organization paused, whatever it refused before", async () => {
  const own = await openService(sqlite as Engine)
  const { organization_id } = await createCaller(own)
  const at = own.context.clock()
  const given = { code: "webhook_endpoint.given_up", message: "it refused ten times" }
  for (const [name, failure] of Object.entries({ "paused.example": null, "given-up.example": given })) {
    const error = "responded with status 500"
    const endpoint = { organization_id, url: `https://${name}/`, status: "paused" as const, failure }
    const endpoint_id = await waitingEndpoint(own, endpoint, { attempts: 1, due_at: at, last_error: error })
    await own.turn(({ tx }) =>
      tx.insert(webhookDeliveries).values({
        ...{ id: newId(), endpoint_id, event_id: newId(), attempt: 1, status: "failed" },
        ...{ error, milliseconds: 5, created_at: at },
      }),
    )
  }
  const said = (await wrongSigns(own)).filter(({ text }) => text.includes("webhook endpoint"))
  expect(said.map(({ text }) => text)).toEqual([
    expect.stringContaining("https://given-up.example/ is paused"),
  ])
  await own.close()
})

test("the console says for how many more reasons something is stuck than it names", async () => {
  const { organization_id } = await createCaller(service)
  const at = service.context.clock()
  const stopped = Array.from({ length: 6 }, (_, n) => ({
    ...{ id: newId(), machine: "unit-token", machine_version: 1, organization_id, status: "pending" },
    ...{ state: "pending.stopped" },
    ...{ snapshot: { context: { failure: { code: "issueUnit.reverted", message: `it reverts: ${n}` } } } },
    ...{ version: 2, created_at: at, updated_at: at },
  }))
  await service.turn(({ tx }) => tx.insert(actors).values(stopped))
  const said = (await wrongSigns()).filter(({ text }) => text.includes("stuck"))
  expect(said.length).toBe(6)
  expect(said.at(-1)?.text).toBe("1 more stuck, for other reasons: run operator stuck")
})

test("the console says how far the process's clock is from the database's, which no SQLite has", async () => {
  const own = await openService(postgres as Engine)
  const clocks = async (at: TestService) =>
    (await wrongSigns(at)).map(({ text }) => text).filter((text) => text.includes("clock"))
  const said = async (aheadSeconds: number) => {
    own.setTime(new Date(Date.now() + aheadSeconds * 1_000))
    return await clocks(own)
  }
  expect(await said(0)).toEqual([])
  for (const [seconds, place] of [
    [3_600 * 24 * 91, "ahead of"],
    [-3_600, "behind"],
  ] as const)
    expect(await said(seconds)).toEqual([
      expect.stringMatching(
        new RegExp(`^the clock of this process is \\d+ s ${place} that of the database: is each`),
      ),
    ])
  expect(await clocks(service)).toEqual([])
  await own.close()
})
