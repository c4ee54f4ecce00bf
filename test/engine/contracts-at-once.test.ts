import { expect, test } from "bun:test"
import { type Address, numberToHex, RpcRequestError } from "viem"
import { createContractsAtOnce } from "../../src/engine/chain/contracts-at-once.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"

const contracts = Array.from({ length: 20 }, (_, index) => numberToHex(index + 1, { size: 20 }))

/** A provider that returns the requested contract addresses, up to a number per request. */
function startProvider(most: number) {
  const provider = { most, refusals: 0, words: "Please, specify less number of addresses" }
  const answer = async (some: Address[]) => {
    if (some.length <= provider.most) return some
    provider.refusals += 1
    throw new RpcRequestError({ body: {}, url: "", error: { code: -32_701, message: provider.words } })
  }
  const { partsOf, ask } = createContractsAtOnce()
  const readAll = async () => (await Promise.all(partsOf(contracts).map((part) => ask(part, answer)))).flat()
  return { provider, readAll }
}

test("each contract is queried once, however few the provider accepts per request", async () => {
  for (const most of [1, 2, 3, 7, 19, 20]) {
    const { readAll } = startProvider(most)
    for (let round = 0; round < 3; round++) expect(await readAll()).toEqual(contracts)
  }
})

test("all contracts are queried together again once the provider accepts that", async () => {
  const { provider, readAll } = startProvider(3)
  await readAll()
  provider.most = 20
  for (let round = 0; round < 30; round++) await readAll()
  provider.refusals = 0
  provider.most = 19
  await readAll()
  expect(provider.refusals).toBe(1)
})

test("another error, or an error for a single contract, does not reduce the number per request", async () => {
  const { readAll } = startProvider(0)
  await expect(readAll()).rejects.toBeInstanceOf(ChainUnreachable)
  const other = startProvider(3)
  other.provider.words = "header not found"
  await expect(other.readAll()).rejects.toThrow("header not found")
  expect(other.provider.refusals).toBe(1)
})
