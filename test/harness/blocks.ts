import { createTurnstile, type Turnstile } from "../../src/db/turnstile.ts"
import type { Anvil } from "../faults/stage.ts"

/** The blocks of a chain that mines ten a second. */
export type Blocks = {
  /** Does something to the chain while none is mined; a reorganization meanwhile leaves a hole in anvil's chain. */
  betweenBlocks: Turnstile
  stop(): void
}

/** Mines them until it is stopped. */
export function mineSteadily({ client }: Anvil): Blocks {
  const betweenBlocks = createTurnstile()
  const mine = () => client.mine({ blocks: 1 }).catch(() => {})
  const timer = setInterval(() => void betweenBlocks(mine), 100)
  return { betweenBlocks, stop: () => clearInterval(timer) }
}
