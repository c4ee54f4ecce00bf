import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { encodeFunctionData, getContractAddress, type Hex, numberToHex } from "viem"
import { collectionAbi, deskAbi, deskBytecode } from "../../src/engine/chain/contracts.generated.ts"
import {
  admin,
  type Chain,
  type Contract,
  contractAt,
  deploy,
  deployCollection,
  deployService,
  operator,
  packed,
  rpc,
  type Service,
  startChain,
} from "../harness/contracts.ts"
import { seedOf } from "../harness/seed.ts"
import { streamOf } from "../simulation/streams.ts"

setDefaultTimeout(60_000)
const seed = BigInt(seedOf("STORES_SEED"))

let chain: Chain
let service: Service
let desk: Contract

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
  const args = [service.factory.address]
  const { address } = await deploy(chain, admin.address, { abi: deskAbi, bytecode: deskBytecode, args })
  desk = contractAt(chain, address, deskAbi)
  await service.factory.run(admin.address, "setRoles", address, 1n)
})

afterAll(() => chain.stop())

type Batch = { first: number; chips: number[]; asCode: boolean }

/** Issues batches in this order, many in one transaction. */
async function issueAll({ address: to }: Contract, batches: Batch[]): Promise<void> {
  for (let from = 0; from < batches.length; from += 60) {
    const calls = batches.slice(from, from + 60).map(({ first, chips, asCode }) => ({
      to,
      data: encodeFunctionData({
        abi: collectionAbi,
        functionName: "issue",
        args: [BigInt(first), packed(chips), asCode],
      }),
    }))
    expect(await desk.run(operator.address, "run", calls)).toEqual([])
  }
}

/** This many stores, with batches in slots between them. */
function batchesWith(stores: number, chance: ReturnType<typeof streamOf>): Batch[] {
  const batches: Batch[] = []
  for (let made = 0, first = 1; made < stores; ) {
    const chips = Array.from({ length: 1 + chance.below(4) }, () => 1 + chance.below(2 ** 31))
    const asCode = chance.happens(0.75)
    batches.push({ first, chips, asCode })
    first += chips.length
    if (asCode) made += 1
  }
  return batches
}

describe(`chips in slots and in 300 stores, with the seed ${seed},`, () => {
  let collection: Contract
  let batches: Batch[]
  let chips: number[]
  beforeAll(async () => {
    collection = await deployCollection(service, "stores")
    batches = batchesWith(300, streamOf(seed, "stores"))
    chips = batches.flatMap((batch) => batch.chips)
    await issueAll(collection, batches)
  })

  test("are all found again", async () => {
    const found = await Promise.all(chips.map((_chip, index) => collection.read("chipOf", BigInt(index + 1))))
    expect(found).toEqual(chips)
    expect(await chain.client.getTransactionCount({ address: collection.address })).toBe(301)
  })

  test("are in the stores that their numbers lead to, in every form of an address", async () => {
    const stored = batches.filter(({ asCode }) => asCode)
    for (const number of [1, 127, 128, 129, 255, 256, 257, 300]) {
      const { first, chips: own } = stored[number - 1] as Batch
      const address = getContractAddress({ from: collection.address, nonce: BigInt(number) })
      expect(await chain.client.getCode({ address })).toBe(
        `${numberToHex(first, { size: 5 })}${packed(own).slice(2)}` as Hex,
      )
    }
  })

  test("are issued once, however a repetition is split and stored", async () => {
    const chance = streamOf(seed, "repeats")
    const refusalOf = (first: number, of: number[], asCode: boolean) =>
      collection.refusal(operator.address, "issue", BigInt(first), packed(of), asCode)
    for (let count = 0; count < 40; count++) {
      const start = chance.below(chips.length)
      const size = 1 + chance.below(Math.min(20, chips.length - start))
      const part = chips.slice(start, start + size)
      expect(await refusalOf(start + 1, part, chance.happens(0.5))).toBeNull()
      const at = chance.below(size)
      const changed = part.map((chip, index) => (index === at ? chip + 1 : chip))
      expect(await refusalOf(start + 1, changed, chance.happens(0.5))).toEqual([
        "IssuedDifferently",
        BigInt(start + 1 + at),
        part[at],
        (part[at] ?? 0) + 1,
      ])
    }
    for (const { first, chips: own } of [batches[0], batches.at(-1)] as Batch[])
      expect(await refusalOf(first, own, true)).toBeNull()
    const longer = [...chips.slice(-2), 77]
    expect(await refusalOf(chips.length - 1, longer, true)).toEqual([
      "IssuedDifferently",
      BigInt(chips.length + 1),
      0,
      77,
    ])
    expect(await refusalOf(0, [1], true)).toEqual(["NotIssued", 0n])
    expect(await refusalOf(chips.length + 2, [1], true)).toEqual([
      "SerialGap",
      BigInt(chips.length + 2),
      BigInt(chips.length + 1),
    ])
    expect(await collection.read("issued")).toBe(BigInt(chips.length))
  })

  test("cannot be called as contracts, and can be replaced like others", async () => {
    const address = getContractAddress({ from: collection.address, nonce: 1n })
    const { data } = await chain.client.call({ to: address, data: "0x12345678" })
    expect(data).toBeUndefined()
    const last = BigInt(chips.length)
    await collection.run(operator.address, "replaceChip", last, chips.at(-1), 5)
    expect(await collection.read("chipOf", last)).toBe(5)
    // What it was issued with stays known.
    const own = batches.at(-1) as Batch
    const repeat = collection.run(operator.address, "issue", BigInt(own.first), packed(own.chips), own.asCode)
    expect(await repeat).toEqual([])
  })
})

test("a store is found by the address of its number, however large that is", async () => {
  for (const number of [0xffff, 0x10000, 0xffffff, 0x1000000]) {
    const collection = await deployCollection(service, `store ${number}`)
    await setCounts(collection, { issued: 1n, stores: BigInt(number) })
    const address = getContractAddress({ from: collection.address, nonce: BigInt(number) })
    await rpc(chain, "anvil_setCode", [address, `${numberToHex(1, { size: 5 })}${packed([9]).slice(2)}`])
    expect(await collection.read("chipOf", 1n)).toBe(9)
  }
})

describe("serials", () => {
  test("end at the highest one that a store has room for", async () => {
    const collection = await deployCollection(service, "serials")
    await setCounts(collection, { issued: 2n ** 32n - 2n, stores: 0n })
    expect(await collection.read("issued")).toBe(2n ** 32n - 2n)
    const refusalOf = (chips: number[]) =>
      collection.refusal(operator.address, "issue", 2n ** 32n - 1n, packed(chips), true)
    expect(await refusalOf([1, 2])).toEqual(["TooManySerials", 2n ** 32n, 2n ** 32n - 1n])
    expect(await refusalOf([1])).toBeNull()
    await collection.run(operator.address, "issue", 2n ** 32n - 1n, packed([9]), true)
    expect(await collection.read("chipOf", 2n ** 32n - 1n)).toBe(9)
  })
})

/** As after this many issuances: the counts share a slot, 64 bits each, issued, claimed and stores. */
async function setCounts({ address }: Contract, counts: { issued: bigint; stores: bigint }): Promise<void> {
  const slot = numberToHex(6, { size: 32 })
  const word = numberToHex(counts.issued | (counts.stores << 128n), { size: 32 })
  await rpc(chain, "anvil_setStorageAt", [address, slot, word])
}
