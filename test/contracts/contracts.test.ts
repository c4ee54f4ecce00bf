import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import {
  type Address,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  hexToBigInt,
  keccak256,
  numberToHex,
  parseSignature,
  serializeSignature,
  zeroAddress,
} from "viem"
import { generate, loadCompiler } from "../../contracts/compile.ts"
import { collectionSalt } from "../../src/engine/chain/collection-address.ts"
import { collectionAbi, deskBytecode, factoryBytecode } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
  authorization,
  authorizer,
  type Chain,
  type Contract,
  contractAt,
  deployCollection,
  deployService,
  freshWallet,
  operator,
  packed,
  release,
  rpc,
  type Service,
  send,
  startChain,
} from "../harness/contracts.ts"

const alice = account(3)
const bob = account(4)
const stranger = account(5)
const chips = [0x0400000001, 0x04a1b2c3d4, 0xffffffffff]
const never = 2n ** 64n

let chain: Chain
let service: Service

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
})

afterAll(() => chain.stop())

let collections = 0

function newCollection(of = service): Promise<Contract> {
  return deployCollection(of, `collection ${++collections}`)
}

/** A collection with serials 1 to 3; alice has claimed 1. */
async function startedCollection(of = service): Promise<Contract> {
  const collection = await newCollection(of)
  await collection.run(operator.address, "issue", 1n, packed(chips), false)
  await collection.run(operator.address, "claim", 1n, alice.address)
  return collection
}

/** A collection of a released service with serials 1 to 3; alice has claimed 1. */
async function releasedCollection(): Promise<Contract> {
  const ended = await deployService(chain)
  const collection = await startedCollection(ended)
  await release(ended)
  return collection
}

function signClaim(collection: Contract, serial: bigint, recipient: Address, deadline = never): Promise<Hex> {
  return authorizer.signTypedData(
    authorization(collection.address, "Claim", { serial, recipient, nonce: 0n, deadline }),
  )
}

function signTransfer(
  collection: Contract,
  transfer: { serial: bigint; from: Address; to: Address; nonce: bigint; deadline?: bigint },
): Promise<Hex> {
  return authorizer.signTypedData(
    authorization(collection.address, "Transfer", { deadline: never, ...transfer }),
  )
}

describe("the compiled contracts", () => {
  test("match the sources", async () => {
    for (const [file, text] of Object.entries(generate()))
      expect((await Bun.file(join(import.meta.dir, "../..", file)).text()) === text).toBe(true)
  }, 60_000)

  test("can be verified on an explorer: the printed input alone compiles to what is deployed", async () => {
    const compile = join(import.meta.dir, "../../contracts/compile.ts")
    const input = await Bun.$`${process.execPath} ${compile} --input`.text()
    const { contracts } = JSON.parse(loadCompiler().compile(input))
    const codeOf = (name: string) => `0x${contracts[`${name}.sol`][name].evm.bytecode.object}`
    expect(codeOf("ServiceFactory") === factoryBytecode).toBe(true)
    expect(codeOf("ServiceDesk") === deskBytecode).toBe(true)
  }, 60_000)
})

