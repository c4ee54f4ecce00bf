import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  type Address,
  createPublicClient,
  createTestClient,
  encodeDeployData,
  getContractAddress,
  http,
  parseEther,
  walletActions,
} from "viem"
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from "viem/accounts"
import { type DevChain, startDevChain } from "../../src/dev/chain.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { firstFactoryAbi, firstFactoryBytecode } from "../../src/engine/chain/first-contracts.generated.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { tiedToParent } from "../harness/child-process.ts"
import { type Call, type Said, startLesserNode, withoutPending } from "../harness/lesser-node.ts"

const authorizer = privateKeyToAddress(generatePrivateKey())
const operators = [generatePrivateKey(), generatePrivateKey()].map(privateKeyToAddress)

let folder: string
let chain: DevChain
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "deploy-"))
  chain = await startDevChain({ folder, port: 0, isAwaited: async () => true, metadata_base_url: "" })
}, 40_000)
afterAll(async () => {
  await chain.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("deploy-factory", () => {
  test("prints an entry for CHAINS, with the given admin, authorizer and operators", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const { exitCode, printed } = await deploy(deployer)
    expect(exitCode).toBe(0)
    const { factory_address } = chainIn(printed)
    const read = (functionName: "admin" | "authorizer") =>
      reader().readContract({ address: factory_address, abi: factoryAbi, functionName })
    expect(await read("admin")).toBe(deployer.address)
    expect(await read("authorizer")).toBe(authorizer)
    // Of two operators, the first claims and replaces chips, and the second issues and deploys.
    const [first, second] = operators
    expect(await rolesAt(factory_address, first as Address)).toBe(6n)
    expect(await rolesAt(factory_address, second as Address)).toBe(9n)
  }, 20_000)

  test("deploys once, however often it is run", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const first = await deploy(deployer)
    const balance = await reader().getBalance(deployer)
    const again = await deploy(deployer)
    expect(again).toMatchObject({ exitCode: 0, printed: first.printed })
    expect(await reader().getTransactionCount(deployer)).toBe(2)
    expect(await reader().getBalance(deployer)).toBe(balance)
  }, 20_000)

  test("deploys once if it is run twice at the same time", async () => {
    const deployer = await newDeployer({ ether: "10" })
    await Promise.all([deploy(deployer), deploy(deployer)])
    expect((await deploy(deployer)).exitCode).toBe(0)
    expect(await reader().getTransactionCount(deployer)).toBe(2)
  }, 20_000)

  test("works with a node that does not support the pending block", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const node = startLesserNode(chain.rpc_url, withoutPending)
    const { exitCode } = await deploy(deployer, { "rpc-url": node.url })
    await node.stop()
    expect([exitCode, await reader().getTransactionCount(deployer)]).toEqual([0, 2])
  }, 20_000)

  test("waits for nodes of a provider that lag behind the others", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const node = startLesserNode(chain.rpc_url, codeComesLater(3_000))
    const { exitCode, complaint } = await deploy(deployer, { "rpc-url": node.url })
    await node.stop()
    expect(complaint).not.toContain("another key")
    expect([exitCode, await reader().getTransactionCount(deployer)]).toEqual([0, 2])
  }, 30_000)

  test("waits for nodes of a provider that lack the factory when they are called", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const node = startLesserNode(chain.rpc_url, callsFindItLater())
    const { exitCode, complaint } = await deploy(deployer, { "rpc-url": node.url })
    await node.stop()
    expect(complaint).not.toContain("failed")
    expect([exitCode, await reader().getTransactionCount(deployer)]).toEqual([0, 2])
  }, 30_000)

  test("deploys to the same address on every chain, that of the key's first contract", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const { printed } = await deploy(deployer)
    const first = getContractAddress({ from: deployer.address, nonce: 0n })
    expect(chainIn(printed).factory_address).toBe(first)
  }, 20_000)
})

