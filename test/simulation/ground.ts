import { Database as Connection } from "bun:sqlite"
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getTableName } from "drizzle-orm"
import type { Hex } from "viem"
import { migrate } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import { type Config, loadConfig } from "../../src/platform/config.ts"
import { keyAt } from "../faults/stage.ts"
import {
  announceRelease,
  copyChain,
  deployContracts,
  headOf,
  mineBlock,
  openChain,
  type SimulatedChain,
} from "./chain/chain.ts"
import { account, firstWallet, rivalCount, walletAddress, walletCount } from "./wallets.ts"
import { firstBlocks } from "./weather.ts"
import { writers } from "./writers.ts"

export const epoch = Date.UTC(2030, 0, 1)
export const blockSeconds = 2
export const depths = { confirmation_depth: 3, finality_depth: 12, bump_after_blocks: 3 }
/** Low enough that prices rise above it. */
export const maxFeePerGasGwei = 6
const chainId = 31_337
const admin = account(0).address
const authorizer = account(3).address

const afterWallets = firstWallet + walletCount + rivalCount

/** The places of `SIGNER_KEYS`: the account whose key is there at first, and the one after a rotation. */
const signerPlaces = [
  { first: 1, next: afterWallets },
  { first: 2, next: afterWallets + 1 },
]
/** Every account that is a signer at some point. */
export const signers = signerPlaces.flatMap(({ first, next }) => [
  account(first).address,
  account(next).address,
])
/** All signer keys, in the order in which each has the roles of its place. */
export const everySignerKey = signerPlaces.flatMap(({ first, next }) => [keyAt(first), keyAt(next)])
/** The keys that replace the first ones. */
export const nextSignerKeys = signerPlaces.map(({ next }) => keyAt(next))
const firstSignerKeys = signerPlaces.map(({ first }) => keyAt(first))

/** The key that replaces the authorizer's. */
export const nextAuthorizerKey = keyAt(afterWallets + signerPlaces.length)

/** What every history of this process starts with, created once: an empty database and a chain with the factory. */
export type Ground = {
  folder: string
  template: string
  chain: SimulatedChain
  /** The same after the release: holders transfer tokens on their own. */
  released: SimulatedChain
  contracts: { factory_address: Hex; desk_address: Hex }
  close(): void
}

export async function openGround(): Promise<Ground> {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "simulation-"))
  const template = join(folder, "template.db")
  const db = openDatabase(`sqlite:${template}`)
  await migrate(db, new Date(epoch))
  await db.close()
  const connection = new Connection(template)
  connection.run(`create table ${getTableName(writers)} (process text, lane_id text, epoch integer)`)
  connection.run("pragma wal_checkpoint(truncate)")
  connection.close()

  const start = epoch / 1_000 - firstBlocks - 1
  const { chain, contracts } = await openLand(start)
  while (headOf(chain).number < firstBlocks) await mineBlock(chain, headOf(chain).timestamp + 1)

  const { chain: released } = await openLand(start - releaseSeconds)
  await announceRelease(released, contracts.factory_address, admin)
  while (headOf(released).number < firstBlocks)
    await mineBlock(released, epoch / 1_000 - firstBlocks + headOf(released).number)
  const close = () => rmSync(folder, { recursive: true, force: true })
  return { ...{ folder, template, chain, released, contracts, close } }
}

/** The factory's `RELEASE_DELAY`. */
const releaseSeconds = 7 * 86_400

async function openLand(start: number): Promise<Pick<Ground, "chain" | "contracts">> {
  const wallets = Array.from({ length: walletCount + rivalCount }, (_each, wallet) => walletAddress(wallet))
  const chain = await openChain(chainId, start, [admin, ...signers, ...wallets])
  return { chain, contracts: await deployContracts(chain, admin, authorizer, signers) }
}

/** The setup of one history: a chain, a configuration, and its secrets, which no log line may contain. */
type Plot = {
  chain: SimulatedChain
  config: Config
  urls: string[]
  secrets: string[]
}

type Circumstances = {
  providers: number
  confirmation_depth: number
  finality_depth: number
  is_released: boolean
}

export async function preparePlot(
  ground: Ground,
  { providers, confirmation_depth, finality_depth, is_released }: Circumstances,
): Promise<Plot> {
  const urls = Array.from({ length: providers }, (_each, index) => `http://provider${index}.test/`)
  const database = join(ground.folder, "service.db")
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${database}${suffix}`, { force: true })
  copyFileSync(ground.template, database)
  const chainsFile = join(ground.folder, "chains.json")
  const settings = {
    name: "simulated",
    rpc_urls: urls,
    ...ground.contracts,
    block_time_seconds: blockSeconds,
    max_fee_per_gas_gwei: maxFeePerGasGwei,
    ...depths,
    confirmation_depth,
    finality_depth,
  }
  writeFileSync(chainsFile, JSON.stringify({ [chainId]: settings }))
  const serviceSecret = "not a secret: 0123456789 abcdefghij"
  const config = loadConfig({
    DATA_DIR: ground.folder,
    DATABASE_URL: `sqlite:${database}`,
    SERVICE_SECRET: serviceSecret,
    SIGNER_KEYS: firstSignerKeys.join(","),
    AUTHORIZER_KEY: keyAt(3),
    LOG_LEVEL: "silent",
    CHAINS: chainsFile,
    RATE_LIMIT_API_KEY: "100000/1",
    RATE_LIMIT_SESSION_TOKEN: "100000/1",
    RATE_LIMIT_PUBLISHABLE_KEY: "100000/1",
  })
  return {
    chain: await copyChain(is_released ? ground.released : ground.chain),
    config,
    urls,
    secrets: [serviceSecret, ...[...everySignerKey, keyAt(3), nextAuthorizerKey].map((key) => key.slice(2))],
  }
}
