import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { type Address, encodeFunctionData, type Hex, keccak256, numberToHex } from "viem"
import {
  collectionAbi,
  deskAbi,
  deskBytecode,
  factoryAbi,
} from "../../src/engine/chain/contracts.generated.ts"
import { encodeRun } from "../../src/engine/chain/desk.ts"
import {
  account,
  admin,
  authorization,
  authorizer,
  type Chain,
  deploy,
  deployCollection,
  deployService,
  freshWallet,
  operator,
  packed,
  send,
  startChain,
} from "../harness/contracts.ts"

// Whole transactions; `bun run bench gas` shows them next to others, and what each consists of.

setDefaultTimeout(30_000)
const holder = account(3)

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

async function gasOf(from: Address, to: Address, data: Hex): Promise<number> {
  const receipt = await send(chain, from, { to, data })
  expect(receipt.succeeded).toBe(true)
  return receipt.gasUsed
}

/** Five random bytes, like a real chip ID. */
function chipOf(serial: number): number {
  return Number.parseInt(keccak256(numberToHex(serial, { size: 8 })).slice(2, 12), 16)
}

test("the contracts stay within their gas budget", async () => {
  const service = await deployService(chain)
  const { address: to, ...collection } = await deployCollection(service, "gas")
  const call = (from: Address, functionName: string, ...args: readonly unknown[]) =>
    gasOf(from, to, encodeFunctionData({ abi: collectionAbi as never, functionName, args } as never))
  const issue = (first: number, count: number, asCode: boolean) => {
    const chips = Array.from({ length: count }, (_each, index) => chipOf(first + index))
    return call(operator.address, "issue", BigInt(first), packed(chips), asCode)
  }

  const naming = [keccak256("0x77"), "Autumn Jackets 2026", "AJ26"] as const
  const deployment = encodeFunctionData({ abi: factoryAbi, functionName: "deploy", args: naming })
  expect(await gasOf(operator.address, service.factory.address, deployment)).toBeLessThanOrEqual(102_000)

  const issued = (await issue(1, 100, true)) / 100
  expect(issued).toBeLessThanOrEqual(4_100)
  let single = 0
  for (let serial = 101; serial <= 106; serial++) single += (await issue(serial, 1, false)) / 6
  expect(single).toBeLessThanOrEqual(49_500)

  const claimed = await call(operator.address, "claim", 50n, freshWallet("gas 50"))
  expect(issued + claimed).toBeLessThanOrEqual(84_500)
  const serials = Array.from({ length: 20 }, (_each, index) => BigInt(index + 61))
  const recipients = serials.map((serial) => freshWallet(`gas ${serial}`))
  expect((await call(operator.address, "claimBatch", serials, recipients)) / 20).toBeLessThanOrEqual(49_500)

  await call(operator.address, "claim", 90n, holder.address)
  const deadline = 2n ** 40n
  const recipient = freshWallet("gas 90")
  const message = { serial: 90n, from: holder.address, to: recipient, nonce: 1n, deadline }
  const signature = await authorizer.signTypedData(authorization(to, "Transfer", message))
  const transfer = ["transferWithAuthorization", 90n, recipient, deadline, signature] as const
  expect(await call(holder.address, ...transfer)).toBeLessThanOrEqual(66_000)
  expect(await call(operator.address, "replaceChip", 95n, chipOf(95), chipOf(1_095))).toBeLessThanOrEqual(
    65_000,
  )
  expect(await collection.read("issued")).toBe(106n)
})

test("twenty claims across twenty collections stay within theirs", async () => {
  const service = await deployService(chain)
  const args = [service.factory.address]
  const { address } = await deploy(chain, admin.address, { abi: deskAbi, bytecode: deskBytecode, args })
  await service.factory.run(admin.address, "setRoles", address, 7n)
  const calls: { to: Address; data: Hex }[] = []
  for (let number = 1; number <= 20; number++) {
    const { address: to, run } = await deployCollection(service, `gas ${number}`)
    await run(operator.address, "issue", 1n, packed([chipOf(1), chipOf(2)]), false)
    const claim = [1n, freshWallet(`over ${number}`)] as const
    calls.push({ to, data: encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: claim }) })
  }
  expect((await gasOf(operator.address, address, encodeRun(calls))) / 20).toBeLessThanOrEqual(61_500)
})