test("a factory with another metadata URL than the given one is left unchanged, and the difference is reported", async () => {
  const deployer = await newDeployer({ ether: "10" })
  await deploy(deployer, { "metadata-base-url": "https://api.test/metadata" })
  const again = await deploy(deployer, { "metadata-base-url": "https://tokens.test" })
  expect(again.exitCode).toBe(0)
  expect(again.complaint).toMatch(" is https://api.test/metadata, not https://tokens.test; its admin")
  expect(again.complaint).toMatch("operator chain call set-metadata-base --url https://tokens.test prints")
  const same = await deploy(deployer, { "metadata-base-url": "https://api.test/metadata/" })
  expect(same.complaint).not.toMatch("metadata")
}, 20_000)

test("a factory of the first generation, which has no metadata URL, is left unchanged", async () => {
  const deployer = await newDeployer({ ether: "10" })
  const args = [deployer.address, authorizer, operators] as const
  const data = encodeDeployData({ abi: firstFactoryAbi, bytecode: firstFactoryBytecode, args })
  const account = privateKeyToAccount(deployer.private_key)
  const hash = await writer().sendTransaction({ chain: null, account, data })
  await reader().waitForTransactionReceipt({ hash, pollingInterval: 100 })
  const { exitCode, printed, complaint } = await deploy(deployer, {
    "metadata-base-url": "https://api.test/metadata",
  })
  expect(complaint).toStartWith("This factory is of the first generation")
  expect(exitCode).toBe(0)
  expect(chainIn(printed).desk_address).toBeNull()
}, 20_000)

test("on a public chain without a configured metadata URL, the default on this machine is pointed out", async () => {
  const deployer = await newDeployer({ ether: "10" })
  const node = startLesserNode(chain.rpc_url, ofAnotherChain)
  const { exitCode, complaint } = await deploy(deployer, { "rpc-url": node.url })
  expect(exitCode).toBe(0)
  expect(complaint).toMatch(
    " is http://localhost:3000/metadata, as neither METADATA_BASE_URL nor API_BASE_URL is set",
  )
  expect(complaint).toMatch("operator chain call set-metadata-base --url URL prints")
  await node.stop()
}, 20_000)