describe("issuance", () => {
  test("gives each chip the next serial, in the collection's custody", async () => {
    const collection = await newCollection()
    expect(await collection.run(operator.address, "issue", 1n, packed(chips), false)).toEqual([
      ["Transfer", zeroAddress, collection.address, 1n],
      ["Transfer", zeroAddress, collection.address, 2n],
      ["Transfer", zeroAddress, collection.address, 3n],
      ["Issued", 1n, packed(chips)],
    ])
    for (const [index, chip] of chips.entries()) {
      const serial = BigInt(index + 1)
      expect(await collection.read("ownerOf", serial)).toBe(collection.address)
      expect(await collection.read("chipOf", serial)).toBe(chip)
      expect(await collection.read("authorizationNonce", serial)).toBe(0n)
    }
    expect(await collection.read("issued")).toBe(3n)
    expect(await collection.read("totalSupply")).toBe(3n)
    expect(await collection.read("balanceOf", collection.address)).toBe(3n)
  })

  test("keeps the chips of earlier batches, whatever sizes the batches have", async () => {
    const collection = await newCollection()
    const all = Array.from({ length: 20 }, (_, index) => 0xff00000001 + index)
    for (const [start, end] of [
      [0, 1],
      [1, 5],
      [5, 6],
      [6, 12],
      [12, 20],
    ] as const) {
      await collection.run(operator.address, "issue", BigInt(start + 1), packed(all.slice(start, end)), false)
    }
    const read = await Promise.all(all.map((_, index) => collection.read("chipOf", BigInt(index + 1))))
    expect(read).toEqual(all)
  })

  test("has no effect when repeated, even in part or after claims and replacements", async () => {
    const collection = await startedCollection()
    await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)
    expect(await collection.run(operator.address, "issue", 1n, packed(chips), false)).toEqual([])
    expect(await collection.run(operator.address, "issue", 2n, packed(chips.slice(1)), false)).toEqual([])
    expect(await collection.read("chipOf", 2n)).toBe(77)
    expect(await collection.read("issued")).toBe(3n)
  })

  test("names the first serial that was issued with another chip", async () => {
    const collection = await startedCollection()
    const issue = (first: bigint, content: readonly number[]) =>
      collection.refusal(operator.address, "issue", first, packed(content), false)
    expect(await issue(1n, [chips[0] ?? 0, 9, 9])).toEqual(["IssuedDifferently", 2n, chips[1], 9])
    expect(await issue(1n, [...chips, 9])).toEqual(["IssuedDifferently", 4n, 0, 9])
    expect(await issue(3n, [0])).toEqual(["IssuedDifferently", 3n, chips[2], 0])
    expect(await issue(3n, [chips[2] ?? 0, 0])).toEqual(["IssuedDifferently", 4n, 0, 0])
    expect(await issue(0n, chips)).toEqual(["NotIssued", 0n])
  })

  test("rejects a batch while an earlier one is missing", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(operator.address, "issue", 5n, packed(chips), false)).toEqual([
      "SerialGap",
      5n,
      4n,
    ])
    expect(
      await collection.refusal(operator.address, "issue", 2n ** 256n - 1n, packed(chips), false),
    ).toEqual(["SerialGap", 2n ** 256n - 1n, 4n])
  })

  test("rejects zero chip IDs, naming their serial, and incomplete chip IDs", async () => {
    const collection = await newCollection()
    expect(await collection.refusal(operator.address, "issue", 1n, packed([...chips, 0]), false)).toEqual([
      "InvalidChip",
      4n,
    ])
    for (const length of [6, 14])
      expect(
        await collection.refusal(operator.address, "issue", 1n, `0x${"01".repeat(length)}`, false),
      ).toEqual(["InvalidLength", BigInt(length)])
    expect(await collection.read("issued")).toBe(0n)
  })

  test("accepts 1 to 250 chips at once", async () => {
    const collection = await newCollection()
    const maximum = Array.from({ length: 250 }, (_, index) => 0x0400000000 + index)
    expect(await collection.refusal(operator.address, "issue", 1n, packed([]), false)).toEqual([
      "InvalidBatchSize",
      0n,
      250n,
    ])
    expect(await collection.refusal(operator.address, "issue", 1n, packed([...maximum, 1]), false)).toEqual([
      "InvalidBatchSize",
      251n,
      250n,
    ])
    await collection.run(operator.address, "issue", 1n, packed(maximum), false)
    expect(await collection.read("chipOf", 250n)).toBe(0x0400000000 + 249)
  })

  test("is for operators only", async () => {
    const collection = await newCollection()
    expect(await collection.refusal(stranger.address, "issue", 1n, packed(chips), false)).toEqual([
      "NotAllowed",
      stranger.address,
      1n,
    ])
  })
})

describe("a claim", () => {
  test("transfers the token to the recipient", async () => {
    const collection = await newCollection()
    await collection.run(operator.address, "issue", 1n, packed(chips), false)
    expect(await collection.run(operator.address, "claim", 2n, alice.address)).toEqual([
      ["Transfer", collection.address, alice.address, 2n],
    ])
    expect(await collection.read("ownerOf", 2n)).toBe(alice.address)
    expect(await collection.read("balanceOf", alice.address)).toBe(1n)
    expect(await collection.read("balanceOf", collection.address)).toBe(2n)
    expect(await collection.read("claimed")).toBe(1n)
    expect(await collection.read("authorizationNonce", 2n)).toBe(1n)
    expect(await collection.read("chipOf", 2n)).toBe(chips[1])
  })

  test("has no effect when repeated for the same recipient", async () => {
    const collection = await startedCollection()
    expect(await collection.run(operator.address, "claim", 1n, alice.address)).toEqual([])
    expect(await collection.read("claimed")).toBe(1n)
  })

  test("is rejected for another recipient, and names the owner", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(operator.address, "claim", 1n, bob.address)).toEqual([
      "AlreadyClaimed",
      1n,
      alice.address,
    ])
  })

  test("is rejected for an owner who got the token by transfer", async () => {
    const collection = await startedCollection()
    const signature = await signTransfer(collection, {
      serial: 1n,
      from: alice.address,
      to: bob.address,
      nonce: 1n,
    })
    await collection.run(alice.address, "transferWithAuthorization", 1n, bob.address, never, signature)
    expect(await collection.refusal(operator.address, "claim", 1n, bob.address)).toEqual([
      "AlreadyClaimed",
      1n,
      bob.address,
    ])
  })

  test("is rejected for serials that were not issued", async () => {
    const collection = await startedCollection()
    for (const serial of [0n, 4n, 2n ** 256n - 1n]) {
      expect(await collection.refusal(operator.address, "claim", serial, bob.address)).toEqual([
        "NotIssued",
        serial,
      ])
    }
  })

  test("is rejected for the zero address and for the collection itself", async () => {
    const collection = await startedCollection()
    for (const recipient of [zeroAddress, collection.address]) {
      expect(await collection.refusal(operator.address, "claim", 2n, recipient)).toEqual([
        "InvalidRecipient",
        recipient,
      ])
    }
  })

  test("is for operators only", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(alice.address, "claim", 2n, alice.address)).toEqual([
      "NotAllowed",
      alice.address,
      2n,
    ])
  })
})

