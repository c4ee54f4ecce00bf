import type { Address } from "viem"
import type { KeyFault } from "../../platform/context.ts"
import type { Log } from "../../platform/log.ts"
import { authorizationSeconds, authorizerEnd } from "./authorizer.ts"
import type { ConnectedChain } from "./chains.ts"
import { factoryAbi } from "./contracts.generated.ts"
import { isOwnDesk } from "./desk.ts"
import { firstFactoryAbi } from "./first-contracts.generated.ts"
import type { Generation } from "./generations.ts"
import { deskRoles, pausedBit, rolesFor, rolesIn } from "./roles.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** A key of this service that lacks what it needs on a chain, and its address; null if the variable is unset. */
type RoleFault = KeyFault & { address: Address | null }

/** Compares the keys of this service with what the factory knows of them. Throws `ChainUnreachable`. */
export async function roleFaults(chain: ConnectedChain): Promise<RoleFault[]> {
  const { factory_address, desk_address } = chain.config
  const generation = await chain.generations.ofFactory(factory_address)
  const signers = chain.signers.map(({ address, purpose }) =>
    generation === 1 ? operatorFault(chain, address) : signerFault(chain, address, rolesFor(purpose)),
  )
  const desk = generation === 2 && desk_address ? [deskFault(chain, desk_address)] : []
  const authorizer = authorizerFault(chain, generation)
  const faults = await Promise.all([authorizer, noSignerFault(chain), ...signers, ...desk])
  return faults.filter((fault) => fault !== null)
}

/** A replaced authorizer is no fault while an authorization signed now stays valid until it expires. */
async function authorizerFault(chain: ConnectedChain, generation: Generation): Promise<RoleFault | null> {
  const { authorizer_address: address, chain_id, config, rpc } = chain
  const origin = { factory: config.factory_address, generation }
  const end = await reach(() => authorizerEnd(chain, origin))
  if (end === null) return null
  const { timestamp } = await reach(() => rpc.getBlock())
  if (end.at.getTime() / 1_000 >= Number(timestamp) + authorizationSeconds) return null
  return { chain_id, variable: "AUTHORIZER_KEY", address, text: end.text }
}

function noSignerFault({ signers, chain_id }: ConnectedChain): RoleFault | null {
  if (signers.length > 0) return null
  const text = `SIGNER_KEYS is not set: new collections, claims and chip replacements on chain ${chain_id} are refused until it is set`
  return { chain_id, variable: "SIGNER_KEYS", address: null, text }
}

async function operatorFault({ rpc, config, chain_id }: ConnectedChain, address: Address) {
  const question = { abi: firstFactoryAbi, functionName: "isOperator", args: [address] } as const
  if (await reach(() => rpc.readContract({ ...question, address: config.factory_address }))) return null
  const text = `SIGNER_KEYS has the key of ${address}, which is not an operator of factory ${config.factory_address} of chain ${chain_id}: its lane waits until the factory's admin calls setOperator`
  return { chain_id, variable: "SIGNER_KEYS", address, text } as const
}

async function signerFault(chain: ConnectedChain, address: Address, needed: number) {
  const { chain_id, config } = chain
  const lacks = await lackOf(chain, address, needed)
  if (lacks === null) return null
  const text = `SIGNER_KEYS has the key of ${address}, which ${lacks} at factory ${config.factory_address} of chain ${chain_id}: work for which it lacks one waits until this is fixed; to see how, run: operator chain roles`
  return { chain_id, variable: "SIGNER_KEYS", address, text } as const
}

async function deskFault(chain: ConnectedChain, address: Address) {
  const { chain_id, config } = chain
  if (!(await isOwnDesk(chain))) {
    const text = `CHAINS names the desk ${address}, which is not a desk of factory ${config.factory_address} of chain ${chain_id}: correct or remove desk_address, and grant that address no roles, because it would let in the keys of another factory`
    return { chain_id, variable: "CHAINS", address, text } as const
  }
  const lacks = await lackOf(chain, address, deskRoles)
  if (lacks === null) return null
  const text = `CHAINS names the desk ${address}, which ${lacks} at factory ${config.factory_address} of chain ${chain_id}: what goes through it waits until this is fixed; to see how, run: operator chain roles`
  return { chain_id, variable: "CHAINS", address, text } as const
}

/** Returns, in words, what keeps a key from work that needs these roles; null if nothing does. */
async function lackOf(chain: ConnectedChain, address: Address, needed: number): Promise<string | null> {
  const question = { ...factoryOf(chain), functionName: "roles", args: [address] } as const
  const roles = Number(await reach(() => chain.rpc.readContract(question)))
  const lacking = rolesIn(needed & ~roles)
  if (lacking.length > 0) return `lacks the role to ${lacking.join(", ")}`
  return (roles & pausedBit) !== 0 ? "is paused" : null
}

function factoryOf({ config }: ConnectedChain) {
  return { address: config.factory_address, abi: factoryAbi } as const
}

/**
 * The known faults, checked at start, then hourly, or every minute while there are any or a chain was not reached yet.
 */
type RoleWatch = {
  /** Returns a chain's faults as of the last time it was reached; none before that. */
  faultsOf(chainId: number): RoleFault[]
  /** Checks all chains now. A chain that does not respond keeps its faults. */
  check(): Promise<void>
  stop(): void
}

const usualMilliseconds = 3_600_000
const troubledMilliseconds = 60_000

/** Checks at once, then regularly. Logs each fault when it appears and when it is gone. */
export function watchRoles(chains: ReadonlyMap<number, ConnectedChain>, log: Log): RoleWatch {
  const known = new Map<number, RoleFault[]>()
  let timer: Timer | undefined
  let isStopped = false

  async function check(): Promise<void> {
    await Promise.all([...chains.values()].map(checkChain))
  }

  async function checkChain(chain: ConnectedChain): Promise<void> {
    const before = known.get(chain.chain_id) ?? []
    const faults = await roleFaults(chain).catch((error) => {
      if (error instanceof ChainUnreachable) return null
      throw error
    })
    if (faults === null) return
    known.set(chain.chain_id, faults)
    for (const { text, ...fault } of newIn(faults, before)) log.error(fault, text)
    for (const { text: _old, ...fault } of newIn(before, faults))
      log.info(fault, "an earlier fault of this key or desk is gone")
  }

  async function checkOn(): Promise<void> {
    await check().catch((error) =>
      log.error({ error: String(error) }, "the roles could not be checked; they are checked again later"),
    )
    if (isStopped) return
    const isWell = [...chains.keys()].every((id) => known.get(id)?.length === 0)
    timer = setTimeout(checkOn, isWell ? usualMilliseconds : troubledMilliseconds)
  }

  void checkOn()
  return {
    faultsOf: (chainId) => known.get(chainId) ?? [],
    check,
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

/** Returns the faults whose text is not in the other list. */
function newIn(faults: RoleFault[], others: RoleFault[]): RoleFault[] {
  return faults.filter(({ text }) => !others.some((other) => other.text === text))
}