describe("deploy-factory fails with one line", () => {
  test("if the chain does not respond, without printing the provider's URL", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const line = await failure(deployer, { "rpc-url": "http://127.0.0.1:1/with-a-key" })
    expect(line).toMatch("the chain at --rpc-url failed")
    expect(line).not.toMatch("with-a-key")
  }, 20_000)

  test("if the chain stops responding midway, without printing the provider's URL", async () => {
    const deployer = await newDeployer({ ether: "10" })
    await deploy(deployer)
    const node = startLesserNode(chain.rpc_url, failsToCall)
    const line = await failure(deployer, { "rpc-url": `${node.url}/with-a-key` })
    await node.stop()
    expect(line).toMatch("the chain at --rpc-url failed: the node is tired; check")
    expect(line).not.toMatch("with-a-key")
  }, 20_000)

  test("if the account has no ether, and says how much it needs", async () => {
    const deployer = await newDeployer({ ether: "0" })
    const line = await failure(deployer)
    expect(line).toMatch(new RegExp(`^${deployer.address} has 0 ether and needs 0\\.\\d+ for gas`))
  })

  test("if the account has too little ether", async () => {
    expect(await failure(await newDeployer({ ether: "0.000001" }))).toMatch(" has 0.000001 ether and needs ")
  })

  test("if the key has already sent another transaction", async () => {
    const deployer = await newDeployer({ ether: "10" })
    await sendSomething(deployer)
    expect(await failure(deployer)).toMatch("use a key that has not sent any")
  }, 40_000)

  test("if the factory exists with another authorizer", async () => {
    const deployer = await newDeployer({ ether: "10" })
    await deploy(deployer)
    const line = await failure(deployer, { authorizer: deployer.address })
    expect(line).toMatch(`has the authorizer ${authorizer}, not ${deployer.address}`)
    expect(line).toMatch(`operator chain call set-authorizer --account ${deployer.address} prints`)
  }, 20_000)

  test("if the factory exists with another guardian or without one", async () => {
    const [deployer, guardian] = [
      await newDeployer({ ether: "10" }),
      privateKeyToAddress(generatePrivateKey()),
    ]
    await deploy(deployer)
    const none = await failure(deployer, { guardian })
    expect(none).toMatch(`has no guardian, not ${guardian}`)
    expect(none).toMatch(`its admin changes that by calling setGuardian(${guardian})`)
    const guarded = await newDeployer({ ether: "10" })
    await deploy(guarded, { guardian })
    const other = privateKeyToAddress(generatePrivateKey())
    expect(await failure(guarded, { guardian: other })).toMatch(`has the guardian ${guardian}, not ${other}`)
    expect((await deploy(guarded)).exitCode).toBe(0)
  }, 20_000)

  test("if an operator is named twice, before anything is sent", async () => {
    const deployer = await newDeployer({ ether: "10" })
    const [operator = ""] = operators
    const line = await failure(deployer, { operators: `${operator},${operator.toLowerCase()}` })
    expect(line).toBe(`--operators names ${operator} twice; every lane needs its own key`)
    expect(await reader().getTransactionCount(deployer)).toBe(0)
  }, 20_000)

  test("if the factory exists without one of the operators", async () => {
    const deployer = await newDeployer({ ether: "10" })
    await deploy(deployer)
    const line = await failure(deployer, { operators: `${operators[0]},${deployer.address}` })
    expect(line).toMatch(`gives ${deployer.address} no role to issue, deploy`)
    expect(line).toMatch(
      `operator chain call grant --account ${deployer.address} --roles issue,deploy prints`,
    )
  }, 20_000)

  test.each([
    ["no key", "not a key"],
    ["zero", `0x${"0".repeat(64)}`],
    ["a number above the curve order", `0x${"f".repeat(64)}`],
  ])("if the key file contains %s, which it does not print", async (_name, text) => {
    const line = await failure({ file: keyFile(text) })
    expect(line).toMatch("does not hold a private key, 0x and 64 hexadecimal digits")
    expect(line).not.toMatch(text)
  })

  test("if there is no key file", async () => {
    const file = join(folder, "nothing")
    expect(await failure({ file })).toMatch(`--key-file names ${file}, which cannot be read`)
  })

  test.each([
    ["authorizer", "0x12", '"0x12" is not an address'],
    ["operators", "", "--operators is missing"],
    ["rpc-url", "chain", "--rpc-url takes an http or https URL"],
    ["wrong", "1", "--wrong"],
  ])("if --%s is %s", async (name, value, complaint) => {
    expect(await failure({ file: keyFile(generatePrivateKey()) }, { [name]: value })).toMatch(complaint)
  })
})

test("a run after an interrupted deployment finds its factory, and fails if other roles are given", async () => {
  const deployer = await newDeployer({ ether: "10" })
  const interrupted = start(deployer)
  await untilSent(deployer.address)
  interrupted.kill("SIGKILL")
  await interrupted.exited
  const others = { authorizer: deployer.address }
  const [same, other] = await Promise.all([deploy(deployer), deploy(deployer, others)])
  expect([same.exitCode, other.exitCode]).toEqual([0, 1])
  expect(other.complaint).toMatch(`has the authorizer ${authorizer}, not ${deployer.address}`)
  expect(await reader().getTransactionCount(deployer)).toBe(2)
}, 20_000)

type Deployer = { file: string; address: Address; private_key: `0x${string}` }

async function newDeployer({ ether }: { ether: string }): Promise<Deployer> {
  const private_key = generatePrivateKey()
  const address = privateKeyToAddress(private_key)
  await writer().setBalance({ address, value: parseEther(ether) })
  return { file: keyFile(private_key), address, private_key }
}