describe("a batch of claims", () => {
  test("skips what cannot be claimed and claims the rest", async () => {
    const collection = await startedCollection()
    const entries: readonly (readonly [bigint, Address])[] = [
      [1n, bob.address],
      [2n, bob.address],
      [0n, bob.address],
      [4n, bob.address],
      [3n, zeroAddress],
      [3n, collection.address],
      [2n, alice.address],
      [2n, bob.address],
      [1n, alice.address],
      [3n, bob.address],
    ]
    const serials = entries.map(([serial]) => serial)
    const recipients = entries.map(([, recipient]) => recipient)
    expect(await collection.run(operator.address, "claimBatch", serials, recipients)).toEqual([
      ["ClaimSkipped", 1n, bob.address],
      ["Transfer", collection.address, bob.address, 2n],
      ["ClaimSkipped", 0n, bob.address],
      ["ClaimSkipped", 4n, bob.address],
      ["ClaimSkipped", 3n, zeroAddress],
      ["ClaimSkipped", 3n, collection.address],
      ["ClaimSkipped", 2n, alice.address],
      ["Transfer", collection.address, bob.address, 3n],
    ])
    expect(await collection.read("claimed")).toBe(3n)
    expect(await collection.read("balanceOf", bob.address)).toBe(2n)
  })

  test("has no effect when repeated", async () => {
    const collection = await startedCollection()
    const args = [
      [2n, 3n],
      [bob.address, alice.address],
    ]
    await collection.run(operator.address, "claimBatch", ...args)
    expect(await collection.run(operator.address, "claimBatch", ...args)).toEqual([])
    expect(await collection.read("claimed")).toBe(3n)
  })

  test("accepts 1 to 250 serials with as many recipients", async () => {
    const collection = await startedCollection()
    const claimBatch = (serials: number, recipients: number) =>
      collection.refusal(
        operator.address,
        "claimBatch",
        Array(serials).fill(2n),
        Array(recipients).fill(bob.address),
      )
    expect(await claimBatch(0, 0)).toEqual(["InvalidBatchSize", 0n, 250n])
    expect(await claimBatch(251, 251)).toEqual(["InvalidBatchSize", 251n, 250n])
    expect(await claimBatch(2, 1)).toEqual(["LengthMismatch", 2n, 1n])
  })

  test("is for operators only", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(alice.address, "claimBatch", [2n], [alice.address])).toEqual([
      "NotAllowed",
      alice.address,
      2n,
    ])
  })
})

