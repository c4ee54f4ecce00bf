import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  isAddressEqual,
  type LocalAccount,
  prepareEncodeFunctionData,
} from "viem"
import { privateKeyToAccount } from "viem/accounts"
import type { Chain, Ownership } from "../../platform/chain.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import type { Config } from "../../platform/config.ts"
import { createPlaces, type Places, shares } from "../../platform/places.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import { authorizeClaim, authorizeTransfer } from "./authorizations.ts"
import { authorizerEnd } from "./authorizer.ts"
import { collectionAddress, collectionSalt } from "./collection-address.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { type ContractsAtOnce, createContractsAtOnce } from "./contracts-at-once.ts"
import { saysNotYet } from "./endpoint.ts"
import { createGenerations, type Generations } from "./generations.ts"
import { createHeaderChain, type HeaderChain } from "./headers.ts"
import { chipIdOf } from "./issue-call.ts"
import { createLogRanges, type LogRanges } from "./log-ranges.ts"
import { createProviders, type Providers } from "./providers.ts"
import { ChainUnreachable, createRpc, type Rpc, reach } from "./rpc.ts"
import { createSigners, type Signer } from "./signers.ts"
import { stateAt } from "./state-at.ts"

/** What workers need in addition: to read the chain and to send to it. */
export type ConnectedChain = Chain & {
  config: ChainConfig
  rpc: Rpc
  providers: Providers
  headers: HeaderChain
  log_ranges: LogRanges
  contracts_at_once: ContractsAtOnce
  generations: Generations
  signers: Signer[]
  /** The address of `AUTHORIZER_KEY`; null if it is unset. */
  authorizer_address: Address | null
}

/** Sets up the configured chains; sends no request yet. */
export function createChains(
  config: Config,
  /** The accounts of `SIGNER_KEYS`, in order. */
  accounts: LocalAccount[],
): ReadonlyMap<number, ConnectedChain> {
  const authorizer = config.authorizer_key ? privateKeyToAccount(config.authorizer_key) : null
  const places = createPlaces(config.fetches_at_once * shares.chains)
  return new Map(
    config.chains.map((chain) => [chain.chain_id, createChain(chain, places, accounts, authorizer)]),
  )
}

function createChain(
  chain: ChainConfig,
  places: Places,
  accounts: LocalAccount[],
  authorizer: LocalAccount | null,
): ConnectedChain {
  const providers = createProviders(chain, {}, places)
  const rpc = createRpc(chain, providers.transport)
  const signers = createSigners(chain.chain_id, accounts)
  const factory = chain.factory_address
  const generations = createGenerations(rpc, factory)
  const connected: ConnectedChain = {
    chain_id: chain.chain_id,
    factory_address: factory,
    config: chain,
    rpc,
    providers,
    headers: createHeaderChain(rpc, chain),
    log_ranges: createLogRanges(chain),
    contracts_at_once: createContractsAtOnce(),
    generations,
    signers,
    authorizer_address: authorizer?.address ?? null,
    collectionAddress: ({ id, name, symbol }) =>
      collectionAddress(generations.known(), { factory, salt: collectionSalt(id), name, symbol }),
    issuanceLaneId: (collectionId) => issuanceLaneId(signers, collectionId),
    ownershipLaneId: (unitId) => ownershipLaneId(signers, unitId),
    ownerOf: (contract, serial) => untilTold(() => ownerOf(rpc, contract, serial)),
    ownershipOf: (contract, serial) => untilTold(() => ownershipOf(connected, contract, serial)),
    announcesMetadata: async (contract) => (await generations.originOf(contract)).generation > 1,
    authorizeClaim: (claim) => authorizeClaim(chain, requireAuthorizer(authorizer), claim),
    authorizeTransfer: (transfer) => authorizeTransfer(chain, requireAuthorizer(authorizer), transfer),
  }
  return connected
}

function issuanceLaneId(signers: Signer[], collectionId: string): string {
  const issuing = signers.filter(({ purpose }) => purpose !== "ownership")
  const index = Number(BigInt(collectionSalt(collectionId)) % BigInt(Math.max(issuing.length, 1)))
  return (issuing[index] ?? laneFor(signers, "issuance")).lane_id
}

/** An id's last digits are random. */
function ownershipLaneId(signers: Signer[], unitId: string): string {
  const owning = signers.filter(({ purpose }) => purpose === "ownership")
  const index = Number.parseInt(unitId.slice(-8), 16) % Math.max(owning.length, 1)
  return (owning[index] ?? laneFor(signers, "ownership")).lane_id
}

function laneFor(signers: Signer[], purpose: "issuance" | "ownership"): Signer {
  const signer = signers.find((each) => each.purpose === purpose || each.purpose === "all")
  if (!signer) throw new Unavailable("SIGNER_KEYS is not set: no transaction can be sent")
  return signer
}

function requireAuthorizer(authorizer: LocalAccount | null): LocalAccount {
  if (!authorizer)
    throw new Unavailable("AUTHORIZER_KEY is not set: claims and transfers cannot be authorized")
  return authorizer
}

/**
 * Retries, for about as long as a request waits for a chain, while the provider is rate limiting, or while a node of it
 * lacks the newest block that another of its nodes has reported.
 */
async function untilTold<T>(ask: () => Promise<T>): Promise<T> {
  for (let left = mostTimes; ; left -= 1)
    try {
      return await ask()
    } catch (error) {
      if (left === 1 || !(error instanceof ChainUnreachable) || !saysNotYet(error.message)) throw error
      await Bun.sleep(pauseMilliseconds)
    }
}

const mostTimes = 12
const pauseMilliseconds = 250

/**
 * Kept fast, because every claim calls it once: the call is encoded with a prepared function and nothing else is read.
 */
async function ownerOf(rpc: Rpc, contract: Address, serial: number): Promise<Address | null> {
  const question = { to: contract, data: encodeFunctionData({ ...ownerCall, args: [BigInt(serial)] }) }
  return await reach(async () => {
    const data = await rpc.request({ method: "eth_call", params: [question, "latest"] })
    return ownerIn(contract, decodeFunctionResult({ abi: collectionAbi, functionName: "ownerOf", data }))
  })
}

const ownerCall = prepareEncodeFunctionData({ abi: collectionAbi, functionName: "ownerOf" })

/** Reads everything at one block, because two providers may be at different ones. */
async function ownershipOf(chain: ConnectedChain, contract: Address, serial: number): Promise<Ownership> {
  const { rpc, generations } = chain
  const [block, origin] = await reach(() =>
    Promise.all([rpc.getBlock({ blockTag: "latest" }), generations.originOf(contract)]),
  )
  const [owner, chip, nonce, authorizer_end] = await stateAt(rpc, block, (place) => {
    const token = { address: contract, abi: collectionAbi, args: [BigInt(serial)], ...place } as const
    return Promise.all([
      rpc.readContract({ ...token, functionName: "ownerOf" }),
      rpc.readContract({ ...token, functionName: "chipOf" }),
      rpc.readContract({ ...token, functionName: "authorizationNonce" }),
      authorizerEnd(chain, origin, place),
    ])
  })
  return {
    block_at: new Date(Number(block.timestamp) * 1_000),
    owner: ownerIn(contract, owner),
    chip_id: chipIdOf(chip),
    authorization_nonce: Number(nonce),
    authorizer_end,
  }
}

/** Returns the owner: null if the holder is the collection's contract, which stands for the service's custody. */
export function ownerIn(contract: Address, holder: Address): Address | null {
  return isAddressEqual(holder, contract) ? null : holder
}
