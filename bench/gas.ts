import { join } from "node:path"
import { type Abi, type Address, encodeFunctionData, keccak256, numberToHex } from "viem"
import { compileFolder } from "../contracts/compile.ts"
import { collectionAddress } from "../src/chain/collection-address.ts"
import { collectionAbi, factoryAbi } from "../src/chain/contracts.generated.ts"
import {
  account,
  authorization,
  authorizer,
  type Chain,
  deploy,
  deployService,
  freshWallet,
  operator,
  type Receipt,
  send,
  startChain,
} from "../test/contracts-harness.ts"

export type GasReport = {
  /** Gas of whole transactions, as their receipts say, per operation and contract. */
  readonly [operation: string]: { readonly [contract: string]: number }
}

type Subject = {
  readonly address: Address
  readonly abi: Abi
  readonly deployGas: number
  readonly issueArgs: (first: number, chips: readonly number[]) => readonly unknown[]
  /** The nonce of a token that was claimed and not transferred yet. */
  readonly nonce: bigint
}

const holder = account(3)
const [name, symbol] = ["Autumn Jackets 2026", "AJ26"]
const libraries = ["OpenZeppelin", "Solady", "Erc721a"]

/**
 * Does one job with our contracts and with the same job written on three libraries, on a chain of its own:
 * 100 units issued to a new collection, then single ones, claims from the middle of the batch, an authorized
 * transfer of a holder's only token, a chip replacement. All compiled alike; the libraries' collections are called
 * directly, ours through its clone.
 */
export async function measureGas(): Promise<GasReport> {
  const chain = await startChain()
  try {
    const measured = new Map([["ours", await measure(chain, await deployOurs(chain))]])
    const artifacts = compileFolder(join(import.meta.dir, "gas"))
    for (const library of libraries) {
      const artifact = artifacts[`${library}Collection`]
      if (!artifact) throw new Error(`bench/gas lacks ${library}Collection`)
      const args = [name, symbol, operator.address, authorizer.address]
      const { address, receipt } = await deploy(chain, operator.address, { ...artifact, args })
      const subject = { address, abi: artifact.abi, deployGas: receipt.gasUsed, nonce: 0n }
      measured.set(library, await measure(chain, { ...subject, issueArgs: (_, chips) => [chips] }))
    }
    const operations = Object.keys(measured.get("ours") ?? {})
    return Object.fromEntries(
      operations.map((operation) => [
        operation,
        Object.fromEntries([...measured].map(([contract, gas]) => [contract, gas[operation] ?? Number.NaN])),
      ]),
    )
  } finally {
    await chain.stop()
  }
}

async function deployOurs(chain: Chain): Promise<Subject> {
  const { factory, implementation } = await deployService(chain)
  const salt = keccak256("0x01")
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "deploy", args: [salt, name, symbol] })
  const receipt = await send(chain, operator.address, { to: factory.address, data })
  return {
    address: collectionAddress({ factory: factory.address, implementation, salt, name, symbol }),
    abi: collectionAbi,
    deployGas: receipt.gasUsed,
    issueArgs: (first, chips) => [first, chips],
    nonce: 1n,
  }
}

async function measure(chain: Chain, subject: Subject): Promise<Record<string, number>> {
  const call = async (from: Address, functionName: string, args: readonly unknown[]): Promise<Receipt> => {
    const data = encodeFunctionData({ abi: subject.abi, functionName, args })
    const receipt = await send(chain, from, { to: subject.address, data })
    if (!receipt.succeeded) throw new Error(`${functionName} was reverted`)
    return receipt
  }
  const issue = (first: number, count: number) =>
    call(operator.address, "issue", subject.issueArgs(first, numbers(first, count).map(chipOf)))

  const issued = (await issue(1, 100)).gasUsed / 100
  let single = 0
  for (const serial of numbers(101, 6)) single += (await issue(serial, 1)).gasUsed / 6
  const claimed = (await call(operator.address, "claim", [50, wallet(50)])).gasUsed
  const batch = numbers(61, 20)
  const claimedBatch = (await call(operator.address, "claimBatch", [batch, batch.map(wallet)])).gasUsed / 20

  await call(operator.address, "claim", [90, holder.address])
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 1800)
  const signature = await authorizer.signTypedData(
    authorization(subject.address, "Transfer", {
      serial: 90n,
      from: holder.address,
      to: wallet(90),
      nonce: subject.nonce,
      deadline,
    }),
  )
  const transfer = await call(holder.address, "transferWithAuthorization", [
    90,
    wallet(90),
    deadline,
    signature,
  ])
  const replaced = await call(operator.address, "replaceChip", [95, chipOf(95), chipOf(1095)])

  return {
    "deploy a collection": subject.deployGas,
    "issue 1": Math.round(single),
    "issue, per unit in 100": Math.round(issued),
    "claim to a fresh wallet": claimed,
    "claim, per unit in 20": Math.round(claimedBatch),
    "issue in 100 + claim": Math.round(issued + claimed),
    "authorized transfer": transfer.gasUsed,
    "replace a chip": replaced.gasUsed,
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

if (import.meta.main) {
  const report = await measureGas()
  process.stdout.write(process.argv.includes("--json") ? `${JSON.stringify(report)}\n` : table(report))
}

function table(report: GasReport): string {
  const contracts = ["ours", ...libraries]
  const rows = Object.entries(report).map(([operation, gas]) => [
    operation.padEnd(24),
    ...contracts.map((contract) => (gas[contract] ?? 0).toLocaleString("en").padStart(13)),
  ])
  const head = ["gas, whole transaction".padEnd(24), ...contracts.map((contract) => contract.padStart(13))]
  return `${[head, ...rows].map((row) => row.join("")).join("\n")}\n`
}
