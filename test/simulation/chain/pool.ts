import type { Hex } from "viem"

/** A signed transaction, parsed. Addresses are in lower case. */
export type PoolTransaction = {
  hash: Hex
  from: string
  to: string | null
  nonce: number
  data: Hex
  gas: bigint
  max_fee_per_gas: bigint
  max_priority_fee_per_gas: bigint
  value: bigint
}

/** Transactions waiting to be mined, under the rules of public pools. */
export type Pool = {
  /** Accepts a transaction, or throws `PoolRefusal` with a node's message. */
  take(transaction: PoolTransaction, sender: { nonce: number; balance: bigint }, baseFee: bigint): void
  /** Puts back what a reorganization removed, unless its nonce is taken. */
  putBack(transaction: PoolTransaction): void
  /** Drops what a block made obsolete. */
  dropUsed(nonceOf: (address: string) => number): void
  drop(transaction: PoolTransaction): void
  /** Whether a transaction of some sender with this nonce is waiting. */
  holds(address: string, nonce: number): boolean
  /** By sender, then nonce. */
  all(): PoolTransaction[]
}

export class PoolRefusal extends Error {
  override name = "PoolRefusal"
}

/** What public pools hold of one sender. */
const placesPerSender = 16
/** EIP-7825. */
const maxGas = 16_777_216n

export function createPool(): Pool {
  const places = new Map<string, PoolTransaction>()
  const placeOf = (address: string, nonce: number) => `${address} ${nonce}`

  return {
    take(transaction, sender, baseFee) {
      const { from, nonce, gas, max_fee_per_gas, value } = transaction
      const place = placeOf(from, nonce)
      const present = places.get(place)
      if (present?.hash === transaction.hash) throw new PoolRefusal("already known")
      if (nonce < sender.nonce)
        throw new PoolRefusal(`nonce too low: next nonce ${sender.nonce}, tx nonce ${nonce}`)
      if (gas > maxGas) throw new PoolRefusal(`transaction gas limit too high (cap: ${maxGas}, tx: ${gas})`)
      const cost = gas * max_fee_per_gas + value
      if (sender.balance < cost)
        throw new PoolRefusal(
          `insufficient funds for gas * price + value: balance ${sender.balance}, tx cost ${cost}`,
        )
      if (max_fee_per_gas < baseFee / 2n)
        throw new PoolRefusal(
          `max fee per gas less than block base fee: address ${from}, maxFeePerGas: ${max_fee_per_gas}, baseFee: ${baseFee}`,
        )
      if (present && !isRaised(present, transaction))
        throw new PoolRefusal("replacement transaction underpriced")
      const own = [...places.values()].filter((each) => each.from === from).length
      // Public pools always accept the transaction that the others wait for, or none of those would ever leave.
      if (!present && own >= placesPerSender && nonce > sender.nonce)
        throw new PoolRefusal(`account limit exceeded: pooled ${own} txs`)
      for (let below = sender.nonce; below < nonce; below++)
        if (!places.has(placeOf(from, below)))
          throw new PoolRefusal(`nonce too high: tx nonce ${nonce}, gapped nonce ${below}`)
      places.set(place, transaction)
    },
    putBack(transaction) {
      const place = placeOf(transaction.from, transaction.nonce)
      if (!places.has(place)) places.set(place, transaction)
    },
    dropUsed(nonceOf) {
      for (const [place, { from, nonce }] of places) if (nonce < nonceOf(from)) places.delete(place)
    },
    drop({ from, nonce }) {
      places.delete(placeOf(from, nonce))
    },
    holds: (address, nonce) => places.has(placeOf(address, nonce)),
    all: () =>
      [...places.values()].sort((one, other) =>
        one.from === other.from ? one.nonce - other.nonce : one.from < other.from ? -1 : 1,
      ),
  }
}

/** Both fees are ten percent above the present ones. */
function isRaised(before: PoolTransaction, wanted: PoolTransaction): boolean {
  const isMore = (one: bigint, other: bigint) => one * 10n >= other * 11n
  return (
    isMore(wanted.max_fee_per_gas, before.max_fee_per_gas) &&
    isMore(wanted.max_priority_fee_per_gas, before.max_priority_fee_per_gas)
  )
}
