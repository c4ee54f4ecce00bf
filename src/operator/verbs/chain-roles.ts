import { type Address, encodeFunctionData, type Hex, isAddressEqual, zeroAddress } from "viem"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { factoryAbi } from "../../engine/chain/contracts.generated.ts"
import { isOwnDesk } from "../../engine/chain/desk.ts"
import { least } from "../../engine/chain/extremes.ts"
import { deskRoles, pausedBit, rolesFor, rolesIn } from "../../engine/chain/roles.ts"
import { ChainUnreachable, reach } from "../../engine/chain/rpc.ts"
import { isUrlOfThisMachine } from "../../platform/config.ts"
import { OperatorRefusal } from "./refusal.ts"

/** A call of the factory, ready to be signed by its admin, or by the guardian if `by` says so. */
export type FactoryCall = {
  chain_id: number
  to: Address
  value: "0x0"
  data: Hex
  by: "admin" | "guardian or admin"
  does: string
}

/** The roles and settings of a factory, and the calls that would give this service's keys what they lack. */
export async function readRoles(chain: ConnectedChain) {
  const { authorizer, previous } = await readAuthorizers(chain)
  const address = chain.config.factory_address
  const factory = { address, abi: factoryAbi } as const
  const read = chain.rpc.readContract
  const [admin, guardian, paused, releaseAt, base, isFrozen, keys] = await reach(() =>
    Promise.all([
      read({ ...factory, functionName: "admin" }),
      read({ ...factory, functionName: "guardian" }),
      read({ ...factory, functionName: "paused" }),
      read({ ...factory, functionName: "releaseAt" }),
      read({ ...factory, functionName: "baseURI" }),
      read({ ...factory, functionName: "baseURIFrozen" }),
      read({ ...factory, functionName: "keys" }),
    ]),
  )
  const rows = await readKeys(chain, keys)
  return {
    chain_id: chain.chain_id,
    factory_address: address,
    admin,
    guardian: isAddressEqual(guardian, zeroAddress) ? null : guardian,
    authorizer,
    previous_authorizer: previous.until === 0n ? null : { ...previous, until: timeOf(previous.until) },
    paused,
    release_at: releaseAt === 0n ? null : timeOf(releaseAt),
    metadata_base_url: base,
    metadata_base_frozen: isFrozen,
    keys: rows,
    calls: rows
      .filter(({ roles, needed }) => needed !== null && (needed & ~roles) !== 0)
      .map(({ account, roles, needed }) => setRoles(chain, account, roles | (needed ?? 0))),
  }
}

/** The roles of each key of the factory and of this service, and those it needs; null if it is none of this service. */
async function readKeys(chain: ConnectedChain, keys: readonly Address[]) {
  const { desk_address } = chain.config
  const needs = new Map<Address, number>(
    chain.signers.map((signer) => [signer.address, rolesFor(signer.purpose)]),
  )
  if (desk_address && (await isOwnDesk(chain))) needs.set(desk_address, deskRoles)
  const accounts = new Set([...keys, ...needs.keys(), ...(desk_address ? [desk_address] : [])])
  return await Promise.all(
    [...accounts].map(async (account) => {
      const needed = needs.get(account) ?? null
      const isDesk = desk_address !== null && isAddressEqual(account, desk_address)
      const is = isDesk ? "desk" : "signer"
      const isNot = isDesk ? "no desk of this factory" : "none of this service"
      return {
        account,
        is: needed === null ? isNot : is,
        roles: await rolesOf(chain, account),
        needed,
      }
    }),
  )
}

export type Roles = Awaited<ReturnType<typeof readRoles>>

/** The authorizer and the previous one, with the Unix time until which its signatures are valid. */
async function readAuthorizers(chain: ConnectedChain) {
  await requireRoles(chain)
  const { config, rpc } = chain
  const address = config.factory_address
  const factory = { address, abi: factoryAbi } as const
  const [authorizer, [account, until]] = await reach(() =>
    Promise.all([
      rpc.readContract({ ...factory, functionName: "authorizer" }),
      rpc.readContract({ ...factory, functionName: "previousAuthorizer" }),
    ]),
  )
  return { authorizer, previous: { account, until } }
}

/**
 * Throws `OperatorRefusal` for a factory without roles and the other calls printed here. If no provider answers, the
 * factory is assumed to be a current one, so that a pause can still be printed.
 */
export async function requireRoles({ chain_id, config, generations }: ConnectedChain): Promise<void> {
  const address = config.factory_address
  const generation = await generations.ofFactory(address).catch((error) => {
    if (error instanceof ChainUnreachable) return generations.known()
    throw error
  })
  if (generation === 1)
    throw new OperatorRefusal(
      "factory.first_generation",
      `factory ${address} of chain ${chain_id} is of the first generation, which has no roles, no pause and no overlap: its admin sets operators with setOperator, and the authorizer with setAuthorizer, which takes only the address`,
    )
}

/** An account's roles, whether or not the factory is paused. */
export async function rolesOf({ rpc, config }: ConnectedChain, account: Address): Promise<number> {
  const factory = { address: config.factory_address, abi: factoryAbi } as const
  const question = { ...factory, functionName: "roles", args: [account] } as const
  return Number(await reach(() => rpc.readContract(question))) & ~pausedBit
}

