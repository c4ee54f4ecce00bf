import { expect, test } from "bun:test"
import { join } from "node:path"
import { webhookEndpoints } from "../../src/db/event-schema.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { newId } from "../../src/platform/ids.ts"
import { createWebhookEndpoint } from "../../src/resources/webhook-endpoints/service.ts"
import { tiedToParent } from "../harness/child-process.ts"
import { until } from "../harness/engine.ts"
import { engines } from "../harness/engines.ts"
import { createCaller, openService } from "../harness/services.ts"

const [sqlite] = engines

test("a worker that is stopped while a receiver never responds ends normally and leaves all other endpoints", async () => {
  const service = await openService(sqlite as (typeof engines)[number])
  service.setTime(new Date())
  const { promise: never } = Promise.withResolvers<Response>()
  const asked: string[] = []
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    fetch(request) {
      const { pathname } = new URL(request.url)
      asked.push(pathname)
      return pathname === "/silent" ? never : new Response()
    },
  })
  const endpointAt = async (path: string) => {
    const caller = await createCaller(service)
    const url = `http://127.0.0.1:${receiver.port}${path}`
    const { organization_id } = caller
    const { endpoint } = await service.turn((turn) =>
      createWebhookEndpoint(turn, service.secret, caller, { body: { url }, url }),
    )
    const event = {
      ...{ type: "unit.created" as const, organization_id, unit_id: newId(), collection_id: null },
      ...{ is_test: false, data: {}, endpoint_id: null },
    }
    await service.turn((turn) => recordEvent(turn, event))
    return endpoint.id
  }
  const silent = await endpointAt("/silent")
  await endpointAt("/quick")
  const child = Bun.spawn(tiedToParent([process.execPath, join(import.meta.dir, "../../workers/main.ts")]), {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: service.database_url,
      SERVICE_SECRET: service.secret.current,
      OPERATOR_PORT: "0",
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  })
  try {
    await until(async () => asked.includes("/silent") && asked.includes("/quick"))
    child.kill("SIGTERM")
    expect(await child.exited).toBe(0)
    const rows = await service.context.db.read.select().from(webhookEndpoints)
    const held = rows.filter(({ lease_owner }) => lease_owner !== null)
    expect(held.map(({ id }) => id)).toEqual([silent])
  } finally {
    child.kill("SIGKILL")
    await receiver.stop(true)
    await service.close()
  }
}, 60_000)
