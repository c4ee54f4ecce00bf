import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import { webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { webhooks } from "../../src/operator/commands/webhooks.ts"
import { consolePages } from "../../src/operator/console/routes.ts"
import { type OperatorServer, startOperatorServer } from "../../src/operator/port/server.ts"
import { webhookStates } from "../../src/operator/stories/webhook-states.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import { createWebhookEndpoint } from "../../src/resources/webhook-endpoints/service.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, openService, type TestService } from "../harness/services.ts"

setDefaultTimeout(60_000)
const [sqlite, postgres] = engines
const browser = useBrowser()

let service: TestService
let server: OperatorServer
let caller: Caller
beforeAll(async () => {
  service = await openService(sqlite as (typeof engines)[number])
  caller = await createCaller(service)
  const { context } = service
  server = startOperatorServer({ ...context, config: { ...context.config, operator_port: 0 } }, [
    consolePages(context),
  ])
})
afterAll(async () => {
  await server.stop()
  await service.close()
})

async function makeEndpoint(of: TestService, caller: Caller, name: string): Promise<string> {
  const url = `https://${name}.example/a/rather/long/path/that/a/phone/has/to/break/somewhere`
  const { secret } = of
  const made = await of.turn((turn) => createWebhookEndpoint(turn, secret, caller, { body: { url }, url }))
  return made.endpoint.id
}

/** An event has been waiting for the endpoint for this long, and one attempt failed. */
async function keepWaiting(of: TestService, endpoint_id: string, seconds: number): Promise<void> {
  const at = new Date(of.context.clock().getTime() - seconds * 1_000)
  const event_id = newId()
  const refused = { endpoint_id, event_id, created_at: at }
  await of.turn(async ({ tx }) => {
    await tx.insert(webhookQueue).values({
      ...refused,
      line: event_id,
      position: 1,
      attempts: 1,
      due_at: at,
      last_error: "responded with status 500",
    })
    await tx.insert(webhookDeliveries).values({
      ...{ ...refused, id: newId(), attempt: 1, status: "failed", response_status: 500 },
      ...{ error: "responded with status 500", milliseconds: 12 },
    })
  })
}

test("the console's webhook page shows who paused which endpoint and what is waiting, in light and dark mode, on a phone", async () => {
  const [calm, waiting, givenUp, resting] = [
    await makeEndpoint(service, caller, "calm"),
    await makeEndpoint(service, caller, "waiting"),
    await makeEndpoint(service, caller, "given-up"),
    await makeEndpoint(service, caller, "resting"),
  ]
  await keepWaiting(service, waiting, 60)
  await keepWaiting(service, givenUp, 3_600)
  await service.turn((turn) =>
    sendEvent(turn, givenUp, { type: "GAVE_UP", last_error: "responded with status 500" }),
  )
  await service.turn((turn) => sendEvent(turn, resting, { type: "PAUSE" }))

  const visited = await browser.newPage()
  const { page } = visited
  await page.goto(`${server.url}/console/webhooks`)
  const rows = await page.locator("tr[data-endpoint]").all()
  const shown = await Promise.all(
    rows.map(
      async (row) => [await row.getAttribute("data-endpoint"), String(await row.textContent())] as const,
    ),
  )
  expect(shown.map(([id]) => id)).toEqual([givenUp, waiting, calm, resting])
  expect(shown[0]?.[1]).toContain("paused by the service, after ten failed attempts")
  expect(shown[0]?.[1]).toMatch(/attempt 1: responded with status 500/)
  expect(shown[3]?.[1]).toContain("paused by its organization")
  expect(await flawsOf(visited, "webhooks")).toEqual([])
  expect(visited.complaints).toEqual([])

  await page.click(`a[href="/console/actors/${givenUp}"]`)
  await page.waitForURL(`**/console/actors/${givenUp}`)
  expect(await page.textContent("main")).toContain("ten attempts")

  const run = webhooks.plan({ option: () => null } as unknown as Parameters<typeof webhooks.plan>[0])
  const output = await run({ context: service.context } as Parameters<typeof run>[0])
  if ("pieces" in output) throw new Error("this command answers at once")
  const { text, document } = output
  expect(text).toMatch(/paused by the service, after ten failed attempts +1 /)
  expect(document).toMatchObject({
    webhook_endpoints: [{ id: givenUp, failure: { code: "webhook_endpoint.given_up" } }, {}, {}, {}],
  })
})

test("if there are more endpoints than are shown, those that wait longest are shown, on both engines", async () => {
  for (const engine of [sqlite, postgres]) {
    const own = await openService(engine as (typeof engines)[number])
    const { organization_id } = await createCaller(own)
    const made = Array.from({ length: 201 }, () => ({
      ...{ id: newId(), organization_id, url: "https://many.example/", status: "enabled" as const },
      ...{ secrets: [], created_at: own.context.clock() },
    }))
    await own.turn(({ tx }) => tx.insert(webhookEndpoints).values(made))
    const newest = made.at(-1)
    await keepWaiting(own, String(newest?.id), 60)
    const states = await webhookStates(own.context.db.read, null)
    expect([states.length, states[0]?.id, states[0]?.waiting]).toEqual([200, String(newest?.id), 1])
    const queue = await own.context.db.read
      .select()
      .from(webhookQueue)
      .where(eq(webhookQueue.endpoint_id, String(newest?.id)))
    expect(states[0]?.waiting_since).toBe(String(queue[0]?.created_at.toISOString()))
    await own.close()
  }
})