describe("a claim with authorization", () => {
  test("transfers the token to its sender and records the authorization", async () => {
    const collection = await startedCollection()
    const typedData = authorization(collection.address, "Claim", {
      serial: 2n,
      recipient: bob.address,
      nonce: 0n,
      deadline: never,
    })
    const signature = await authorizer.signTypedData(typedData)
    const args = [2n, bob.address, never, signature]
    expect(await collection.run(bob.address, "claimWithAuthorization", ...args)).toEqual([
      ["AuthorizationUsed", 2n, hashTypedData(typedData)],
      ["Transfer", collection.address, bob.address, 2n],
    ])
    expect(await collection.read("ownerOf", 2n)).toBe(bob.address)
    expect(await collection.read("claimed")).toBe(2n)
  })

  test("is rejected when repeated", async () => {
    const collection = await startedCollection()
    const args = [2n, bob.address, never, await signClaim(collection, 2n, bob.address)]
    await collection.run(bob.address, "claimWithAuthorization", ...args)
    expect(await collection.refusal(bob.address, "claimWithAuthorization", ...args)).toEqual([
      "AlreadyClaimed",
      2n,
      bob.address,
    ])
  })

  test("turns the operator's claim for the same recipient into one without effect", async () => {
    const collection = await startedCollection()
    const signature = await signClaim(collection, 2n, bob.address)
    await collection.run(bob.address, "claimWithAuthorization", 2n, bob.address, never, signature)
    expect(await collection.run(operator.address, "claim", 2n, bob.address)).toEqual([])
  })

  test("can be sent by the recipient only", async () => {
    const collection = await startedCollection()
    const args = [2n, bob.address, never, await signClaim(collection, 2n, bob.address)]
    expect(await collection.refusal(alice.address, "claimWithAuthorization", ...args)).toEqual([
      "NotRecipient",
      alice.address,
      bob.address,
    ])
  })

  test("is rejected for a serial that was not issued", async () => {
    const collection = await startedCollection()
    const args = [4n, bob.address, never, await signClaim(collection, 4n, bob.address)]
    expect(await collection.refusal(bob.address, "claimWithAuthorization", ...args)).toEqual([
      "NotIssued",
      4n,
    ])
  })

  test("is valid until its deadline, to the second", async () => {
    const collection = await startedCollection()
    const block = await chain.client.getBlock()
    const deadline = block.timestamp + 1800n
    const onTime = [
      2n,
      bob.address,
      deadline,
      await signClaim(collection, 2n, bob.address, deadline),
    ] as const
    const late = [3n, bob.address, deadline, await signClaim(collection, 3n, bob.address, deadline)] as const
    const sendAt = async (timestamp: bigint, args: readonly [bigint, Address, bigint, Hex]) => {
      await rpc(chain, "evm_setNextBlockTimestamp", [numberToHex(timestamp)])
      const data = encodeFunctionData({ abi: collectionAbi, functionName: "claimWithAuthorization", args })
      return send(chain, bob.address, { to: collection.address, data })
    }
    expect((await sendAt(deadline, onTime)).succeeded).toBe(true)
    expect((await sendAt(deadline + 1n, late)).succeeded).toBe(false)
    const refusal = await collection.refusal(bob.address, "claimWithAuthorization", ...late)
    expect(refusal?.slice(0, 2)).toEqual(["AuthorizationExpired", deadline])
  })
})

describe("a transfer with authorization", () => {
  test("transfers the owner's token and records the authorization", async () => {
    const collection = await startedCollection()
    const typedData = authorization(collection.address, "Transfer", {
      serial: 1n,
      from: alice.address,
      to: bob.address,
      nonce: 1n,
      deadline: never,
    })
    const args = [1n, bob.address, never, await authorizer.signTypedData(typedData)]
    expect(await collection.run(alice.address, "transferWithAuthorization", ...args)).toEqual([
      ["AuthorizationUsed", 1n, hashTypedData(typedData)],
      ["Transfer", alice.address, bob.address, 1n],
    ])
    expect(await collection.read("ownerOf", 1n)).toBe(bob.address)
    expect(await collection.read("balanceOf", alice.address)).toBe(0n)
    expect(await collection.read("balanceOf", bob.address)).toBe(1n)
    expect(await collection.read("authorizationNonce", 1n)).toBe(2n)
    expect(await collection.read("chipOf", 1n)).toBe(chips[0])
  })

  test("works once, even if the token comes back", async () => {
    const collection = await startedCollection()
    const there = { serial: 1n, from: alice.address, to: bob.address, nonce: 1n }
    const args = [1n, bob.address, never, await signTransfer(collection, there)]
    await collection.run(alice.address, "transferWithAuthorization", ...args)
    expect(await collection.refusal(alice.address, "transferWithAuthorization", ...args)).toEqual([
      "NotOwner",
      alice.address,
      1n,
      bob.address,
    ])
    const back = { serial: 1n, from: bob.address, to: alice.address, nonce: 2n }
    const backArgs = [1n, alice.address, never, await signTransfer(collection, back)]
    await collection.run(bob.address, "transferWithAuthorization", ...backArgs)
    expect(await collection.refusal(alice.address, "transferWithAuthorization", ...args)).toEqual([
      "InvalidAuthorization",
      1n,
      3n,
    ])
  })

  test("to oneself consumes the authorization and keeps the balance", async () => {
    const collection = await startedCollection()
    const self = { serial: 1n, from: alice.address, to: alice.address, nonce: 1n }
    const args = [1n, alice.address, never, await signTransfer(collection, self)]
    await collection.run(alice.address, "transferWithAuthorization", ...args)
    expect(await collection.read("balanceOf", alice.address)).toBe(1n)
    expect(await collection.refusal(alice.address, "transferWithAuthorization", ...args)).toEqual([
      "InvalidAuthorization",
      1n,
      2n,
    ])
  })

  test("can be sent by the owner only", async () => {
    const collection = await startedCollection()
    const transfer = { serial: 1n, from: alice.address, to: bob.address, nonce: 1n }
    const args = [1n, bob.address, never, await signTransfer(collection, transfer)]
    for (const sender of [bob, operator, authorizer]) {
      expect(await collection.refusal(sender.address, "transferWithAuthorization", ...args)).toEqual([
        "NotOwner",
        sender.address,
        1n,
        alice.address,
      ])
    }
  })

  test("is rejected for tokens in custody and for serials that were not issued", async () => {
    const collection = await startedCollection()
    const transfer = (serial: bigint) =>
      collection.refusal(alice.address, "transferWithAuthorization", serial, bob.address, never, "0x")
    expect(await transfer(2n)).toEqual(["NotOwner", alice.address, 2n, collection.address])
    expect(await transfer(4n)).toEqual(["NotIssued", 4n])
  })

  test("is rejected to the zero address and to the collection itself", async () => {
    const collection = await startedCollection()
    for (const to of [zeroAddress, collection.address]) {
      const signature = await signTransfer(collection, { serial: 1n, from: alice.address, to, nonce: 1n })
      expect(
        await collection.refusal(alice.address, "transferWithAuthorization", 1n, to, never, signature),
      ).toEqual(["InvalidRecipient", to])
    }
  })

  test("is rejected after its deadline", async () => {
    const collection = await startedCollection()
    const { timestamp } = await chain.client.getBlock()
    const deadline = timestamp - 1n
    const transfer = { serial: 1n, from: alice.address, to: bob.address, nonce: 1n, deadline }
    const args = [1n, bob.address, deadline, await signTransfer(collection, transfer)]
    const refusal = await collection.refusal(alice.address, "transferWithAuthorization", ...args)
    expect(refusal?.slice(0, 2)).toEqual(["AuthorizationExpired", deadline])
  })
})

