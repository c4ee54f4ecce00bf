import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { type Address, concatHex, type Hex, hashTypedData, zeroAddress } from "viem"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
  authorization,
  authorizer,
  type Chain,
  type Contract,
  deployCollection,
  deployService,
  guardian,
  operator,
  packed,
  passTime,
  placeCode,
  release,
  rpc,
  type Service,
  startChain,
} from "../harness/contracts.ts"

setDefaultTimeout(30_000)
const [alice, bob, second, third] = [account(3), account(4), account(8), account(9)]
const never = 2n ** 64n
const day = 24 * 3_600

let chain: Chain
let service: Service
let collection: Contract
let serial = 0n

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
  collection = await deployCollection(service, "authorizers")
  const chips = Array.from({ length: 60 }, (_each, index) => index + 1)
  await collection.run(operator.address, "issue", 1n, packed(chips), true)
})

afterAll(() => chain.stop())

async function now(): Promise<bigint> {
  return (await chain.client.getBlock()).timestamp
}

function setAuthorizer(to: Address, until: bigint) {
  return service.factory.run(admin.address, "setAuthorizer", to, until)
}

function typedClaim(of: bigint, nonce = 0n) {
  const message = { serial: of, recipient: alice.address, nonce, deadline: never }
  return authorization(collection.address, "Claim", message)
}

/** The error that a claim with this signature would revert with; null if none. */
function refusalOf(signature: Hex, of: bigint) {
  return collection.refusal(alice.address, "claimWithAuthorization", of, alice.address, never, signature)
}

async function judge(signer: typeof alice): Promise<"accepted" | string> {
  serial += 1n
  const refusal = await refusalOf(await signer.signTypedData(typedClaim(serial)), serial)
  return refusal === null ? "accepted" : String(refusal[0])
}

function place(code: Hex): Promise<Address> {
  return placeCode(chain, account(40 + Number(++serial)).address, code)
}

describe("an authorizer that was replaced", () => {
  test("stays valid until its end, to the second, next to the current one", async () => {
    const until = (await now()) + 7n * BigInt(day)
    const before = authorizer.address
    expect(await setAuthorizer(second.address, until)).toEqual([
      ["AuthorizerSet", second.address, before, until],
    ])
    expect(await service.factory.read("previousAuthorizer")).toEqual([before, until])
    expect([await judge(authorizer), await judge(second), await judge(third)]).toEqual([
      "accepted",
      "accepted",
      "InvalidAuthorization",
    ])
    await rpc(chain, "evm_setNextBlockTimestamp", [Number(until)])
    await rpc(chain, "evm_mine", [])
    expect(await judge(authorizer)).toBe("accepted")
    await passTime(chain, 1)
    expect([await judge(authorizer), await judge(second)]).toEqual(["InvalidAuthorization", "accepted"])
  })

  test("stays valid for at most seven days", async () => {
    const latest = (await now()) + 7n * BigInt(day)
    const refusal = await service.factory.refusal(admin.address, "setAuthorizer", third.address, latest + 60n)
    expect(refusal?.[0]).toBe("OverlapTooLong")
  })

  test("gives way to the next: of three only two are valid, and naming the current one again moves the other's end", async () => {
    const until = (await now()) + BigInt(day)
    await setAuthorizer(authorizer.address, 0n)
    await setAuthorizer(second.address, until)
    await setAuthorizer(third.address, until)
    expect([await judge(authorizer), await judge(second), await judge(third)]).toEqual([
      "InvalidAuthorization",
      "accepted",
      "accepted",
    ])
    expect(await setAuthorizer(third.address, 0n)).toEqual([
      ["AuthorizerSet", third.address, second.address, 0n],
    ])
    expect([await judge(second), await judge(third)]).toEqual(["InvalidAuthorization", "accepted"])
  })

  test("does not exist if there was none, whoever signs", async () => {
    await setAuthorizer(zeroAddress, 0n)
    await setAuthorizer(authorizer.address, (await now()) + BigInt(day))
    const unrecoverable = concatHex([`0x${"00".repeat(64)}`, "0x1b"])
    expect((await refusalOf(unrecoverable, ++serial))?.[0]).toBe("InvalidAuthorization")
    expect(await judge(authorizer)).toBe("accepted")
  })
})

