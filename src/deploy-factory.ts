import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import {
  type Address,
  createWalletClient,
  encodeDeployData,
  formatEther,
  getAddress,
  getContractAddress,
  type Hex,
  http,
  isAddress,
  isAddressEqual,
  publicActions,
} from "viem"
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts"
import { factoryAbi, factoryBytecode } from "./chain/contracts.generated.ts"
import { rawMessage } from "./chain/rpc.ts"
import { complain, say } from "./run.ts"
import { StartError } from "./start-error.ts"

const usage = `bun src/deploy-factory.ts --rpc-url URL --key-file FILE --authorizer ADDRESS --operators ADDRESS,ADDRESS

Deploys the factory of collections on a chain and prints what goes into the file of CHAINS. The key in the file pays
and becomes the admin, who can change the rest; it need not be known to the service, and may have sent nothing on this
chain: the deployment is its first transaction, which makes a second run harmless and the address the same on every
chain. The authorizer is the address of AUTHORIZER_KEY, the operators those of SIGNER_KEYS.`

async function runDeployment(words: string[]): Promise<void> {
  if (words.includes("--help") || words.includes("-h")) return say(usage)
  const { rpcUrl, ...deployment } = parse(words)
  const client = connect(rpcUrl, deployment.account)
  const chainId = await reach(client.getChainId())
  const factory_address = await deployFactory(client, deployment)
  say(JSON.stringify({ [chainId]: { factory_address } }))
}

type Deployment = { account: PrivateKeyAccount; authorizer: Address; operators: Address[] }

function connect(rpcUrl: string, account: PrivateKeyAccount) {
  return createWalletClient({ account, transport: http(rpcUrl, { retryCount: 1 }) }).extend(publicActions)
}

type Client = ReturnType<typeof connect>

/** The factory's address, which it has as the first contract of the account, deployed now or in an earlier run. */
async function deployFactory(client: Client, deployment: Deployment): Promise<Address> {
  const { address: from } = deployment.account
  const address = getContractAddress({ from, nonce: 0n })
  const hasCode = async () => Boolean(await reach(client.getCode({ address })))
  if (await hasCode()) {
    await checkSettings(client, address, deployment)
    complain(`The factory is at ${address} already.`)
    return address
  }
  const count = (blockTag: "latest" | "pending") =>
    reach(client.getTransactionCount({ address: from, blockTag }))
  if ((await count("latest")) > 0)
    throw new StartError(
      `${from} has sent transactions on this chain, the first of which deployed no factory; take a key that has sent none`,
    )
  if ((await count("pending")) === 0) await sendDeployment(client, deployment)
  complain(`Waiting for the block with the factory at ${address} …`)
  const deadline = performance.now() + patienceMilliseconds
  while (!(await hasCode())) {
    if ((await count("latest")) > 0 && !(await hasCode()))
      throw new StartError(`the first transaction of ${from} deployed nothing; repeat with another key`)
    if (performance.now() > deadline)
      throw new StartError("the transaction is in no block after five minutes; run this again to wait on")
    await Bun.sleep(pollMilliseconds)
  }
  // What is there may be of an earlier run, or of one at the same time, with other roles.
  await checkSettings(client, address, deployment)
  return address
}

const patienceMilliseconds = 300_000
const pollMilliseconds = 500

/** A run at the same time does no harm: of two transactions with the first nonce a chain takes one. */
async function sendDeployment(client: Client, { account, authorizer, operators }: Deployment): Promise<void> {
  const args = [account.address, authorizer, operators] as const
  const data = encodeDeployData({ abi: factoryAbi, bytecode: factoryBytecode, args })
  const [balance, gas, fees] = await Promise.all([
    reach(client.getBalance({ address: account.address })),
    reach(client.estimateGas({ data })),
    reach(client.estimateFeesPerGas()),
  ])
  const cost = gas * fees.maxFeePerGas
  if (balance < cost)
    throw new StartError(
      `${account.address} has ${formatEther(balance)} ether and needs ${formatEther(cost)} for the gas; send it some`,
    )
  const hash = await reach(client.sendTransaction({ chain: null, data, gas, nonce: 0, ...fees }))
  complain(`Sent ${hash}.`)
}

async function checkSettings(
  client: Client,
  address: Address,
  { authorizer, operators }: Deployment,
): Promise<void> {
  const factory = { address, abi: factoryAbi } as const
  const known = await reach(client.readContract({ ...factory, functionName: "authorizer" }))
  if (!isAddressEqual(known, authorizer))
    throw new StartError(
      `the factory at ${address} has the authorizer ${known}, not ${authorizer}; its admin changes that with setAuthorizer`,
    )
  for (const operator of operators)
    if (!(await reach(client.readContract({ ...factory, functionName: "isOperator", args: [operator] }))))
      throw new StartError(
        `the factory at ${address} does not know the operator ${operator}; its admin changes that with setOperator`,
      )
}

/** The node's own words in one line, never with the address of the provider, which may hold a key. */
async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw new StartError(
      `the chain at --rpc-url does not do it: ${rawMessage(error).replaceAll(/\s+/g, " ")}; see that the address is right and the node runs`,
    )
  }
}

function parse(words: string[]): Deployment & { rpcUrl: string } {
  const values = readOptions(words)
  const option = (name: keyof typeof values) => {
    const value = values[name]
    if (!value) throw new StartError(`--${name} is missing; --help says what each takes`)
    return value
  }
  const rpcUrl = option("rpc-url")
  if (!/^https?:\/\//.test(rpcUrl) || !URL.canParse(rpcUrl))
    throw new StartError("--rpc-url takes an http or https address")
  return {
    rpcUrl,
    account: readAccount(option("key-file")),
    authorizer: toAddress(option("authorizer")),
    operators: option("operators").split(",").map(toAddress),
  }
}

function readOptions(words: string[]) {
  const options = {
    "rpc-url": { type: "string" },
    "key-file": { type: "string" },
    authorizer: { type: "string" },
    operators: { type: "string" },
  } as const
  try {
    return parseArgs({ args: words, options }).values
  } catch (error) {
    throw new StartError(`${(error as Error).message.split(/[.\n]/)[0]}; --help says what it takes`)
  }
}

function readAccount(file: string): PrivateKeyAccount {
  let key: string
  try {
    key = readFileSync(file, "utf8").trim()
  } catch (error) {
    throw new StartError(`--key-file names ${file}, which cannot be read: ${(error as Error).message}`)
  }
  const wrong = new StartError(`${file} does not hold a private key, 0x and 64 hexadecimal digits`)
  if (!/^0x[0-9a-fA-F]{64}$/.test(key)) throw wrong
  try {
    return privateKeyToAccount(key as Hex)
  } catch {
    throw wrong
  }
}

function toAddress(text: string): Address {
  if (!isAddress(text)) throw new StartError(`"${text}" is not an address`)
  return getAddress(text)
}

try {
  await runDeployment(process.argv.slice(2))
} catch (error) {
  complain(error instanceof StartError ? error.message : `the factory could not be deployed: ${error}`)
  process.exit(1)
}