describe("an authorization", () => {
  const claim = { serial: 2n, recipient: bob.address, nonce: 0n, deadline: never }

  function claimWith(collection: Contract, signature: Hex) {
    return collection.refusal(bob.address, "claimWithAuthorization", 2n, bob.address, never, signature)
  }

  for (const [difference, message] of [
    ["serial", { ...claim, serial: 3n }],
    ["recipient", { ...claim, recipient: alice.address }],
    ["nonce", { ...claim, nonce: 1n }],
    ["deadline", { ...claim, deadline: never - 1n }],
  ] as const) {
    test(`is rejected if it was signed for another ${difference}`, async () => {
      const collection = await startedCollection()
      const signature = await authorizer.signTypedData(authorization(collection.address, "Claim", message))
      expect(await claimWith(collection, signature)).toEqual(["InvalidAuthorization", 2n, 0n])
    })
  }

  test("is rejected if it was signed for another collection or another chain", async () => {
    const collection = await startedCollection()
    const other = await startedCollection()
    const elsewhere = authorization(other.address, "Claim", claim)
    const otherChain = authorization(collection.address, "Claim", claim, 1)
    for (const typedData of [elsewhere, otherChain]) {
      const signature = await authorizer.signTypedData(typedData)
      expect(await claimWith(collection, signature)).toEqual(["InvalidAuthorization", 2n, 0n])
    }
  })

  test("of one kind is rejected for the other", async () => {
    const collection = await startedCollection()
    const transfer = { serial: 2n, from: bob.address, to: bob.address, nonce: 0n, deadline: never }
    const signature = await authorizer.signTypedData(authorization(collection.address, "Transfer", transfer))
    expect(await claimWith(collection, signature)).toEqual(["InvalidAuthorization", 2n, 0n])
  })

  test("is rejected if somebody else signed it, even an operator", async () => {
    const collection = await startedCollection()
    for (const signer of [operator, admin, bob]) {
      const signature = await signer.signTypedData(authorization(collection.address, "Claim", claim))
      expect(await claimWith(collection, signature)).toEqual(["InvalidAuthorization", 2n, 0n])
    }
  })

  test("is accepted in its canonical form only", async () => {
    const collection = await startedCollection()
    const signature = await signClaim(collection, 2n, bob.address)
    const { r, s, yParity } = parseSignature(signature)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const mirrored = serializeSignature({
      r,
      s: numberToHex(order - hexToBigInt(s), { size: 32 }),
      yParity: 1 - yParity,
    })
    const shapes: Hex[] = [mirrored, "0x", `${signature}00`, signature.slice(0, -2) as Hex]
    for (const v of ["00", "01", "1d"]) shapes.push(`0x${signature.slice(2, -2)}${v}`)
    for (const shape of shapes)
      expect(await claimWith(collection, shape)).toEqual(["InvalidAuthorization", 2n, 0n])
    expect(await claimWith(collection, signature)).toBeNull()
  })

  test("becomes invalid with its authorizer, and none is valid while there is no authorizer", async () => {
    const own = await deployService(chain)
    const collection = await startedCollection(own)
    const signature = await signClaim(collection, 2n, bob.address)
    expect(await claimWith(collection, signature)).toBeNull()
    expect(await own.factory.run(admin.address, "setAuthorizer", zeroAddress, 0n)).toEqual([
      ["AuthorizerSet", zeroAddress, authorizer.address, 0n],
    ])
    expect(await claimWith(collection, signature)).toEqual(["InvalidAuthorization", 2n, 0n])
    const unrecoverable = `0x${"00".repeat(64)}1b` as Hex
    expect(await claimWith(collection, unrecoverable)).toEqual(["InvalidAuthorization", 2n, 0n])
    await own.factory.run(admin.address, "setAuthorizer", stranger.address, 0n)
    const renewed = await stranger.signTypedData(authorization(collection.address, "Claim", claim))
    expect(await claimWith(collection, renewed)).toBeNull()
  })

  test("for this chain is rejected on a fork of it", async () => {
    const collection = await startedCollection()
    const signature = await signClaim(collection, 2n, bob.address)
    await rpc(chain, "anvil_setChainId", [31338])
    const onFork = await claimWith(collection, signature)
    await rpc(chain, "anvil_setChainId", [31337])
    expect(onFork).toEqual(["InvalidAuthorization", 2n, 0n])
  })

  test("has the domain that the collection publishes (ERC-5267)", async () => {
    const collection = await startedCollection()
    expect(await collection.read("eip712Domain")).toEqual([
      "0x0f",
      "service-api",
      "1",
      31337n,
      collection.address,
      `0x${"00".repeat(32)}`,
      [],
    ])
  })
})

