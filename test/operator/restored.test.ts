import { expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { lanes } from "../../src/db/schema.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { restored } from "../../src/operator/commands/restored.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"

const chains = {
  31337: {
    name: "local",
    rpc_urls: ["http://127.0.0.1:9"],
    factory_address: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
    confirmation_depth: 2,
    finality_depth: 12,
    block_time_seconds: 1,
    max_fee_per_gas_gwei: 1_000,
  },
}

/** Runs the work on a new database, opened like by a command with the processes' keys and chains, or with none. */
async function withNewDatabase(keys: string, work: (world: World) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "restored-"))
  const CHAINS = join(folder, "chains.json")
  writeFileSync(CHAINS, JSON.stringify(chains))
  const SERVICE_SECRET = "a secret of tests that is long enough"
  const environment = { DATA_DIR: folder, LOG_LEVEL: "silent", SERVICE_SECRET, CHAINS, SIGNER_KEYS: keys }
  const world = await openWorld(loadConfig(environment), tell)
  await work(world)
  await world.close()
  rmSync(folder, { recursive: true })
}

const twoKeys = `0x${"11".repeat(32)},0x${"22".repeat(32)}`

const run = (world: World) => restored.plan(parseValues(restored, []))(world)

const marksOf = async ({ context }: World) =>
  (await context.db.read.select({ at: lanes.restored_at }).from(lanes)).map(({ at }) => at)

test("operator restored rejects a database that nothing was ever sent from", async () => {
  await withNewDatabase("", async (world) => {
    await expect(run(world)).rejects.toThrow("DATABASE_URL")
  })
  await withNewDatabase(twoKeys, async (world) => {
    await expect(run(world)).rejects.toThrow("DATABASE_URL")
    expect(await marksOf(world)).toEqual([null, null])
  })
})

test("operator restored accepts a database with an organization, and marks lanes of keys added since, too", async () => {
  await withNewDatabase(twoKeys, async (world) => {
    const organization = { name: "Acme", default_chain_id: null, allowed_chain_ids: [] }
    await inTurn(world.context, null, (turn) => createOrganization(turn, organization))
    await run(world)
    expect(await marksOf(world)).toEqual([expect.any(Date), expect.any(Date)])
  })
})
