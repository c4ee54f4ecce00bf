import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Address } from "viem"
import { createApp } from "../../src/api/app.ts"
import { chips } from "../../src/db/schema.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { newId } from "../../src/platform/ids.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { activeCollection, openEngine, type RunningWorkers, until } from "../harness/engine.ts"
import { importedChip } from "../harness/services.ts"
import { asThief, thief } from "../harness/thief.ts"
import { chipRowOf, unitRowOf } from "../harness/unit-rows.ts"

// A restore can lose the fact that a unit got another chip and was then claimed, which is permanent on the chain.

setDefaultTimeout(60_000)
let running: RunningWorkers
let app: ReturnType<typeof createApp>

beforeAll(async () => {
  running = await openEngine()
  app = createApp(running.context).listen({ hostname: "127.0.0.1", port: 0 })
})
afterAll(async () => {
  await app.stop(true)
  await running.close()
})

test("a claimed unit can be paired with the chip that the chain has for it, and with no other", async () => {
  const { id: collection_id, address } = await activeCollection(running, 31_337)
  const [first, forgotten, other] = [await freshChip(), await freshChip(), await freshChip()]
  const unit_id = await issuedUnit(collection_id, first)
  await asThief(running.stage, address as Address, [
    ["replaceChip", 1n, asNumber(first), asNumber(forgotten)],
    ["claim", 1n, thief],
  ])
  await until(async () => (await unitRowOf(running.context.db.read, unit_id)).claimed)

  const replacements = await replacementsOf(unit_id)
  expect(await replacements.create(other)).toMatchObject({ error: { code: "chip_replacement.locked" } })
  const { id = "" } = await replacements.create(forgotten)
  await until(async () => !["prepared", "submitted"].includes((await replacements.get(id)).status ?? ""))
  expect(await replacements.get(id)).toMatchObject({
    ...{ status: "confirmed", previous_chip_id: first.chip_id, chip_id: forgotten.chip_id },
    transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
  })
  const { read } = running.context.db
  expect((await chipRowOf(read, unit_id)).chip_id).toBe(forgotten.chip_id)
  const [retired] = await read.select().from(chips).where(eq(chips.chip_id, first.chip_id))
  expect(retired?.retired_at).toEqual(expect.any(Date))
  expect(await unitRowOf(running.context.db.read, unit_id)).toMatchObject({ claimed: true, serial: 1 })
  expect(await replacements.create(other)).toMatchObject({ error: { code: "chip_replacement.locked" } })
})

type Chip = { chip_id: string; tag: SunChip }

async function freshChip(): Promise<Chip> {
  const { context, caller, turn } = running
  const secret = context.config.service_secret
  return await importedChip({ secret, turn }, caller)
}

function asNumber({ chip_id }: Chip): number {
  return Number.parseInt(chip_id, 16)
}

async function issuedUnit(collection_id: string, { chip_id, tag }: Chip): Promise<string> {
  const { context, caller, turn } = running
  const { id: unit_id } = await turn((t) => createUnit(t, caller, { collection_id }))
  const body = { unit_id, chip_id, e: emitSun(tag, 1).e }
  await turn((t) => pairChip(t, context.config.service_secret, caller, body))
  await until(async () => (await unitRowOf(running.context.db.read, unit_id)).token_status === "active")
  return unit_id
}

/** The replacements of a unit, as the brand lists them. */
async function replacementsOf(unit_id: string) {
  const { organization_id } = running.caller
  const { key } = await running.turn((t) => issueApiKey(t, { organization_id, name: null }))
  const url = `http://127.0.0.1:${app.server?.port}/v1/units/${unit_id}/chip-replacements`
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const ask = async (path: string, init: RequestInit = {}) =>
    (await (await fetch(url + path, { headers, ...init })).json()) as Record<string, string>
  let counter = 1
  return {
    get: (id: string) => ask(`/${id}`),
    create({ chip_id, tag }: Chip) {
      counter += 1
      const body = JSON.stringify({ chip_id: chip_id.toLowerCase(), ...emitSun(tag, counter) })
      return ask("", { method: "POST", body, headers: { ...headers, "idempotency-key": newId() } })
    },
  }
}