describe("a chip replacement", () => {
  test("binds the new chip and emits an event", async () => {
    const collection = await startedCollection()
    expect(await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)).toEqual([
      ["ChipReplaced", 2n, chips[1], 77],
      ["MetadataUpdate", 2n],
    ])
    expect(await collection.read("chipOf", 2n)).toBe(77)
    expect(await collection.read("chipOf", 1n)).toBe(chips[0])
    expect(await collection.read("chipOf", 3n)).toBe(chips[2])
  })

  test("can be repeated with other chips, even back to the first one", async () => {
    const collection = await startedCollection()
    await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)
    await collection.run(operator.address, "replaceChip", 2n, 77, chips[1])
    expect(await collection.read("chipOf", 2n)).toBe(chips[1])
  })

  test("has no effect when repeated, even after the claim", async () => {
    const collection = await startedCollection()
    await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)
    expect(await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)).toEqual([])
    await collection.run(operator.address, "claim", 2n, bob.address)
    expect(await collection.run(operator.address, "replaceChip", 2n, chips[1], 77)).toEqual([])
    expect(await collection.read("chipOf", 2n)).toBe(77)
  })

  test("is rejected if another chip is bound than expected", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(operator.address, "replaceChip", 2n, 76, 77)).toEqual([
      "ChipMismatch",
      2n,
      chips[1],
      76,
    ])
  })

  test("is rejected once the token is claimed", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(operator.address, "replaceChip", 1n, chips[0], 77)).toEqual([
      "ChipLocked",
      1n,
    ])
  })

  test("is rejected for chip zero and for serials that were not issued", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(operator.address, "replaceChip", 2n, chips[1], 0)).toEqual([
      "InvalidChip",
      2n,
    ])
    expect(await collection.refusal(operator.address, "replaceChip", 4n, 1, 77)).toEqual(["NotIssued", 4n])
  })

  test("is for operators only", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(alice.address, "replaceChip", 2n, chips[1], 77)).toEqual([
      "NotAllowed",
      alice.address,
      4n,
    ])
  })
})

describe("a locked token", () => {
  test("cannot be approved or moved by plain ERC-721 calls", async () => {
    const collection = await startedCollection()
    const overloads = [[], ["0x1234"]]
    expect(await collection.read("locked", 1n)).toBe(true)
    expect(await collection.refusal(alice.address, "approve", bob.address, 1n)).toEqual(["TransfersLocked"])
    expect(await collection.refusal(alice.address, "setApprovalForAll", bob.address, true)).toEqual([
      "TransfersLocked",
    ])
    expect(await collection.refusal(alice.address, "transferFrom", alice.address, bob.address, 1n)).toEqual([
      "TransfersLocked",
    ])
    for (const data of overloads) {
      expect(
        await collection.refusal(alice.address, "safeTransferFrom", alice.address, bob.address, 1n, ...data),
      ).toEqual(["TransfersLocked"])
    }
    expect(await collection.read("getApproved", 1n)).toBe(zeroAddress)
    expect(await collection.read("isApprovedForAll", alice.address, bob.address)).toBe(false)
  })
})