/** Makes a node pretend to be of a public chain. */
function ofAnotherChain({ method }: Call): Said | null {
  return method === "eth_chainId" ? { result: "0x2105" } : null
}

function failsToCall({ method }: Call): Said | null {
  return method === "eth_call" ? { error: { code: -32_000, message: "the node is tired" } } : null
}

/** Makes a node return no code for this long after each transaction. */
function codeComesLater(milliseconds: number) {
  let sent = Number.NEGATIVE_INFINITY
  return ({ method }: Call): Said | null => {
    if (method === "eth_sendRawTransaction") sent = performance.now()
    return method === "eth_getCode" && performance.now() - sent < milliseconds ? { result: "0x" } : null
  }
}

/** Makes a node call contracts as if there were none, also in estimates, whenever it is asked something for the first time. */
function callsFindItLater() {
  const asked = new Set<string>()
  return ({ method, params }: Call): Said | null => {
    const [{ data }] = (params ?? [{}]) as [{ data?: string }]
    const question = `${method} ${data}`
    if (!["eth_call", "eth_estimateGas"].includes(method) || asked.has(question)) return null
    asked.add(question)
    return method === "eth_call" ? { result: "0x" } : { error: { code: 3, message: "execution reverted" } }
  }
}

let written = 0
function keyFile(text: string): string {
  const path = join(folder, `${++written}.key`)
  writeFileSync(path, `${text}\n`, { mode: 0o600 })
  return path
}

type Options = Record<string, string>

function start({ file }: { file: string }, others: Options = {}) {
  const options = {
    "rpc-url": chain.rpc_url,
    "key-file": file,
    authorizer,
    operators: operators.join(","),
    ...others,
  }
  const words = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const program = join(import.meta.dir, "../../src/deploy-factory.ts")
  return Bun.spawn(tiedToParent([process.execPath, program, ...words]), {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
}

async function deploy(deployer: { file: string }, others: Options = {}) {
  const child = start(deployer, others)
  const [printed, complaint, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  return { printed, complaint, exitCode }
}

async function failure(deployer: { file: string }, others: Options = {}): Promise<string> {
  const { printed, complaint, exitCode } = await deploy(deployer, others)
  expect({ exitCode, printed }).toEqual({ exitCode: 1, printed: "" })
  const lines = complaint.trim().split("\n")
  expect(lines).toHaveLength(1)
  return lines[0] ?? ""
}

/** Parses the printed entry as the configuration does. */
function chainIn(printed: string) {
  const path = join(folder, "chains.json")
  writeFileSync(path, printed)
  const { chains } = loadConfig({ CHAINS: path, SERVICE_SECRET: "a secret of tests that is long enough" })
  if (!chains[0]) throw new Error("there is no chain in the configuration")
  expect(chains).toMatchObject([{ chain_id: chain.chain_id, rpc_urls: [chain.rpc_url] }])
  return chains[0]
}

function rolesAt(address: Address, account: Address): Promise<bigint> {
  return reader().readContract({ address, abi: factoryAbi, functionName: "roles", args: [account] })
}

async function sendSomething({ private_key, address }: Deployer): Promise<void> {
  const account = privateKeyToAccount(private_key)
  const hash = await writer().sendTransaction({ chain: null, account, to: address, value: 1n })
  await reader().waitForTransactionReceipt({ hash, pollingInterval: 100 })
}

async function untilSent(address: Address): Promise<void> {
  while ((await reader().getTransactionCount({ address, blockTag: "pending" })) === 0) await Bun.sleep(5)
}

function reader() {
  return createPublicClient({ transport: http(chain.rpc_url) })
}

function writer() {
  return createTestClient({ mode: "anvil", transport: http(chain.rpc_url) }).extend(walletActions)
}
