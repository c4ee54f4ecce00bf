import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { migrate } from "../../../src/db/migrate.ts"
import { openDatabase } from "../../../src/db/open.ts"
import { actors, type JournalEvent } from "../../../src/db/schema.ts"
import type { Turn } from "../../../src/db/turn.ts"
import { lifecycles, type MachineName } from "../../../src/engine/actors/lifecycles.ts"
import { sendEvent, startActor } from "../../../src/engine/actors/runtime.ts"
import { inTurn } from "../../../src/platform/context.ts"
import { newId } from "../../../src/platform/ids.ts"
import { createTestContext, insertScene, type Scene, startOfTime } from "../../harness/scene.ts"

/** A snapshot as an earlier release stored it, and an event that its actor was waiting for. */
export type StoredSnapshot = { state: string; snapshot: unknown; event: JournalEvent; next_state: string }

/** Run once for each new version of a machine, as `bun test/machines/snapshots/write.ts`; existing files are kept. */
async function writeMissingSnapshots(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "snapshots-"))
  const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
  await migrate(db, startOfTime)
  const context = createTestContext(db)
  for (const name of Object.keys(lifecycles) as MachineName[]) {
    const path = join(import.meta.dir, `${name}.v${lifecycles[name].version}.json`)
    if (existsSync(path)) continue
    const stored = await Promise.all(
      lives[name].map((life) => inTurn(context, null, (turn) => live(turn, name, life))),
    )
    writeFileSync(path, `${JSON.stringify(stored.flat(), null, 2)}\n`)
  }
  await db.close()
  rmSync(folder, { recursive: true })
}

/** What one actor is started with, and the events it receives. */
type Life = { input: Record<string, unknown>; events: JournalEvent[] }

async function live(turn: Turn, machine: MachineName, life: Life): Promise<StoredSnapshot[]> {
  const scene = await insertScene(turn.tx)
  const input =
    "unit_id" in life.input ? { ...life.input, unit_id: await startUnit(turn, scene) } : life.input
  const id = newId()
  await startActor(turn, { id, machine, organization_id: scene.organization_id, input })
  const stored: StoredSnapshot[] = []
  for (const event of life.events) {
    const [actor] = await turn.tx.select().from(actors).where(eq(actors.id, id))
    if (!actor) throw new Error("the actor was started above")
    const { accepted, state } = await sendEvent(turn, id, event)
    if (!accepted) throw new Error(`${machine} in ${actor.state} does not take ${event.type}`)
    stored.push({ state: actor.state, snapshot: actor.snapshot, event, next_state: state })
  }
  return stored
}

/** A unit for actors that report to one. */
async function startUnit(turn: Turn, { organization_id, collection_id, lane_id }: Scene): Promise<string> {
  const id = newId()
  await startActor(turn, { id, machine: "unit-token", organization_id, input: { collection_id, lane_id } })
  return id
}

const transaction_hash = `0x${"01".repeat(32)}`
const lane_id = "31337:0x0000000000000000000000000000000000000001"
const unit_id = newId()
const recipient = "0x0000000000000000000000000000000000000002"
const authorization = {
  chain_id: 31_337,
  contract_address: "0x0000000000000000000000000000000000000003",
  serial: 1,
  authorization_digest: `0x${"02".repeat(32)}`,
  authorization_nonce: 0,
  deadline_at: "2030-01-01T00:30:00.000Z",
}

const lives: Record<MachineName, Life[]> = {
  "unit-token": [
    {
      input: { collection_id: newId(), lane_id },
      events: [
        { type: "PAIRED", chip_id: "0000000001", bulk_pairing_id: null },
        failed("issueUnit"),
        { type: "RETRY" },
        done("issueUnit", { serial: 1, transaction_hash }),
        { type: "CHIP_REPLACED", chip_id: "0000000002" },
        { type: "CLAIMED" },
      ],
    },
  ],
  "collection-contract": [
    {
      input: { collection_id: newId(), lane_id },
      events: [failed("deployCollection"), { type: "RETRY" }, done("deployCollection", { transaction_hash })],
    },
  ],
  claim: [
    {
      input: { unit_id, recipient, relay: { lane_id }, authorization: null },
      events: [done("relayClaim", { transaction_hash })],
    },
    {
      input: { unit_id, recipient, relay: null, authorization },
      events: [done("watchAuthorization", { outcome: "expired" })],
    },
  ],
  transfer: [
    {
      input: { unit_id, authorization },
      events: [done("watchAuthorization", { outcome: "used", transaction_hash })],
    },
  ],
  "chip-replacement": [
    {
      input: { lane_id, unit_id, previous_chip_id: "0000000001", chip_id: "0000000002" },
      events: [{ type: "SUBMITTED", transaction_hash }, done("replaceChip", { transaction_hash })],
    },
  ],
  "metadata-refresh": [
    {
      input: { lane_id, collection_id: newId() },
      events: [{ type: "SUBMITTED", transaction_hash }, done("refreshMetadata", { transaction_hash })],
    },
  ],
  "webhook-endpoint": [
    {
      input: {},
      events: [
        { type: "PAUSE" },
        { type: "ENABLE" },
        { type: "GAVE_UP", last_error: "answered 500" },
        { type: "DELETE" },
      ],
    },
  ],
  "session-token": [
    { input: { ttl_seconds: 600 }, events: [{ type: "REVOKE" }] },
    { input: { ttl_seconds: 600 }, events: [{ type: "xstate.after.ttl.session-token.valid" }] },
  ],
}

function done(effect: string, output: Record<string, unknown>): JournalEvent {
  return { type: `xstate.done.actor.${effect}`, output, actorId: effect }
}

function failed(effect: string): JournalEvent {
  const error = { code: "chain.reverted", message: "The chain refused it." }
  return { type: `xstate.error.actor.${effect}`, error, actorId: effect }
}

if (import.meta.main) await writeMissingSnapshots()
