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
    const parts = [`chains\n${chainTable(status.chains)}`, `lanes\n${laneTable(status.lanes)}`]
    if (status.providers.some(({ state }) => state !== "healthy"))
      parts.push(`providers\n${providerTable(status.providers)}`)
    if (status.key_faults.length > 0) parts.push(`keys\n${status.key_faults.join("\n")}`)
    if (status.unasked_serials.length > 0)
      parts.push(`serials that the chain has and no unit\n${serialTable(status.unasked_serials)}`)
    if (status.doubled_serials.length > 0)
      parts.push(
        `serials of chips that were issued twice\n${status.doubled_serials.map(describeDoubled).join("\n")}`,
      )
    return { document: status, text: parts.join("\n\n") }
  },
}

function chainTable(chains: ChainStatus["chains"]): string {
  return table(
    ["CHAIN", "NAME", "REACHABLE", "NEWEST BLOCK", "WATCHED TO"],
    chains.map((chain) => [
      chain.chain_id,
      chain.name,
      reachOf(chain),
      chain.block_number,
      chain.watched_block,
    ]),
  )
}

function reachOf({ reachable, error, trouble }: ChainStatus["chains"][number]): string {
  if (!reachable) return `no: ${error}`
  return trouble === null ? "yes" : `yes, but it ${trouble}`
}

function providerTable(rows: Awaited<ReturnType<typeof readConnections>>["providers"]): string {
  return table(
    ["CHAIN", "NUMBER", "STATE", "SAID"],
    rows.map(({ chain_id, number, state, said }) => [chain_id, number, state, said]),
  )
}

function serialTable(rows: ChainStatus["unasked_serials"]): string {
  return table(
    ["COLLECTION", "SERIALS"],
    rows.map(({ collection_id, serials }) => [collection_id, serials]),
  )
}

type OwnLane = ChainStatus["lanes"][number] & { has_chain: boolean; has_key: boolean }

function laneTable(rows: OwnLane[]): string {
  return table(
    [
      "LANE",
      "PURPOSE",
      "STATUS",
      "HELD",
      "NEXT NONCE",
      "ON CHAIN",
      "PENDING",
      "WAITING",
      "OPEN",
      "OLDEST",
      "BALANCE",
      "RUNWAY",
      "REASON",
    ],
    rows.map((lane) => [
      lane.id,
      lane.purpose,
      lane.status,
      `${lane.is_held ? "yes" : "no"}${lackOf(lane)}`,
      lane.next_nonce,
      lane.nonce_latest,
      lane.nonce_pending,
      lane.waiting_effects,
      lane.open_transactions,
      lane.oldest_open_at,
      lane.balance,
      lane.runway_transactions === null ? null : `enough for about ${lane.runway_transactions} transactions`,
      lane.reason,
    ]),
  )
}

/** What this process lacks for a lane: its chain, or, if it has that, its key. */
function lackOf({ has_chain, has_key }: OwnLane): string {
  if (!has_chain) return ", its chain is not in CHAINS"
  return has_key ? "" : ", its key is not in SIGNER_KEYS"
}
