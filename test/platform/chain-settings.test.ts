import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { loadConfig } from "../../src/platform/config.ts"

const CHAINS = join(import.meta.dir, "../../src/engine/chain/public-chains.json")
const { chains } = loadConfig({ SERVICE_SECRET: "not a secret: 0123456789 abcdefghij", CHAINS })

describe("the example chain settings", () => {
  test("contain the supported chains, with depths that the configuration accepts", () => {
    expect(chains.map(({ chain_id }) => chain_id)).toEqual([
      1, 10, 137, 8453, 31_337, 42_161, 84_532, 11_155_111,
    ])
  })

  test.each(chains)(
    "spend no more per transaction on $name than nodes relay, and say in which coin",
    (chain) => {
      if (chain.chain_id !== 31_337) expect(chain.max_transaction_cost).toBeLessThan(1)
      expect(chain.coin_symbol).toBe(chain.chain_id === 137 ? "POL" : "ETH")
      expect(chain.max_priority_fee_per_gas_gwei).toBeLessThan(chain.max_fee_per_gas_gwei)
    },
  )

  test.each(chains)("explain each value for $name, and keep watching after confirmation", async (chain) => {
    expect(chain.finality_depth).toBeGreaterThan(chain.confirmation_depth)
    const document = await Bun.file(CHAINS).json()
    expect(document[chain.chain_id].reason.length).toBeGreaterThan(40)
  })
})