export function setRoles(chain: ConnectedChain, account: Address, roles: number): FactoryCall {
  const does =
    roles === 0
      ? `removes all roles of ${account}`
      : `gives ${account} exactly these roles: ${rolesIn(roles).join(", ")}`
  const data = encodeFunctionData({
    abi: factoryAbi,
    functionName: "setRoles",
    args: [account, BigInt(roles)],
  })
  return callOf(chain, data, does)
}

/**
 * Names another authorizer; the present one's signatures stay valid until then, or end at once. The present one may
 * be named again only to end the previous one sooner: a later end would revive a leaked key.
 */
export async function setAuthorizer(
  chain: ConnectedChain,
  account: Address,
  until: Date | null,
): Promise<FactoryCall> {
  // The contract counts from its block's time, and wallets simulate the call on the newest block.
  const { timestamp: now } = await reach(() => chain.rpc.getBlock())
  const latestEnd = now + BigInt(3_600 * mostOverlapHours)
  const seconds = until === null ? 0n : least(BigInt(Math.floor(until.getTime() / 1_000)), latestEnd)
  const { authorizer, previous } = await readAuthorizers(chain)
  if (isAddressEqual(account, authorizer) && seconds !== 0n && seconds >= previous.until) {
    const end = previous.until === 0n ? "has ended" : `holds until ${timeOf(previous.until)}`
    const before = isAddressEqual(previous.account, zeroAddress)
      ? "there is none before it"
      : `what ${previous.account} signed ${end}`
    throw new OperatorRefusal(
      "authorizer.is_named",
      `${account} is already the authorizer, and ${before}: setting it again may only end an overlap sooner, as --overlap-hours 0 does`,
    )
  }
  const data = encodeFunctionData({
    abi: factoryAbi,
    functionName: "setAuthorizer",
    args: [account, seconds],
  })
  const overlap = until === null ? "ends at once" : `holds until ${timeOf(seconds)}`
  // A factory knows one previous authorizer, which becomes the present one unless that stays.
  const isKept = [authorizer, previous.account].some((each) => isAddressEqual(each, account))
  const forgotten = previous.until > now && !isKept ? `; what ${previous.account} signed ends at once` : ""
  const does = `makes ${account} the authorizer; what the previous one signed ${overlap}${forgotten}`
  return callOf(chain, data, does)
}

/** `MAX_OVERLAP` of the factory. */
export const mostOverlapHours = 168

export function setMetadataBase(chain: ConnectedChain, base: string): FactoryCall {
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "setBaseURI", args: [base] })
  return callOf(chain, data, `sets the base URL of the metadata of all brands to ${base}`)
}

/** Freezes the base that the factory has now. Throws `OperatorRefusal` if it has none, which it would not freeze. */
export async function freezeMetadataBase(chain: ConnectedChain, wanted: string): Promise<FactoryCall> {
  const { chain_id, config, rpc } = chain
  const factory = { address: config.factory_address, abi: factoryAbi } as const
  const base = await reach(() => rpc.readContract({ ...factory, functionName: "baseURI" }))
  if (base === "")
    throw new OperatorRefusal(
      "metadata_base.not_set",
      `factory ${factory.address} of chain ${chain_id} has no metadata base that could be frozen: set it first, with set-metadata-base`,
    )
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "freezeBaseURI" })
  const other = isElsewhere(base, wanted) ? `; METADATA_BASE_URL is another one, ${wanted}` : ""
  const does = `freezes the metadata base of all brands, which is ${base} now: metadata that is not there can never be read`
  return callOf(chain, data, `${does}${other}`)
}

/**
 * Returns, in one line, what there is to do if the factory's metadata base is not this service's. Nothing if it is a
 * content-addressed store, which `METADATA_BASE_URL` cannot name.
 */
export function baseFault(roles: Roles, wanted: string): string | null {
  const { chain_id, factory_address, metadata_base_url: base, metadata_base_frozen } = roles
  if (!isElsewhere(base, wanted) || /^(ipfs|ar):/.test(base)) return null
  const found = `the metadata base of factory ${factory_address} of chain ${chain_id} is ${base || "not set"}, but METADATA_BASE_URL is ${wanted}`
  if (metadata_base_frozen) return `${found}: it is frozen, so METADATA_BASE_URL has to be the same`
  return `${found}: correct METADATA_BASE_URL, or have the admin send this call: operator chain call set-metadata-base --chain ${chain_id} --url ${wanted}`
}

/** A URL of this machine is the default, as of a service whose metadata is not configured. */
function isElsewhere(base: string, wanted: string): boolean {
  return base !== wanted && !isUrlOfThisMachine(wanted)
}

const plainCalls = {
  pause: ["guardian or admin", "stops all keys and authorizers in all collections"],
  resume: ["admin", "lets all keys and authorizers continue"],
  announceRelease: ["admin", "allows plain transfers in all collections, for good, in seven days"],
  cancelRelease: ["guardian or admin", "cancels an announced release"],
} as const

export type PlainCall = keyof typeof plainCalls

export function plainCall(chain: ConnectedChain, functionName: PlainCall): FactoryCall {
  const [by, does] = plainCalls[functionName]
  return { ...callOf(chain, encodeFunctionData({ abi: factoryAbi, functionName }), does), by }
}

function callOf({ chain_id, config }: ConnectedChain, data: Hex, does: string): FactoryCall {
  return { chain_id, to: config.factory_address, value: "0x0", data, by: "admin", does }
}

function timeOf(seconds: bigint): string {
  return new Date(Number(seconds) * 1_000).toISOString()
}
