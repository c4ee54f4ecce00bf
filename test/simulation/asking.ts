import type { Address, Hex } from "viem"
import type { SimulatedChain } from "./chain/chain.ts"
import type { Chest } from "./chest.ts"
import type { Clients } from "./clients.ts"
import type { Receiver } from "./receiver.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import type { Stream } from "./streams.ts"

/** What a history requests from the service, and what was promised. */
export type Asking = {
  collections: CollectionPlayed[]
  /** Secrets that were issued: no log line may contain one. */
  secrets: string[]
  /** Credentials that a stranger uses: none, forged ones, and the key of another organization. */
  strangers: (string | null)[]
  /** What was allowed but should not have been. */
  breaches: string[]
  /** The IDs of events, as the feed was read from its beginning on. */
  feed: string[]
}

export type CollectionPlayed = {
  id: string
  /** An API key of the brand that owns the collection. */
  key: string
  address: string
  /** In the order of the requests. */
  paired: { unit_id: string; chip_id: string }[]
  claims: { id: string; unit_id: string; recipient: Address }[]
  transfers: { id: string; unit_id: string; recipient: Address }[]
  replacements: { id: string; unit_id: string; previous_chip_id: string; chip_id: string }[]
  /** What holders did without the service. */
  moves: { unit_id: string; recipient: Address }[]
}

export type Stage = {
  simulation: Simulation
  chain: SimulatedChain
  clients: Clients
  chance: Stream
  receiver: Receiver
  /** The chips that are paired; null if they are test chips, which the service creates. */
  chest: Chest | null
  /** Whether a back-up was restored, after which the service may have lost what it returned. */
  isRestored(): boolean
  /** How far apart two clocks of the service may be. */
  most_skew_seconds: number
}

export type Collection = { id: string; contract: { address: string; status: string } }
export type Made = { id: string; status: string; transaction?: { to: Address; data: Hex } | null }

export function endOf({ status }: Made): "well" | "badly" | null {
  if (["claimed", "confirmed"].includes(status)) return "well"
  return ["expired", "failed"].includes(status) ? "badly" : null
}

export async function until({ simulation }: Stage, isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(simulation, 2_000)
}