describe("after the release", () => {
  test("tokens are unlocked, even in custody", async () => {
    const collection = await releasedCollection()
    expect(await collection.read("locked", 1n)).toBe(false)
    expect(await collection.read("locked", 2n)).toBe(false)
    expect(await collection.read("released")).toBe(true)
  })

  test("an owner transfers the token alone", async () => {
    const collection = await releasedCollection()
    expect(await collection.run(alice.address, "transferFrom", alice.address, bob.address, 1n)).toEqual([
      ["Transfer", alice.address, bob.address, 1n],
    ])
    expect(await collection.read("ownerOf", 1n)).toBe(bob.address)
    expect(await collection.read("balanceOf", alice.address)).toBe(0n)
    expect(await collection.read("balanceOf", bob.address)).toBe(1n)
    expect(await collection.read("authorizationNonce", 1n)).toBe(2n)
  })

  test("an approved account transfers the token once", async () => {
    const collection = await releasedCollection()
    expect(await collection.run(alice.address, "approve", bob.address, 1n)).toEqual([
      ["Approval", alice.address, bob.address, 1n],
    ])
    expect(await collection.read("getApproved", 1n)).toBe(bob.address)
    await collection.run(bob.address, "transferFrom", alice.address, stranger.address, 1n)
    expect(await collection.read("getApproved", 1n)).toBe(zeroAddress)
    expect(await collection.refusal(bob.address, "transferFrom", stranger.address, bob.address, 1n)).toEqual([
      "NotApproved",
      bob.address,
      1n,
    ])
  })

  test("an approval can be revoked", async () => {
    const collection = await releasedCollection()
    await collection.run(alice.address, "approve", bob.address, 1n)
    await collection.run(alice.address, "approve", zeroAddress, 1n)
    expect(await collection.refusal(bob.address, "transferFrom", alice.address, bob.address, 1n)).toEqual([
      "NotApproved",
      bob.address,
      1n,
    ])
  })

  test("an account approved for all tokens transfers and approves them until revoked", async () => {
    const collection = await releasedCollection()
    expect(await collection.run(alice.address, "setApprovalForAll", bob.address, true)).toEqual([
      ["ApprovalForAll", alice.address, bob.address, true],
    ])
    expect(await collection.read("isApprovedForAll", alice.address, bob.address)).toBe(true)
    expect(await collection.refusal(bob.address, "transferFrom", alice.address, bob.address, 1n)).toBeNull()
    expect(await collection.refusal(bob.address, "approve", stranger.address, 1n)).toBeNull()
    await collection.run(alice.address, "setApprovalForAll", bob.address, false)
    expect(await collection.refusal(bob.address, "transferFrom", alice.address, bob.address, 1n)).toEqual([
      "NotApproved",
      bob.address,
      1n,
    ])
  })

  test("nobody transfers a token that is not theirs, or from or to an impossible address", async () => {
    const collection = await releasedCollection()
    const transfer = (sender: Address, from: Address, to: Address, serial: bigint) =>
      collection.refusal(sender, "transferFrom", from, to, serial)
    expect(await transfer(bob.address, alice.address, bob.address, 1n)).toEqual([
      "NotApproved",
      bob.address,
      1n,
    ])
    expect(await transfer(bob.address, bob.address, stranger.address, 1n)).toEqual([
      "NotOwner",
      bob.address,
      1n,
      alice.address,
    ])
    expect(await transfer(alice.address, alice.address, zeroAddress, 1n)).toEqual([
      "InvalidRecipient",
      zeroAddress,
    ])
    expect(await transfer(alice.address, alice.address, collection.address, 1n)).toEqual([
      "InvalidRecipient",
      collection.address,
    ])
    expect(await transfer(alice.address, alice.address, bob.address, 4n)).toEqual(["NotIssued", 4n])
    expect(await transfer(operator.address, collection.address, bob.address, 2n)).toEqual([
      "NotApproved",
      operator.address,
      2n,
    ])
    expect(await collection.refusal(bob.address, "approve", bob.address, 1n)).toEqual([
      "NotApproved",
      bob.address,
      1n,
    ])
    expect(await collection.refusal(operator.address, "approve", bob.address, 2n)).toEqual([
      "NotApproved",
      operator.address,
      2n,
    ])
    expect(await collection.refusal(alice.address, "approve", bob.address, 4n)).toEqual(["NotIssued", 4n])
    expect(await collection.refusal(alice.address, "setApprovalForAll", zeroAddress, true)).toEqual([
      "ZeroAddress",
    ])
  })

  test("a safe transfer succeeds only to contracts that accept the token", async () => {
    const collection = await releasedCollection()
    const [accepting, silent, answering, refusing] = ["accepting", "silent", "answering", "refusing"].map(
      freshWallet,
    )
    await rpc(chain, "anvil_setCode", [accepting, "0x5f3560e01c60e01b5f5260205ff3"]) // returns the selector called
    await rpc(chain, "anvil_setCode", [silent, "0x00"])
    await rpc(chain, "anvil_setCode", [answering, "0x60205ff3"])
    await rpc(chain, "anvil_setCode", [refusing, "0x5f3560e01c60e01b5f5260205ffd"])
    for (const data of [[], ["0x1234"]]) {
      const safeTransfer = (to: Address | undefined) =>
        collection.refusal(alice.address, "safeTransferFrom", alice.address, to, 1n, ...data)
      expect(await safeTransfer(bob.address)).toBeNull()
      expect(await safeTransfer(accepting)).toBeNull()
      for (const to of [silent, answering, refusing])
        expect(await safeTransfer(to)).toEqual(["UnsafeRecipient", to])
    }
    expect(await collection.run(alice.address, "safeTransferFrom", alice.address, accepting, 1n)).toEqual([
      ["Transfer", alice.address, accepting, 1n],
    ])
  })

  test("an authorized transfer still works, and clears an approval", async () => {
    const collection = await releasedCollection()
    await collection.run(alice.address, "approve", stranger.address, 1n)
    const transfer = { serial: 1n, from: alice.address, to: bob.address, nonce: 1n }
    const args = [1n, bob.address, never, await signTransfer(collection, transfer)]
    await collection.run(alice.address, "transferWithAuthorization", ...args)
    expect(await collection.read("getApproved", 1n)).toBe(zeroAddress)
  })

  test("a plain transfer invalidates earlier authorizations", async () => {
    const collection = await releasedCollection()
    const transfer = { serial: 1n, from: alice.address, to: bob.address, nonce: 1n }
    const args = [1n, bob.address, never, await signTransfer(collection, transfer)]
    await collection.run(alice.address, "transferFrom", alice.address, stranger.address, 1n)
    await collection.run(stranger.address, "transferFrom", stranger.address, alice.address, 1n)
    expect(await collection.refusal(alice.address, "transferWithAuthorization", ...args)).toEqual([
      "InvalidAuthorization",
      1n,
      3n,
    ])
  })

  test("units in custody can still be issued, replaced and claimed", async () => {
    const collection = await releasedCollection()
    await collection.run(operator.address, "issue", 4n, packed([44]), false)
    await collection.run(operator.address, "replaceChip", 4n, 44, 45)
    await collection.run(operator.address, "claim", 2n, bob.address)
    const signature = await signClaim(collection, 3n, bob.address)
    await collection.run(bob.address, "claimWithAuthorization", 3n, bob.address, never, signature)
    expect(await collection.read("balanceOf", bob.address)).toBe(2n)
  })
})

