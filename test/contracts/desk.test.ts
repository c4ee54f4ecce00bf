import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import {
  type Address,
  type BaseError,
  concatHex,
  encodeErrorResult,
  encodeFunctionData,
  type Hex,
  numberToHex,
  parseEventLogs,
  RpcRequestError,
} from "viem"
import { collectionAbi, deskAbi, deskBytecode } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
  type Chain,
  type Contract,
  contractAt,
  deploy,
  deployCollection,
  deployService,
  guardian,
  operator,
  packed,
  placeCode,
  rpc,
  type Service,
  startChain,
} from "../harness/contracts.ts"

setDefaultTimeout(30_000)
const [alice, stranger] = [account(3), account(5)]

let chain: Chain
let service: Service
let desk: Contract

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
  const args = [service.factory.address]
  const { address } = await deploy(chain, admin.address, { abi: deskAbi, bytecode: deskBytecode, args })
  desk = contractAt(chain, address, deskAbi)
  await service.factory.run(admin.address, "setRoles", address, 7n)
})

afterAll(() => chain.stop())

let collections = 0

/** A collection of three units in custody. */
async function stocked(): Promise<Contract> {
  const collection = await deployCollection(service, `desk ${++collections}`)
  await collection.run(operator.address, "issue", 1n, packed([11, 12, 13]), false)
  return collection
}

type Call = { to: Address; data: Hex }

function claimOf({ address: to }: Contract, serial: bigint, recipient: Address = alice.address): Call {
  return {
    to,
    data: encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: [serial, recipient] }),
  }
}

function issueOf({ address: to }: Contract, first: bigint, chips: number[], asCode = false): Call {
  const args = [first, packed(chips), asCode] as const
  return { to, data: encodeFunctionData({ abi: collectionAbi, functionName: "issue", args }) }
}

/** Code that reverts with this many equal bytes. */
function reverter(size: number): Hex {
  return concatHex([
    "0x62",
    numberToHex(size, { size: 3 }),
    "0x5f5260ff5f53", // MSTORE8: memory grows with the revert itself
    "0x62",
    numberToHex(size, { size: 3 }),
    "0x5ffd",
  ])
}

function place(code: Hex): Promise<Address> {
  return placeCode(chain, account(60 + ++collections).address, code)
}

