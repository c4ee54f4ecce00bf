import { expect, test } from "bun:test"
import { createPool, type PoolTransaction } from "./pool.ts"

const from = `0x${"aa".repeat(20)}`
const sender = { nonce: 7, balance: 10n ** 18n }

test("a pool that holds all it holds of a sender takes what these wait for, and nothing after it", () => {
  const pool = createPool()
  for (let nonce = 8; nonce < 8 + 20; nonce++) pool.putBack(withNonce(nonce))
  expect(() => pool.take(withNonce(28), sender, 1n)).toThrow("account limit exceeded")
  pool.take(withNonce(7), sender, 1n)
  expect(pool.all().map(({ nonce }) => nonce)).toEqual(Array.from({ length: 21 }, (_, index) => 7 + index))
})

function withNonce(nonce: number): PoolTransaction {
  const fees = { max_fee_per_gas: 10n, max_priority_fee_per_gas: 1n }
  return { hash: `0x${nonce}`, from, to: from, nonce, data: "0x", gas: 21_000n, value: 0n, ...fees }
}