describe("a collection", () => {
  for (const [standard, id, supported] of [
    ["ERC-165", "0x01ffc9a7", true],
    ["ERC-721", "0x80ac58cd", true],
    ["ERC-721 metadata", "0x5b5e139f", true],
    ["ERC-5192", "0xb45a3c0e", true],
    ["ERC-4906", "0x49064906", true],
    ["ERC-721 enumerable", "0x780e9d63", false],
    ["the invalid id", "0xffffffff", false],
  ] as const) {
    test(`${supported ? "supports" : "does not support"} ${standard}`, async () => {
      const collection = contractAt(chain, service.implementation, collectionAbi)
      expect(await collection.read("supportsInterface", id)).toBe(supported)
    })
  }

  test("returns a token's views only once it is issued", async () => {
    const collection = await startedCollection()
    for (const functionName of [
      "ownerOf",
      "chipOf",
      "locked",
      "tokenURI",
      "getApproved",
      "authorizationNonce",
    ]) {
      for (const serial of [0n, 4n]) {
        expect(await collection.refusal(stranger.address, functionName, serial)).toEqual([
          "NotIssued",
          serial,
        ])
      }
    }
    expect(await collection.read("tokenURI", 1n)).toBe("")
  })

  test("has no balance for the zero address", async () => {
    const collection = await startedCollection()
    expect(await collection.refusal(stranger.address, "balanceOf", zeroAddress)).toEqual(["ZeroAddress"])
  })

  test("accepts no ether", async () => {
    const collection = await startedCollection()
    const payment = { from: alice.address, to: collection.address, value: "0x1" }
    await expect(rpc(chain, "eth_call", [payment, "latest"])).rejects.toThrow()
  })
})

test("the salt of a collection is the hash of its ID's bytes, in either case of the ID", () => {
  const id = "0198f3a2-7c11-7d5e-9f00-0123456789ab"
  expect(collectionSalt(id)).toBe(keccak256("0x0198f3a27c117d5e9f000123456789ab"))
  expect(collectionSalt(id.toUpperCase())).toBe(collectionSalt(id))
})
