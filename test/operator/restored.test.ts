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

/** A new database, opened by a command that has the keys and chains of the processes, or none. */
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

test("a database that nothing was ever sent with is not taken for a restored one", async () => {
  await withNewDatabase("", async (world) => {
    await expect(run(world)).rejects.toThrow("DATABASE_URL")
  })
  await withNewDatabase(twoKeys, async (world) => {
    await expect(run(world)).rejects.toThrow("DATABASE_URL")
    expect(await marksOf(world)).toEqual([null, null])
  })
})

test("one that had an organization is, with the lanes of keys that came since", async () => {
  await withNewDatabase(twoKeys, async (world) => {
    const organization = { name: "Acme", default_chain_id: null, allowed_chain_ids: [] }
    await inTurn(world.context, null, (turn) => createOrganization(turn, organization))
    await run(world)
    expect(await marksOf(world)).toEqual([expect.any(Date), expect.any(Date)])
  })
})