describe("authorizations", () => {
  test("stop being valid during a pause, and are valid again after it", async () => {
    await service.factory.run(guardian.address, "pause")
    expect(await judge(authorizer)).toBe("AuthorizationsPaused")
    await service.factory.run(admin.address, "resume")
    expect(await judge(authorizer)).toBe("accepted")
  })

  test("given before a chip replacement become invalid with it", async () => {
    const of = ++serial
    const before = await authorizer.signTypedData(typedClaim(of))
    expect(await refusalOf(before, of)).toBeNull()
    await collection.run(operator.address, "replaceChip", of, Number(of), 900)
    expect(await collection.read("authorizationNonce", of)).toBe(1n)
    expect(await refusalOf(before, of)).toEqual(["InvalidAuthorization", of, 1n])
    expect(await refusalOf(await authorizer.signTypedData(typedClaim(of, 1n)), of)).toBeNull()
    await collection.run(operator.address, "claim", of, alice.address)
    expect(await collection.read("authorizationNonce", of)).toBe(2n)
    // The claim's event still exists, although the nonce is no longer 1; after a transfer it does not, although the
    // owner is the same.
    expect(await collection.run(operator.address, "claim", of, alice.address)).toEqual([])
    for (const [from, to, nonce] of [
      [alice, bob, 2n],
      [bob, alice, 3n],
    ] as const) {
      const message = { serial: of, from: from.address, to: to.address, nonce, deadline: never }
      const signature = await authorizer.signTypedData(authorization(collection.address, "Transfer", message))
      await collection.run(from.address, "transferWithAuthorization", of, to.address, never, signature)
    }
    const repeated = await collection.refusal(operator.address, "claim", of, alice.address)
    expect(repeated).toEqual(["AlreadyClaimed", of, alice.address])
    expect(await collection.run(operator.address, "claimBatch", [of], [alice.address])).toEqual([
      ["ClaimSkipped", of, alice.address],
    ])
  })
})

describe("an authorizer that is a contract (ERC-1271)", () => {
  /** Approves this digest, with a return value of this size. */
  function judgeOf(digest: Hex, size = 32): Hex {
    const bytes = size.toString(16).padStart(6, "0")
    return concatHex([
      "0x7f",
      digest,
      "0x60043514",
      "0x631626ba7e",
      "0x0260e01b5f52",
      `0x62${bytes}`,
      "0x5ff3",
    ])
  }

  test("judges signatures of any form itself, also as the previous authorizer", async () => {
    const of = ++serial
    const wallet = await place(judgeOf(hashTypedData(typedClaim(of))))
    await setAuthorizer(wallet, 0n)
    for (const signature of ["0x", "0x1234", `0x${"ab".repeat(2_000)}`] as const)
      expect(await refusalOf(signature, of)).toBeNull()
    expect((await refusalOf("0x1234", of + 1n))?.[0]).toBe("InvalidAuthorization")
    expect(await judge(authorizer)).toBe("InvalidAuthorization")
    await setAuthorizer(authorizer.address, (await now()) + BigInt(day))
    expect(await refusalOf("0x1234", of)).toBeNull()
    expect(await judge(authorizer)).toBe("accepted")
  })

  test("is rejected if it returns false, nothing or too little, or reverts", async () => {
    const of = ++serial
    for (const code of [
      "0x5f5ff3",
      "0x60015f5260205ff3",
      "0x631626ba7e60e01b5f5260045ff3",
      "0x5f5ffd",
    ] as const) {
      await setAuthorizer(await place(code), 0n)
      expect((await refusalOf("0x1234", of))?.[0]).toBe("InvalidAuthorization")
    }
  })

  test("that returns 256 KiB costs no more than the contract itself spends on it", async () => {
    const of = ++serial
    const digest = hashTypedData(typedClaim(of))
    const gas = async (size: number) => {
      await setAuthorizer(await place(judgeOf(digest, size)), 0n)
      return await gasOf(alice.address, "claimWithAuthorization", of, alice.address, never, "0x1234")
    }
    const [short, long] = [await gas(32), await gas(262_144)]
    // Its own memory of 8,192 words; a copy would cost as much again.
    expect(long - short).toBeLessThan(170_000)
    await setAuthorizer(authorizer.address, 0n)
  })
})

async function gasOf(from: Address, functionName: string, ...args: readonly unknown[]): Promise<number> {
  const question = { address: collection.address, abi: collectionAbi }
  const gas = await chain.client.estimateContractGas({
    ...question,
    account: from,
    functionName,
    args,
  } as never)
  return Number(gas)
}

describe("a receiver of a safe transfer", () => {
  test("is checked by the first word it returns, and costs the sender only what it spends itself", async () => {
    const own = await deployService(chain)
    const released = await deployCollection(own, "receivers")
    await released.run(operator.address, "issue", 1n, packed([1]), false)
    await released.run(operator.address, "claim", 1n, alice.address)
    await release(own)
    const magic = "0x63150b7a0260e01b5f52"
    const refusal = async (code: Hex) =>
      await released.refusal(alice.address, "safeTransferFrom", alice.address, await place(code), 1n)
    expect(await refusal(concatHex([magic, "0x60205ff3"]))).toBeNull()
    expect(await refusal(concatHex([magic, "0x620400005ff3"]))).toBeNull()
    for (const code of [
      concatHex([magic, "0x60045ff3"]),
      "0x620400005ff3",
      "0x620400005ffd",
      "0x5f5ff3",
    ] as const)
      expect((await refusal(code))?.[0]).toBe("UnsafeRecipient")
  })
})
