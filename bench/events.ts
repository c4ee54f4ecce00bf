import { Database as File } from "bun:sqlite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sendEvent, startActor } from "../src/engine/actors/runtime.ts"
import { openWorld } from "../src/engine/world.ts"
import { loadConfig } from "../src/platform/config.ts"
import { inTurn } from "../src/platform/context.ts"
import { tell } from "../src/resources/news/tell.ts"
import { quantile } from "./load/client.ts"
import { fillDatabase } from "./load/fixture.ts"
import { report } from "./report.ts"

/**
 * Events that machines take in a second, on a file whose every commit is on disk, against bun:sqlite making the same
 * writes in the same groups without a machine. In turns.
 */
const groupSize = 64
const groups = 40
const rounds = 5

const folder = mkdtempSync(join(tmpdir(), "bench-events-"))
const path = join(folder, "service.db")
const made = await fillDatabase(folder, `sqlite:${path}`, groupSize * groups * 2 * (rounds + 1))
const world = await openWorld(loadConfig({ ...made.environment, LOG_LEVEL: "silent" }), tell)
const { context } = world
const file = new File(path)
for (const setting of ["synchronous = full", "foreign_keys = on"]) file.exec(`pragma ${setting}`)

const { organization_id, collection_id } = made
const input = { collection_id, lane_id: "bench" }
const fresh = made.unit_ids.values()
const ratios: number[] = []
let numbers = 1_000
const perSecond = { runtime: [] as number[], raw: [] as number[] }
for (let round = 0; round <= rounds; round++) {
  const runtime = await eventsPerSecond()
  const raw = rawPerSecond()
  if (round === 0) continue
  perSecond.runtime.push(Math.round(runtime))
  perSecond.raw.push(Math.round(raw))
  ratios.push(runtime / raw)
}
await world.close()
file.close()
rmSync(folder, { recursive: true })

const median = (of: number[]) => quantile(of, 0.5)
const result = { ...perSecond, ratios, ratio: median(ratios) }
report(
  result,
  `events of machines: ${median(perSecond.runtime)}/s, the same writes without a machine: ${median(perSecond.raw)}/s, ratio ${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(", ")})\n`,
)

/** Units of a token each: started, then paired. The second event alone is timed. */
async function eventsPerSecond(): Promise<number> {
  const ids = Array.from({ length: groupSize * groups }, () => String(fresh.next().value))
  await Promise.all(
    ids.map((id) =>
      inTurn(context, null, (turn) =>
        startActor(turn, { id, machine: "unit-token", organization_id, input }),
      ),
    ),
  )
  const begin = performance.now()
  for (let first = 0; first < ids.length; first += groupSize)
    await Promise.all(
      ids
        .slice(first, first + groupSize)
        .map((id) =>
          inTurn(context, null, (turn) =>
            sendEvent(turn, id, { type: "PAIRED", chip_id: "0000000001", bulk_pairing_id: null }),
          ),
        ),
    )
  return (ids.length / (performance.now() - begin)) * 1_000
}

/** What one event writes: the actor's row, its journal, an effect and the unit. */
function rawPerSecond(): number {
  const sample = file.prepare("select id, snapshot from actors where state = 'pending.issuing' limit 1").get()
  const { id: actorId, snapshot } = sample as { id: string; snapshot: string }
  const [read, timer, save, event, effect, unit] = [
    "select * from actors where id = ?",
    "select send_id, event from actor_timers where actor_id = ? and due_at <= ?",
    "update actors set snapshot = ?, status = ?, state = ?, version = version + 1, updated_at = ? where id = ? and version > 0 returning id",
    "insert into actor_events (actor_id, number, event, from_state, to_state, at) values (?, ?, ?, ?, ?, ?)",
    "insert into effects (id, actor_id, invoke_id, src, input, status, queue, attempts, due_at, created_at) values (?, ?, 'raw', 'raw', ?, 'done', 'raw', 0, ?, ?)",
    "update units set token_status = 'active', claimed = 0 where id = ?",
  ].map((text) => file.prepare(text))
  const ids = Array.from({ length: groupSize * groups }, () => String(fresh.next().value))
  const at = context.clock().toISOString()
  const begin = performance.now()
  for (let first = 0; first < ids.length; first += groupSize) {
    file.exec("begin immediate")
    for (const id of ids.slice(first, first + groupSize)) {
      timer?.values(actorId, at)
      read?.values(actorId)
      save?.values(snapshot, "pending", "pending.issuing", at, actorId)
      event?.run(actorId, numbers++, '{"type":"PAIRED"}', "pending.unpaired", "pending.issuing", at)
      effect?.run(Bun.randomUUIDv7(), actorId, snapshot, at, at)
      unit?.run(id)
    }
    file.exec("commit")
  }
  return (ids.length / (performance.now() - begin)) * 1_000
}
