import { type Address, type Hex, keccak256 } from "viem"
import { accountAt } from "../faults/stage.ts"
import { accountOf, headOf, readTransaction, type SimulatedChain } from "./chain/chain.ts"
import { PoolRefusal } from "./chain/pool.ts"
import { type Simulation, sleep } from "./scheduler.ts"

export const firstWallet = 5
/** The wallets of a story's people, and of those who come between them. */
export const walletCount = 16
export const rivalCount = 16

const accounts = new Map<number, Account>()

type Account = ReturnType<typeof accountAt>

/** An account of the test's mnemonic; each is derived once, which is slow. */
export function account(index: number): Account {
  const known = accounts.get(index) ?? accountAt(index)
  accounts.set(index, known)
  return known
}

/** The address of a person's wallet. */
export function walletAddress(wallet: number): Address {
  return account(firstWallet + wallet).address
}

/** The wallet that has an address; throws if there is none. */
export function walletOf(address: string): number {
  const wallets = Array.from({ length: walletCount + rivalCount }, (_each, wallet) => wallet)
  const wallet = wallets.find((each) => walletAddress(each) === address)
  if (wallet === undefined) throw new Error(`${address} is nobody's wallet`)
  return wallet
}

/**
 * A person's wallet sends its transaction repeatedly until the result is known. After a success it makes sure that the
 * chain keeps one that succeeded: after a reorganization it sends a lost one again, and a new one if all failed.
 */
export async function sendFromWallet(
  simulation: Simulation,
  chain: SimulatedChain,
  wallet: number,
  call: { to: Address; data: Hex },
  ended: () => Promise<"well" | "badly" | null>,
): Promise<void> {
  const owner = account(firstWallet + wallet)
  const sent = new Map<number, Hex>()
  let end = await ended()
  while (end === null) {
    await sendNext(chain, owner, call, sent)
    await sleep(simulation, pauseMilliseconds)
    end = await ended()
  }
  if (end === "well") void keepOnChain(simulation, chain, owner, call, sent)
}

const pauseMilliseconds = 2_000

/** Makes sure from then on that the chain has a successful call of an account. */
export async function keepOnChain(
  simulation: Simulation,
  chain: SimulatedChain,
  owner: Account,
  call: { to: Address; data: Hex },
  sent: Map<number, Hex>,
): Promise<void> {
  for (;;) {
    await sleep(simulation, pauseMilliseconds)
    if (!hasSucceeded(chain, sent)) await sendNext(chain, owner, call, sent)
  }
}

/** The same bytes for the same nonce, and no nonce that waits with other bytes. */
export async function sendNext(
  chain: SimulatedChain,
  owner: Account,
  call: { to: Address; data: Hex; value?: Hex | bigint },
  sent: Map<number, Hex>,
): Promise<void> {
  let { nonce } = accountOf(chain, owner.address)
  while (!sent.has(nonce) && chain.pool.holds(owner.address.toLowerCase(), nonce)) nonce += 1
  const raw = sent.get(nonce) ?? (await sign(chain, owner, nonce, call))
  sent.set(nonce, raw)
  await offer(chain, raw)
}

/** Whether the chain has one of these transactions, and it had an effect: without a contract, every call succeeds. */
export function hasSucceeded({ blocks }: SimulatedChain, sent: ReadonlyMap<number, Hex>): boolean {
  const hashes = new Set([...sent.values()].map((raw) => keccak256(raw)))
  return blocks.some(({ transactions, receipts }) =>
    transactions.some(({ hash }, index) => {
      const receipt = receipts[index]
      return hashes.has(hash) && receipt?.is_success && receipt.logs.length > 0
    }),
  )
}

async function sign(
  chain: SimulatedChain,
  owner: Account,
  nonce: number,
  call: { to: Address; data: Hex; value?: Hex | bigint },
): Promise<Hex> {
  return await owner.signTransaction({
    type: "eip1559",
    chainId: chain.chain_id,
    nonce,
    to: call.to,
    data: call.data,
    value: BigInt(call.value ?? 0),
    gas: 300_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
}

async function offer(chain: SimulatedChain, raw: Hex): Promise<void> {
  const transaction = await readTransaction(raw)
  const sender = accountOf(chain, transaction.from)
  try {
    chain.pool.take(transaction, sender, headOf(chain).base_fee)
  } catch (error) {
    if (!(error instanceof PoolRefusal)) throw error
  }
}
