import { type ChainStatus, readChainStatus, readConnections } from "../verbs/chain-status.ts"
import { describeDoubled } from "../verbs/found-serials.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const chainStatus: Command = {
  name: "chain status",
  does: "shows each chain and lane: nonces, balances, open work and what holds it up",
  takes: "",
  options: {},
  plan: () => async (world) => {
    const { own_lane_ids, ...connections } = await readConnections(world.chains)
    const known = await readChainStatus(world.context)
    const lanes = known.lanes.map((lane) => ({
      ...lane,
      has_chain: world.chains.has(lane.chain_id),
      has_key: own_lane_ids.includes(lane.id),
    }))
    const status = { ...known, lanes, ...connections }
    return { document: status, text: textOf(status) }
  },
}

type OwnLane = ChainStatus["lanes"][number] & { has_chain: boolean; has_key: boolean }
type Connections = Awaited<ReturnType<typeof readConnections>>
type Status = ChainStatus & Omit<Connections, "own_lane_ids"> & { lanes: OwnLane[] }

/** What is well beside chains and lanes is left out. */
function textOf({ chains, lanes, providers, key_faults, unasked_serials, doubled_serials }: Status): string {
  const parts = [`chains\n${chainTable(chains)}`, `lanes\n${laneTable(lanes)}`]
  if (providers.some(({ state }) => state !== "healthy"))
    parts.push(
      `providers\n${table(providers, { CHAIN: "chain_id", NUMBER: "number", STATE: "state", SAID: "said" })}`,
    )
  if (key_faults.length > 0) parts.push(`keys\n${key_faults.join("\n")}`)
  if (unasked_serials.length > 0)
    parts.push(
      `serials that the chain has and no unit\n${table(unasked_serials, { COLLECTION: "collection_id", SERIALS: "serials" })}`,
    )
  if (doubled_serials.length > 0)
    parts.push(`serials of chips that were issued twice\n${doubled_serials.map(describeDoubled).join("\n")}`)
  return parts.join("\n\n")
}

function chainTable(chains: ChainStatus["chains"]): string {
  return table(chains, {
    CHAIN: "chain_id",
    NAME: "name",
    REACHABLE: reachOf,
    "NEWEST BLOCK": "block_number",
    "WATCHED TO": "watched_block",
  })
}

function reachOf({ reachable, error, trouble }: ChainStatus["chains"][number]): string {
  if (!reachable) return `no: ${error}`
  return trouble === null ? "yes" : `yes, but it ${trouble}`
}

function laneTable(lanes: OwnLane[]): string {
  return table(lanes, {
    LANE: "id",
    PURPOSE: "purpose",
    STATUS: "status",
    HELD: (lane) => `${lane.is_held ? "yes" : "no"}${lackOf(lane)}`,
    "NEXT NONCE": "next_nonce",
    "ON CHAIN": "nonce_latest",
    PENDING: "nonce_pending",
    WAITING: "waiting_effects",
    OPEN: "open_transactions",
    OLDEST: "oldest_open_at",
    BALANCE: "balance",
    RUNWAY: ({ runway_transactions: left }) =>
      left === null ? null : `enough for about ${left} transactions`,
    REASON: "reason",
  })
}

/** What this process lacks for a lane: its chain, or, if it has that, its key. */
function lackOf({ has_chain, has_key }: OwnLane): string {
  if (!has_chain) return ", its chain is not in CHAINS"
  return has_key ? "" : ", its key is not in SIGNER_KEYS"
}
