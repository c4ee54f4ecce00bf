import type { Queries } from "../../db/database.ts"
import type { CollectionRow } from "../../db/schema.ts"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { ChainUnreachable, reach } from "../../engine/chain/rpc.ts"
import type { World } from "../../engine/world.ts"
import { counted } from "../../platform/counted.ts"
import { type Comparison, comparableCollections, compareWithChain } from "../verbs/compare-chain.ts"
import { OperatorRefusal } from "../verbs/refusal.ts"
import type { Command } from "./command.ts"
import { showProgress } from "./progress.ts"

export const compareChain: Command = {
  name: "chain compare",
  does: "finds what is on chain that nobody asked for here, for example after a signer's key leaked",
  takes: "[--collection ID]",
  about: `Finds serials, chips that units have only on chain, and owners without a claim; exits with 1 if there are any. Claims of
a unit that has another chip on chain fail until the chain has the unit's own chip again, because a claim locks the chip on
chain. If a claimed unit has the chip from before a replacement on chain, a reorganization undid the replacement. If a chain
does not answer, its collections are left out, the others are compared all the same, and the exit code is 1 too.`,
  options: { collection: false },
  plan(values) {
    const name = values.option("collection")
    return async (world) => {
      const rows = await comparableCollections(world.context.db.read, name)
      if (name !== null) requireConnected(world.chains, rows)
      const { compared, unanswered } = await compareAll(world, rows)
      const unlike = compared.filter(isUnlike)
      const unreached = rows.length - compared.length - unanswered.length
      return {
        document: { compared: compared.length, not_connected: unreached, unanswered, collections: unlike },
        text: [
          `${counted(compared.length, "collection", "collections")} compared${unreached > 0 ? `, ${unreached} left out because their chains are not in CHAINS` : ""}`,
          ...unansweredLines(unanswered),
          ...unlike.flatMap(linesOf),
        ].join("\n"),
        isRefusal: unlike.length + unanswered.length > 0,
      }
    }
  },
}

/** Throws `OperatorRefusal` for a collection that cannot be compared although it was asked for. */
function requireConnected(chains: World["chains"], rows: CollectionRow[]): void {
  const left = rows.find(({ chain_id }) => !chains.has(chain_id))
  if (left)
    throw new OperatorRefusal(
      "chain.not_configured",
      `chain ${left.chain_id} of collection ${left.id} is not in CHAINS, so it was not compared`,
    )
}

/** A collection that could not be compared, and why. */
type Unanswered = { collection_id: string; chain_id: number; because: string }

/**
 * One after the other: each may read a contract's events down to its deployment. If a chain fails for one collection,
 * the others are still compared; a chain that does not respond at all is not asked for further collections.
 */
async function compareAll(
  { chains, context }: World,
  rows: CollectionRow[],
): Promise<{ compared: Comparison[]; unanswered: Unanswered[] }> {
  const compared: Comparison[] = []
  const unanswered: Unanswered[] = []
  const silent = new Map<ConnectedChain, string>()
  for (const [index, row] of rows.entries()) {
    const chain = chains.get(row.chain_id)
    if (!chain) continue
    const because = silent.get(chain)
    const found = because ?? (await compareOrReason(context.db.read, chain, row))
    if (typeof found !== "string") compared.push(found)
    else {
      unanswered.push({ collection_id: row.id, chain_id: row.chain_id, because: found })
      if (because === undefined && (await isSilent(chain))) silent.set(chain, found)
    }
    showProgress("compared", index + 1, rows.length, "collections")
  }
  return { compared, unanswered }
}

/** A text where the chain does not answer, and why. */
async function compareOrReason(
  queries: Queries,
  chain: ConnectedChain,
  row: CollectionRow,
): Promise<Comparison | string> {
  try {
    return await compareWithChain(queries, chain, row)
  } catch (error) {
    if (error instanceof ChainUnreachable) return error.message
    throw error
  }
}

async function isSilent({ rpc }: ConnectedChain): Promise<boolean> {
  return await reach(() => rpc.getBlockNumber({ cacheTime: 0 })).then(
    () => false,
    () => true,
  )
}

/** A line for each chain and what it said. */
function unansweredLines(unanswered: Unanswered[]): string[] {
  const alike = Map.groupBy(unanswered, ({ chain_id, because }) => `chain ${chain_id}: ${because}`)
  return [...alike].map(
    ([said, all]) =>
      `${counted(all.length, "collection", "collections")} not compared: no answer from ${said}`,
  )
}

function isUnlike({ unasked_serials, other_chips, unasked_claims }: Comparison): boolean {
  return unasked_serials > 0 || other_chips.length > 0 || unasked_claims.length > 0
}

function linesOf({ collection_id, unasked_serials, other_chips, unasked_claims }: Comparison): string[] {
  return [
    `collection ${collection_id}`,
    ...(unasked_serials > 0 ? [`  ${unasked_serials} serials on chain that nobody asked for`] : []),
    ...other_chips.map(
      ({ unit_id, serial, chip_id, chip_id_on_chain }) =>
        `  unit ${unit_id}, serial ${serial}: its chip is ${chip_id ?? "none"}, and ${chip_id_on_chain} on chain`,
    ),
    ...unasked_claims.map(
      ({ unit_id, serial, owner }) =>
        `  unit ${unit_id}, serial ${serial}: ${owner ?? "somebody"} has it, without a claim of this service`,
    ),
  ]
}
