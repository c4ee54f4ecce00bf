import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import {
  type Address,
  concatHex,
  createWalletClient,
  custom,
  encodeFunctionData,
  type Hex,
  pad,
  toHex,
  zeroAddress,
} from "viem"
import { anvil } from "viem/chains"
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
  freshWallet,
  operator,
  packed,
  placeCode,
  release,
  rpc,
  startChain,
} from "../harness/contracts.ts"

const [bob, sponsor] = [account(4), account(5)]
/** Accounts without money, of which only the key is needed. */
const [alice, carol] = [account(20), account(21)]
const never = 2n ** 64n

/** Calls the address in the first word with the bytes after it; reverts if that does. */
const forwarder = "0x6020360360205f375f5f602036035f5f5f355af1601a575f5ffd5b00"
/** An ERC-721 receiver that calls the token's contract with the data that came with the token, and then accepts it. */
const restless = "0x60843560a45f375f5f6084355f5f335af15063150b7a0260e01b5f5260205ff3"

let chain: Chain
let collection: Contract

beforeAll(async () => {
  chain = await startChain()
  collection = await newCollection()
})

afterAll(() => chain.stop())

/** A collection of a service of its own, with serials 1 to 5. */
async function newCollection({ isReleased = false } = {}): Promise<Contract> {
  const service = await deployService(chain)
  const made = await deployCollection(service, "wallets")
  await made.run(operator.address, "issue", 1n, packed([1, 2, 3, 4, 5]), false)
  if (isReleased) await release(service)
  return made
}

function place(name: string, code: Hex): Promise<Address> {
  return placeCode(chain, freshWallet(name), code)
}

function call(functionName: "claimWithAuthorization" | "transferWithAuthorization", args: unknown[]): Hex {
  return encodeFunctionData({ abi: collectionAbi, functionName, args } as never)
}

function signed(
  primaryType: "Claim" | "Transfer",
  message: Record<string, unknown>,
  by = authorizer,
): Promise<Hex> {
  return by.signTypedData(authorization(collection.address, primaryType, { deadline: never, ...message }))
}

/** Has an account run the code at an address as its own (EIP-7702), in a transaction that the sponsor pays for. */
async function delegate(wallet: typeof alice, to: Address): Promise<void> {
  const payer = createWalletClient({ account: sponsor, chain: anvil, transport: custom(chain.client) })
  const own = await payer.signAuthorization({ account: wallet, contractAddress: to })
  const hash = await payer.sendTransaction({ to: sponsor.address, authorizationList: [own] })
  await chain.client.waitForTransactionReceipt({ hash })
  const code = await chain.client.getCode({ address: wallet.address })
  expect(`${code}`).toBe(concatHex(["0xef0100", to]).toLowerCase())
}

/** Has the sponsor send a call that the smart account makes in its own name. */
async function sponsored(wallet: Address, data: Hex): Promise<void> {
  const sent = { from: sponsor.address, to: wallet, data: concatHex([pad(collection.address), data]) }
  const receipt = await rpc<{ status: Hex }>(chain, "eth_sendTransactionSync", [
    { ...sent, gas: toHex(500_000) },
  ])
  expect(receipt.status).toBe("0x1")
}

describe("a wallet that is a contract", () => {
  test("claims and transfers by its own calls, whoever sends and pays for the transaction", async () => {
    await delegate(alice, await place("forwarder", forwarder))
    const multisig = await place("multisig", forwarder)
    const nonce = 0n
    for (const [serial, wallet] of [
      [1n, alice.address],
      [2n, multisig],
    ] as const) {
      const claim = await signed("Claim", { serial, recipient: wallet, nonce })
      const arguments_ = [serial, wallet, never, claim] as const
      expect(await collection.refusal(sponsor.address, "claimWithAuthorization", ...arguments_)).toEqual([
        "NotRecipient",
        sponsor.address,
        wallet,
      ])
      await sponsored(wallet, call("claimWithAuthorization", [...arguments_]))
      expect(await collection.read("ownerOf", serial)).toBe(wallet)
      const transfer = await signed("Transfer", { serial, from: wallet, to: bob.address, nonce: 1n })
      await sponsored(wallet, call("transferWithAuthorization", [serial, bob.address, never, transfer]))
      expect(await collection.read("ownerOf", serial)).toBe(bob.address)
    }
  })

  test("is not asked whether it accepts a claimed or handed on token, and a precompile gets one, too", async () => {
    const refusing = await place("refusing", "0x5f5ffd")
    const precompile = "0x0000000000000000000000000000000000000001"
    expect(await collection.run(operator.address, "claim", 3n, refusing)).toEqual([
      ["Transfer", collection.address, refusing, 3n],
    ])
    const transfer = await signed("Transfer", { serial: 1n, from: bob.address, to: precompile, nonce: 2n })
    await collection.run(bob.address, "transferWithAuthorization", 1n, precompile, never, transfer)
    expect(await collection.read("ownerOf", 1n)).toBe(precompile)
  })

  test("may hand a token on while it is asked whether it accepts it", async () => {
    const released = await newCollection({ isReleased: true })
    await released.run(operator.address, "claimBatch", [1n, 2n], [bob.address, bob.address])
    const receiver = await place("restless", restless)
    const onward = (from: Address) =>
      encodeFunctionData({
        abi: collectionAbi,
        functionName: "transferFrom",
        args: [from, carol.address, 1n],
      })
    const safely = (data: Hex) =>
      released.run(bob.address, "safeTransferFrom", bob.address, receiver, 1n, data)
    expect(await safely(onward(receiver))).toEqual([
      ["Transfer", bob.address, receiver, 1n],
      ["Transfer", receiver, carol.address, 1n],
    ])
    const balances = [bob.address, receiver, carol.address, released.address]
    expect(await Promise.all(balances.map((each) => released.read("balanceOf", each)))).toEqual([
      1n,
      0n,
      1n,
      3n,
    ])
    expect(await released.read("authorizationNonce", 1n)).toBe(3n)
  })

  test("keeps no approval for a token that it hands back while it is asked", async () => {
    const released = await newCollection({ isReleased: true })
    const receiver = await place("restless", restless)
    await released.run(operator.address, "claim", 1n, bob.address)
    await released.run(bob.address, "approve", receiver, 1n)
    const back = encodeFunctionData({
      abi: collectionAbi,
      functionName: "transferFrom",
      args: [receiver, bob.address, 1n],
    })
    await released.run(bob.address, "safeTransferFrom", bob.address, receiver, 1n, back)
    expect(await released.read("ownerOf", 1n)).toBe(bob.address)
    expect(await released.read("getApproved", 1n)).toBe(zeroAddress)
    expect((await released.refusal(receiver, "transferFrom", bob.address, receiver, 1n))?.[0]).toBe(
      "NotApproved",
    )
  })
})

describe("an authorizer's key", () => {
  test("signs as before once its account runs code (EIP-7702), whatever that code says", async () => {
    await delegate(authorizer, await place("refusing", "0x5f5ffd"))
    const claim = await signed("Claim", { serial: 4n, recipient: bob.address, nonce: 0n })
    await collection.run(bob.address, "claimWithAuthorization", 4n, bob.address, never, claim)
    expect(await collection.read("ownerOf", 4n)).toBe(bob.address)
    const other = await signed("Claim", { serial: 5n, recipient: bob.address, nonce: 0n }, admin)
    const refusal = await collection.refusal(
      bob.address,
      ...(["claimWithAuthorization", 5n, bob.address, never, other] as const),
    )
    expect(refusal).toEqual(["InvalidAuthorization", 5n, 0n])
  })
})