describe("the desk", () => {
  test("calls many collections in one transaction, for a key that has their roles", async () => {
    const [one, other] = [await stocked(), await stocked()]
    const replaced = encodeFunctionData({
      abi: collectionAbi,
      functionName: "replaceChip",
      args: [2n, 12, 22],
    })
    const batch = encodeFunctionData({
      abi: collectionAbi,
      functionName: "claimBatch",
      args: [
        [2n, 3n],
        [alice.address, stranger.address],
      ],
    })
    const refresh = encodeFunctionData({
      abi: collectionAbi,
      functionName: "refreshMetadata",
      args: [1n, 9n],
    })
    const calls = [
      claimOf(one, 1n),
      issueOf(one, 4n, [14]),
      { to: one.address, data: replaced },
      { to: other.address, data: batch },
      issueOf(other, 4n, [24], true),
      { to: other.address, data: refresh },
    ]
    expect(await desk.run(operator.address, "run", calls)).toEqual([])
    expect(await one.read("ownerOf", 1n)).toBe(alice.address)
    expect([await one.read("chipOf", 4n), await other.read("chipOf", 4n)]).toEqual([14, 24])
    expect(await one.read("chipOf", 2n)).toBe(22)
    expect(await other.read("ownerOf", 3n)).toBe(stranger.address)
  })

  test("skips a call that a collection rejects, emits the reason, and makes the rest", async () => {
    const [one, other] = [await stocked(), await stocked()]
    await one.run(operator.address, "claim", 1n, stranger.address)
    const events = await desk.run(operator.address, "run", [
      claimOf(one, 1n),
      claimOf(other, 1n),
      claimOf(other, 9n),
    ])
    const reasonOf = (errorName: "AlreadyClaimed" | "NotIssued", args: readonly unknown[]) =>
      encodeErrorResult({ abi: collectionAbi, errorName, args: args as never })
    expect(events).toEqual([
      ["CallSkipped", 0n, one.address, reasonOf("AlreadyClaimed", [1n, stranger.address])],
      ["CallSkipped", 2n, other.address, reasonOf("NotIssued", [9n])],
    ])
    expect(await other.read("ownerOf", 1n)).toBe(alice.address)
  })

  test("reverts with the last error if all calls are rejected, and does nothing for no calls", async () => {
    const collection = await stocked()
    const calls = [claimOf(collection, 9n), claimOf(collection, 8n)]
    const data = encodeFunctionData({ abi: deskAbi, functionName: "run", args: [calls] })
    const answer = await chain.client
      .call({ account: operator.address, to: desk.address, data })
      .catch((error: BaseError) => error.walk((cause) => cause instanceof RpcRequestError))
    const refusal = encodeErrorResult({ abi: collectionAbi, errorName: "NotIssued", args: [8n] })
    expect(answer).toMatchObject({ data: refusal })
    expect(await desk.run(operator.address, "run", [])).toEqual([])
  })

  test("skips an address without a contract, where a call would succeed without effect", async () => {
    const collection = await stocked()
    const nowhere = account(77).address
    const calls = [claimOf({ ...collection, address: nowhere }, 1n), claimOf(collection, 1n)]
    const reason = encodeErrorResult({ abi: deskAbi, errorName: "NoContract" })
    expect(await desk.run(operator.address, "run", calls)).toEqual([["CallSkipped", 0n, nowhere, reason]])
  })

  test("does not lend its roles: a caller needs each call's own role, and may not be paused", async () => {
    const { factory } = service
    const collection = await stocked()
    const [issue, claim] = [issueOf(collection, 4n, [14]), claimOf(collection, 1n)]
    const refusalOf = (calls: Call[]) => desk.refusal(stranger.address, "run", calls)
    expect(await refusalOf([claim])).toEqual(["NotAllowed", stranger.address, 2n])
    await factory.run(admin.address, "setRoles", stranger.address, 2n)
    expect(await refusalOf([claim])).toBeNull()
    expect(await refusalOf([claim, issue])).toEqual(["NotAllowed", stranger.address, 1n])
    await factory.run(guardian.address, "pause")
    expect(await refusalOf([claim])).toEqual(["NotAllowed", stranger.address, 2n])
    await factory.run(admin.address, "resume")
    await factory.run(admin.address, "setRoles", stranger.address, 0n)
    expect(await refusalOf([claim])).toEqual(["NotAllowed", stranger.address, 2n])
  })

  test("makes only calls that belong to the service's work", async () => {
    const { address: to } = await stocked()
    for (const data of ["0x", "0x12", "0xa22cb465", "0x42842e0e"] as const) {
      const selector = data.padEnd(10, "0")
      const refusal = await desk.refusal(operator.address, "run", [{ to, data }])
      expect(refusal).toEqual(["UnknownCall", 0n, selector])
    }
  })

  test("copies at most 256 bytes of an error, however long it is", async () => {
    const collection = await stocked()
    const long = await place(reverter(100_000))
    const calls = [claimOf({ ...collection, address: long }, 1n), claimOf(collection, 1n)]
    const [[name, index, to, reason] = []] = await desk.run(operator.address, "run", calls)
    expect([name, index, to, String(reason).length]).toEqual(["CallSkipped", 0n, long, 2 + 2 * 256])
    expect(await collection.read("ownerOf", 1n)).toBe(alice.address)
  })

  test("never takes a failure without data for a rejection", async () => {
    const collection = await stocked()
    const silent = await place("0x5f5ffd")
    const calls = [claimOf(collection, 1n), claimOf({ ...collection, address: silent }, 1n)]
    expect(await desk.refusal(operator.address, "run", calls)).toEqual(["CallRanOut", 1n])
  })
})

describe("with any gas limit the desk", () => {
  test("does everything possible or nothing: claims, and issuances in slots or as code", async () => {
    const [one, other] = [await stocked(), await stocked()]
    // The expensive call last: what is left when it lacks gas would be enough to skip it.
    const chips = Array.from({ length: 250 }, (_each, index) => 100 + index)
    const calls = [
      claimOf(one, 1n),
      issueOf(other, 4n, [24]),
      claimOf(other, 2n),
      issueOf(one, 4n, chips, true),
    ]
    const data = encodeFunctionData({ abi: deskAbi, functionName: "run", args: [calls] })
    const { client } = chain
    const needed = Number(await client.estimateGas({ account: operator.address, to: desk.address, data }))
    const outcomes = new Set<string>()
    for (let step = 0; step <= 60; step++) {
      const gas = Math.round(200_000 + ((needed * 1.02 - 200_000) * step) / 60)
      const snapshot = await rpc(chain, "evm_snapshot", [])
      const hash = await rpc<Hex>(chain, "eth_sendTransaction", [
        { from: operator.address, to: desk.address, data, gas: numberToHex(gas) },
      ])
      const receipt = await client.waitForTransactionReceipt({ hash, pollingInterval: 20 })
      const skipped = parseEventLogs({ abi: deskAbi, eventName: "CallSkipped", logs: receipt.logs })
      expect(skipped).toEqual([])
      const isDone =
        (await one.read("issued")) === 253n && (await other.read("ownerOf", 2n)) === alice.address
      expect(isDone).toBe(receipt.status === "success")
      outcomes.add(receipt.status)
      await rpc(chain, "evm_revert", [snapshot])
    }
    expect([...outcomes].sort()).toEqual(["reverted", "success"])
  })
})
