import { join } from "node:path"
import { type Abi, type Address, encodeFunctionData, type Hex, keccak256, numberToHex } from "viem"
import { compileFolder } from "../contracts/compile.ts"
import { collectionAddress } from "../src/engine/chain/collection-address.ts"
import { collectionAbi, deskAbi, deskBytecode, factoryAbi } from "../src/engine/chain/contracts.generated.ts"
import { encodeRun } from "../src/engine/chain/desk.ts"
import { deskRoles } from "../src/engine/chain/roles.ts"
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
  type Receipt,
  type Service,
  send,
  startChain,
} from "../test/harness/contracts.ts"
import { type GasParts, gasPartsOf, partsInWords } from "./gas-parts.ts"
import { report } from "./report.ts"

/** Gas of whole transactions, as their receipts say, per operation and contract. */
type GasTable = { readonly [operation: string]: { readonly [contract: string]: number } }

type GasReport = {
  gas: GasTable
  /** What the transactions of ours are made of. */
  made_of: { readonly [operation: string]: GasParts }
}

type Subject = {
  readonly address: Address
  readonly abi: Abi
  readonly deployGas: number
  readonly issueArgs: (first: number, chips: readonly number[]) => readonly unknown[]
  /** The nonce of a token that was claimed and not transferred yet. */
  readonly nonce: bigint
  /** Twenty claims over twenty collections in one transaction, for each; null: a transaction for each. */
  readonly claimOver20: (() => Promise<number>) | null
}

/** Keeps what a transaction of ours is made of. */
type TakeApart = (operation: string, sent: { hash: Hex; data: Hex }, receipt: Receipt) => Promise<void>

const holder = account(3)
const [name, symbol] = ["Autumn Jackets 2026", "AJ26"]
const libraries = ["OpenZeppelin", "Solady", "Erc721a"]

/**
 * Does the same work with our contracts and with those written on three libraries, on a chain of its own. All are
 * compiled alike; the libraries' collections are called directly, ours through its clone.
 */
async function measureGas(): Promise<GasReport> {
  const chain = await startChain(["--steps-tracing"])
  try {
    const made_of: Record<string, GasParts> = {}
    const take: TakeApart = async (operation, sent, receipt) => {
      made_of[operation] = await gasPartsOf(chain, sent, receipt)
    }
    const measured = new Map([["ours", await measure(chain, await deployOurs(chain, take), take)]])
    const artifacts = compileFolder(join(import.meta.dir, "gas"))
    for (const library of libraries) {
      const artifact = artifacts[`${library}Collection`]
      if (!artifact) throw new Error(`bench/gas lacks ${library}Collection`)
      const args = [name, symbol, operator.address, authorizer.address]
      const { address, receipt } = await deploy(chain, operator.address, { ...artifact, args })
      const subject = { address, abi: artifact.abi, deployGas: receipt.gasUsed, nonce: 0n, claimOver20: null }
      measured.set(library, await measure(chain, { ...subject, issueArgs: (_, chips) => [chips] }, null))
    }
    const operations = Object.keys(measured.get("ours") ?? {})
    const gas = Object.fromEntries(
      operations.map((operation) => [
        operation,
        Object.fromEntries([...measured].map(([contract, gas]) => [contract, gas[operation] ?? Number.NaN])),
      ]),
    )
    return { gas, made_of }
  } finally {
    await chain.stop()
  }
}

async function deployOurs(chain: Chain, take: TakeApart): Promise<Subject> {
  const service = await deployService(chain)
  const { factory } = service
  const salt = keccak256("0x01")
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "deploy", args: [salt, name, symbol] })
  const receipt = await send(chain, operator.address, { to: factory.address, data })
  await take("deploy a collection", { hash: receipt.hash, data }, receipt)
  return {
    address: collectionAddress(2, { factory: factory.address, salt, name, symbol }),
    abi: collectionAbi,
    deployGas: receipt.gasUsed,
    issueArgs: (first, chips) => [first, packed(chips), chips.length >= 11],
    nonce: 1n,
    claimOver20: () => claimAtDesk(chain, service, take),
  }
}

