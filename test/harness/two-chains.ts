import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Chain, foundry } from "viem/chains"
import { openWorld, type World } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { type Anvil, deployContracts, openStage, type Stage, startAnvil } from "../faults/stage.ts"
import { mineSteadily } from "./blocks.ts"
import { type RunningWorkers, runWorkers } from "./engine.ts"

/** Two chains with the same keys, on which the factory and the desk have the same addresses, and workers for both. */
export type TwoChains = {
  stage: Stage
  /** The second chain. */
  anvil: Anvil
  world: World
  running: RunningWorkers
  /** Makes the second chain's URL lead to another node. */
  lead(url: string): void
  /** The environment of another process that is configured for both chains, or for the first one only. */
  environment(chains?: "both" | "first"): Record<string, string>
  close(): Promise<void>
}

export const first: Chain = foundry
export const second: Chain = { ...foundry, id: 31_338 }

export async function openTwoChains(): Promise<TwoChains> {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  const anvil = await startAnvil(second)
  await deployContracts(anvil, 2)
  let target = anvil.url
  const door = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) =>
      await fetch(target, {
        method: "POST",
        body: await request.text(),
        headers: { "content-type": "application/json" },
        signal: request.signal,
      }),
  })
  const path = join(stage.folder, "both.json")
  const known = JSON.parse(readFileSync(stage.environment.CHAINS ?? "", "utf8"))
  const other = { ...known[first.id], rpc_urls: [`http://127.0.0.1:${door.port}`] }
  writeFileSync(path, JSON.stringify({ ...known, [second.id]: other }))
  const environment: TwoChains["environment"] = (chains = "both") => ({
    ...stage.environment,
    LOG_LEVEL: "silent",
    ...(chains === "both" && { CHAINS: path }),
  })
  const world = await openWorld(loadConfig(environment()), tell)
  const running = await runWorkers(stage, world)
  const blocks = mineSteadily(anvil)
  return {
    ...{ stage, anvil, world, running, environment },
    lead(url) {
      target = url
    },
    async close() {
      blocks.stop()
      await running.close()
      await world.close()
      await door.stop(true)
      await anvil.stop()
    },
  }
}
