import type { ChainConfig } from "../../src/platform/chain-settings.ts"

/** Parsed settings of a chain. Nothing listens on port 9, which is reserved for the discard protocol. */
export const chainSettings: ChainConfig = {
  chain_id: 31_337,
  name: "local",
  rpc_urls: ["http://127.0.0.1:9"],
  factory_address: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
  desk_address: null,
  chips_as_code_from: 11,
  confirmation_depth: 2,
  finality_depth: 12,
  block_time_seconds: 1,
  max_fee_per_gas_gwei: 1,
  max_priority_fee_per_gas_gwei: 1,
  max_transaction_cost: 1,
  coin_symbol: "ETH",
  coin_decimals: 18,
  send_url: null,
  use_finalized_tag: false,
  bump_after_blocks: 4,
  log_range_blocks: 2_000,
}
