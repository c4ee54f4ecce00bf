import { afterAll, beforeAll, expect, test } from "bun:test"
import { webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { actors } from "../../src/db/schema.ts"
import { createHealth } from "../../src/operator/console/health.ts"
import { newId } from "../../src/platform/ids.ts"
import { type Engine, engines } from "../harness/engines.ts"
import { createCaller, openService, type TestService } from "../harness/services.ts"

const [sqlite] = engines
let service: TestService
beforeAll(async () => {
  service = await openService(sqlite as Engine)
}, 60_000)
afterAll(() => service.close())

/** What the console calls wrong, and where it leads to. */
async function wrongSigns() {
  const signs = await createHealth(service.context)()
  return signs.filter(({ is_wrong }) => is_wrong).map(({ text, address }) => ({ text, address }))
}

test("the console says how many more webhook endpoints have events waiting than it names", async () => {
  const { organization_id } = await createCaller(service)
  const hourAgo = new Date(service.context.clock().getTime() - 3_600_000)
  for (let n = 0; n < 7; n++) {
    const endpoint_id = newId()
    await service.turn(async ({ tx }) => {
      await tx.insert(webhookEndpoints).values({
        ...{ id: endpoint_id, organization_id, url: `https://${n}.example/`, status: "enabled" },
        ...{ secrets: [], created_at: hourAgo },
      })
      await tx.insert(webhookQueue).values({
        ...{ endpoint_id, event_id: newId(), line: newId(), position: 1, attempts: 0 },
        ...{ due_at: hourAgo, created_at: hourAgo },
      })
    })
  }
  const said = (await wrongSigns()).filter(({ text }) => text.includes("webhook endpoint"))
  expect(said.length).toBe(6)
  expect(said.at(-1)).toEqual({
    text: "2 more webhook endpoints have events waiting",
    address: "/console/webhooks",
  })
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
