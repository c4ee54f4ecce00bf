import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { recordEvent } from "../../src/engine/events/record.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { createWebhookEndpoint } from "../../src/resources/webhook-endpoints/service.ts"
import { startWorkers } from "../../workers/start.ts"

test("while Redis is down events still arrive, because workers poll", async () => {
  const folder = mkdtempSync(join(tmpdir(), "redis-away-"))
  const { promise: arrived, resolve } = Promise.withResolvers<string>()
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      resolve(((await request.json()) as { id: string }).id)
      return new Response()
    },
  })
  const config = loadConfig({
    SERVICE_SECRET: "a secret of tests that is long enough",
    DATA_DIR: folder,
    REDIS_URL: "redis://127.0.0.1:1",
    LOG_LEVEL: "silent",
  })
  const world = await openWorld(config, tell)
  const { context } = world
  const workers = startWorkers(world)
  const { id: organization_id } = await inTurn(context, null, (turn) =>
    createOrganization(turn, { name: "Maker", default_chain_id: null, allowed_chain_ids: [] }),
  )
  const caller = { organization_id, kind: "api_key" as const, credential_id: newId(), session: null }
  const url = `http://127.0.0.1:${receiver.port}/`
  await inTurn(context, null, (turn) =>
    createWebhookEndpoint(turn, config.service_secret, caller, { body: { url }, url }),
  )
  const { id } = await inTurn(context, null, (turn) =>
    recordEvent(turn, {
      ...{ type: "unit.created", organization_id, unit_id: newId(), collection_id: null, is_test: false },
      ...{ data: {}, endpoint_id: null },
    }),
  )
  expect(await arrived).toBe(id)
  await workers.stop()
  await world.close()
  await receiver.stop(true)
  rmSync(folder, { recursive: true })
}, 30_000)
