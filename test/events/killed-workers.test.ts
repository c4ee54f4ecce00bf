import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { webhookQueue } from "../../src/db/event-schema.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { newId } from "../../src/platform/ids.ts"
import { createWebhookEndpoint } from "../../src/resources/webhook-endpoints/service.ts"
import { followEvents } from "../../workers/watches/follow-events.ts"
import { createDeliverer } from "../../workers/webhooks/deliver.ts"
import { until } from "../harness/engine.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, type OpenService, openService } from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  let service: OpenService
  beforeAll(async () => {
    service = await openService(engine)
  }, 60_000)
  afterAll(() => service.close())

  test.each(["webhook.send", "webhook.sent", "webhook.recorded"])(
    "what a worker killed at %s leaves behind, another delivers, in order per unit",
    async (step) => {
      const { context, secret } = service
      const received: { id: string; unit_id: string }[] = []
      const receiver = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        async fetch(request) {
          received.push((await request.json()) as { id: string; unit_id: string })
          return new Response()
        },
      })
      const caller = await createCaller(service)
      const url = `http://127.0.0.1:${receiver.port}/`
      const { endpoint } = await service.turn((turn) =>
        createWebhookEndpoint(turn, secret, caller, { body: { url }, url }),
      )
      const unitIds = [newId(), newId(), newId()]
      const told: { id: string; unit_id: string }[] = []
      for (let number = 0; number < 30; number++) {
        const unit_id = String(unitIds[number % 3])
        const event = {
          type: "unit.created" as const,
          organization_id: caller.organization_id,
          unit_id,
          collection_id: null,
          is_test: false,
          data: { number },
          endpoint_id: null,
        }
        told.push({ id: (await service.turn((turn) => recordEvent(turn, event))).id, unit_id })
      }
      const order = {
        url: service.database_url,
        secret: secret.current,
        step,
        at: context.clock().toISOString(),
      }
      const child = Bun.spawn(
        [process.execPath, join(import.meta.dir, "dying-worker.ts"), JSON.stringify(order)],
        { stderr: "inherit" },
      )
      await child.exited
      expect(child.signalCode).toBe("SIGKILL")

      let skipped = 0
      const successor = createDeliverer(context, {
        owner: newId(),
        checkpoint: () => {},
        steady: () => performance.now() + skipped,
      })
      await followEvents(context)
      const receivedBefore = received.length
      await successor.tick()
      // The dead worker holds the endpoint until its lease expires, whatever the wall clock says.
      service.setTime(new Date(context.clock().getTime() + 3_600_000))
      await successor.tick()
      expect(received.length).toBe(receivedBefore)
      skipped = 16_000
      await until(async () => {
        await successor.tick()
        const waiting = await context.db.read
          .select()
          .from(webhookQueue)
          .where(eq(webhookQueue.endpoint_id, endpoint.id))
        return waiting.length === 0
      })
      await successor.stop()
      await receiver.stop(true)
      for (const unitId of unitIds) {
        const ids = received.filter(({ unit_id }) => unit_id === unitId).map(({ id }) => id)
        const once = ids.filter((id, index) => ids.indexOf(id) === index)
        expect(once).toEqual(told.filter(({ unit_id }) => unit_id === unitId).map(({ id }) => id))
      }
      // At most the deliveries in flight at that moment arrive twice.
      expect(received.length - told.length).toBeLessThanOrEqual(unitIds.length)
    },
    60_000,
  )
})
