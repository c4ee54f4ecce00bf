import { describe, expect, test } from "bun:test"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { actors } from "../../src/db/schema.ts"
import { lifecycles, type MachineName } from "../../src/engine/actors/lifecycles.ts"
import { pathOf, sendEvent, startActor } from "../../src/engine/actors/runtime.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { createTestContext, insertScene, startOfTime } from "../harness/scene.ts"
import type { StoredSnapshot } from "./snapshots/write.ts"

const folder = join(import.meta.dir, "snapshots")
const names = Object.keys(lifecycles) as MachineName[]

test("there are stored snapshots of every version of every machine", () => {
  const expected = names.flatMap((name) =>
    Array.from({ length: lifecycles[name].version }, (_, index) => `${name}.v${index + 1}.json`),
  )
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"))
  expect(files.sort()).toEqual(expected.sort())
})

for (const engine of engines)
  describe(engine.name, () => {
    const databases = useEngine(engine)

    for (const name of names)
      for (let version = 1; version <= lifecycles[name].version; version++) {
        const path = join(folder, `${name}.v${version}.json`)
        const stored: StoredSnapshot[] = JSON.parse(readFileSync(path, "utf8"))
        for (const { state, snapshot, event, next_state } of stored)
          test(`${name} version ${version}, stored in ${state}, still accepts ${event.type}`, async () => {
            const db = await databases.openShared()
            const { answer, actor } = await inTurn(createTestContext(db), null, async (turn) => {
              const { organization_id, collection_id, lane_id } = await insertScene(turn.tx)
              const unit_id = newId()
              const input = { collection_id, lane_id }
              await startActor(turn, { id: unit_id, machine: "unit-token", organization_id, input })
              const id = newId()
              await turn.tx.insert(actors).values({
                id,
                machine: name,
                machine_version: version,
                organization_id,
                snapshot: withUnit(snapshot, unit_id),
                status: state.split(".")[0] ?? "",
                state,
                version: 1,
                created_at: startOfTime,
                updated_at: startOfTime,
              })
              const answer = await sendEvent(turn, id, event)
              const [actor] = await turn.tx.select().from(actors).where(eq(actors.id, id))
              return { answer, actor }
            })
            expect(answer).toMatchObject({ accepted: true, state: next_state })
            expect(actor?.machine_version).toBe(lifecycles[name].version)
          })
      }
  })

test("a stored snapshot is in its stated state", () => {
  for (const name of names) {
    const path = join(folder, `${name}.v${lifecycles[name].version}.json`)
    for (const { state, snapshot } of JSON.parse(readFileSync(path, "utf8")) as StoredSnapshot[])
      expect(pathOf((snapshot as { value: unknown }).value)).toBe(state)
  }
})

/** The snapshot with the ID of an existing unit. */
function withUnit(snapshot: unknown, unit_id: string): unknown {
  const { context, ...rest } = snapshot as { context: Record<string, unknown> }
  return { ...rest, context: "unit_id" in context ? { ...context, unit_id } : context }
}