async function claimAtDesk(chain: Chain, service: Service, take: TakeApart): Promise<number> {
  const args = [service.factory.address]
  const { address } = await deploy(chain, admin.address, { abi: deskAbi, bytecode: deskBytecode, args })
  await service.factory.run(admin.address, "setRoles", address, BigInt(deskRoles))
  const calls: { to: Address; data: Hex }[] = []
  for (const number of numbers(1, 20)) {
    const collection = await deployCollection(service, `over ${number}`)
    await collection.run(operator.address, "issue", 1n, packed(numbers(1, 12).map(chipOf)), true)
    const claim = [1n, wallet(1_000 + number)] as const
    const data = encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: claim })
    calls.push({ to: collection.address, data })
  }
  const data = encodeRun(calls)
  const receipt = await send(chain, operator.address, { to: address, data })
  await take(over20, { hash: receipt.hash, data }, receipt)
  return receipt.gasUsed / 20
}

const over20 = "claim, each in 20 over 20 collections"

async function measure(
  chain: Chain,
  subject: Subject,
  take: TakeApart | null,
): Promise<Record<string, number>> {
  const call = async (
    from: Address,
    functionName: string,
    args: readonly unknown[],
    operation: string | null = null,
  ): Promise<number> => {
    const data = encodeFunctionData({ abi: subject.abi, functionName, args })
    const receipt = await send(chain, from, { to: subject.address, data })
    if (!receipt.succeeded) throw new Error(`${functionName} was reverted`)
    if (operation) await take?.(operation, { hash: receipt.hash, data }, receipt)
    return receipt.gasUsed
  }
  const issue = (first: number, count: number, operation: string | null = null) => {
    const chips = numbers(first, count).map(chipOf)
    return call(operator.address, "issue", subject.issueArgs(first, chips), operation)
  }

  const issued = (await issue(1, 100, "issue, 100 units")) / 100
  let single = 0
  // The first of six opens a storage slot, the others share it: one of those is taken apart.
  for (const serial of numbers(101, 6))
    single += (await issue(serial, 1, serial === 105 ? "issue 1" : null)) / 6
  const claimed = await call(operator.address, "claim", [50, wallet(50)], "claim to a fresh wallet")
  const batch = numbers(61, 20)
  const ofBatch = [batch, batch.map(wallet)]
  const claimedBatch = (await call(operator.address, "claimBatch", ofBatch, "claim, 20 units")) / 20
  const claimedOver20 = (await subject.claimOver20?.()) ?? claimed

  await call(operator.address, "claim", [90, holder.address])
  const { timestamp } = await chain.client.getBlock()
  const deadline = timestamp + 1_800n
  const signature = await authorizer.signTypedData(
    authorization(subject.address, "Transfer", {
      serial: 90n,
      from: holder.address,
      to: wallet(90),
      nonce: subject.nonce,
      deadline,
    }),
  )
  const transfer = await call(
    holder.address,
    "transferWithAuthorization",
    [90, wallet(90), deadline, signature],
    "authorized transfer",
  )
  const replacement = [95, chipOf(95), chipOf(1095)]
  const replaced = await call(operator.address, "replaceChip", replacement, "replace a chip")

  return {
    "deploy a collection": subject.deployGas,
    "issue 1": Math.round(single),
    "issue, per unit in 100": Math.round(issued),
    "claim to a fresh wallet": claimed,
    "claim, per unit in 20": Math.round(claimedBatch),
    [over20]: Math.round(claimedOver20),
    "issue in 100 + claim": Math.round(issued + claimed),
    "authorized transfer": transfer,
    "replace a chip": replaced,
  }
}

function numbers(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

/** Five random bytes, as real chip ids are: zeros would make calldata cheaper than it is. */
function chipOf(serial: number): number {
  return Number.parseInt(keccak256(numberToHex(serial, { size: 8 })).slice(2, 12), 16)
}

function wallet(serial: number): Address {
  return freshWallet(`wallet ${serial}`)
}

function table({ gas, made_of }: GasReport): string {
  const contracts = ["ours", ...libraries]
  const width = over20.length + 2
  const rows = Object.entries(gas).map(([operation, of]) => [
    operation.padEnd(width),
    ...contracts.map((contract) => (of[contract] ?? 0).toLocaleString("en").padStart(13)),
  ])
  const head = ["gas, whole transaction".padEnd(width), ...contracts.map((name) => name.padStart(13))]
  const parts = Object.entries(made_of).map(
    ([operation, of]) => `${operation.padEnd(width)}${partsInWords(of)}`,
  )
  const lines = [...[head, ...rows].map((row) => row.join("")), "", "what ours are made of", ...parts]
  return `${lines.join("\n")}\n`
}

const measured = await measureGas()
report({ ...measured.gas, "made of": measured.made_of }, table(measured))
