import { and, eq, isNotNull } from "drizzle-orm"
import { createPublicClient, http } from "viem"
import type { Queries } from "../../db/database.ts"
import { collections, lanes } from "../../db/schema.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import type { Context } from "../../platform/context.ts"
import { StartError } from "../../platform/start-error.ts"
import { implementationOf } from "./collection-address.ts"
import { endingAfter } from "./endpoint.ts"
import { rawMessage } from "./rpc.ts"

/**
 * Checks at start that every provider serves the chain it is configured for and has the factory there. Throws
 * `StartError` if one serves another chain, or if none has the factory and either one has another contract at its
 * address or the factory has deployed nothing yet. A provider that does not respond, or lacks a factory that has
 * deployed before, for example while it synchronizes again, only causes a warning: it may recover, and must not keep
 * the other chains from working. A chain that only other processes have causes a warning, too.
 */
export async function checkChains(context: Pick<Context, "config" | "db" | "log">): Promise<void> {
  await Promise.all(context.config.chains.map((chain) => checkChain(context, chain)))
  await warnOfMissing(context)
}

async function warnOfMissing({ config, db, log }: Pick<Context, "config" | "db" | "log">): Promise<void> {
  // A lane without a nonce was never worked on, such as one of a chain that CHAINS named by mistake.
  const isUsed = isNotNull(lanes.next_nonce)
  const used = await db.read.selectDistinct({ chain_id: lanes.chain_id }).from(lanes).where(isUsed)
  for (const { chain_id } of used)
    if (!config.chains.some((chain) => chain.chain_id === chain_id))
      log.warn(
        { chain_id },
        `CHAINS lacks chain ${chain_id}, which this service has used: here new collections on it are refused and no work for it is done; name it in CHAINS unless it was given up`,
      )
}

async function checkChain({ db, log }: Pick<Context, "db" | "log">, chain: ChainConfig): Promise<void> {
  const { chain_id, factory_address } = chain
  const warn = (index: number, trouble: string) =>
    log.warn({ chain_id }, `${nameOf(chain, index)} ${trouble}`)
  const found = await Promise.all(chain.rpc_urls.map((_url, index) => askProvider(chain, index)))
  for (const [index, has] of found.entries())
    if (has instanceof Error) warn(index, `failed (${rawMessage(has)}); it is tried again when needed`)
  const isFound = found.includes("the factory")
  if (!isFound && found.includes("another contract"))
    throw new StartError(
      `CHAINS: chain ${chain_id} has a contract at factory_address ${factory_address} that is not a factory, such as a desk or a collection; correct factory_address`,
    )
  if (!found.includes("no factory")) return
  if (!isFound && !(await hasDeployed(db.read, chain)))
    throw new StartError(
      `CHAINS: chain ${chain_id} has no contract at factory_address ${factory_address}; deploy the factory or correct factory_address`,
    )
  for (const [index, has] of found.entries())
    if (has === "no factory")
      warn(index, `has no contract at factory_address ${factory_address}; is it behind?`)
}

/** Returns whether the factory has existed: a collection of it is known to be deployed. */
async function hasDeployed(queries: Queries, { chain_id, factory_address }: ChainConfig): Promise<boolean> {
  const [deployed] = await queries
    .select({ id: collections.id })
    .from(collections)
    .where(
      and(
        eq(collections.chain_id, chain_id),
        eq(collections.factory_address, factory_address),
        eq(collections.status, "active"),
      ),
    )
    .limit(1)
  return deployed !== undefined
}

async function askProvider(
  chain: ChainConfig,
  index: number,
): Promise<"the factory" | "another contract" | "no factory" | Error> {
  const { factory_address } = chain
  const client = createPublicClient({
    transport: http(chain.rpc_urls[index], { ...endingAfter(timeoutMilliseconds), retryCount: 0 }),
  })
  const answers = await Promise.all([
    client.getChainId(),
    client.getCode({ address: factory_address }),
    client.getCode({ address: implementationOf(factory_address) }),
  ]).catch((error: Error) => error)
  if (answers instanceof Error) return answers
  const [served, factory, implementation] = answers
  if (served !== chain.chain_id)
    throw new StartError(
      `CHAINS: ${nameOf(chain, index)} serves chain ${served}; correct rpc_urls or the chain id`,
    )
  if (!factory) return "no factory"
  // Every factory's constructor deploys its implementation. For any other contract, collection addresses would be
  // computed that never come to exist.
  return implementation ? "the factory" : "another contract"
}

const timeoutMilliseconds = 3_000

/** Provider URLs may contain keys, so logs show their position instead. */
function nameOf({ chain_id }: ChainConfig, index: number): string {
  return `provider number ${index + 1} in rpc_urls of chain ${chain_id}`
}
