import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openWorld } from "../../src/engine/world.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { restored } from "../../src/operator/commands/restored.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { tell } from "../../src/resources/news/tell.ts"

test("a database that no worker ever ran with is not taken for a restored one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "restored-"))
  const SERVICE_SECRET = "a secret of tests that is long enough"
  const world = await openWorld(loadConfig({ DATA_DIR: folder, LOG_LEVEL: "silent", SERVICE_SECRET }), tell)
  await expect(restored.plan(parseValues(restored, []))(world)).rejects.toThrow("DATABASE_URL")
  await world.close()
  rmSync(folder, { recursive: true })
})
