import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import {
  AbiDecodingZeroDataError,
  type Address,
  BaseError,
  createWalletClient,
  encodeFunctionData,
  formatEther,
  getAddress,
  type Hex,
  http,
  isAddress,
  isAddressEqual,
  publicActions,
  zeroAddress,
} from "viem"
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts"
import { factoryAbi } from "./engine/chain/contracts.generated.ts"
import { type Parties, planDeployment, signerRoles } from "./engine/chain/deployment.ts"
import { endingAfter, unlessUnknown } from "./engine/chain/endpoint.ts"
import publicChains from "./engine/chain/public-chains.json"
import { rolesIn } from "./engine/chain/roles.ts"
import { onlyAsked, rawMessage, unlessReverted } from "./engine/chain/rpc.ts"
import { isRevertText } from "./engine/chain/send-errors.ts"
import { type Environment, metadataBaseUrl, processEnvironment } from "./platform/config.ts"
import { ConfigError } from "./platform/config-error.ts"
import { complain, say } from "./platform/run.ts"
import { StartError } from "./platform/start-error.ts"

const usage = `bun src/deploy-factory.ts --rpc-url URL --key-file FILE --authorizer ADDRESS --operators ADDRESS,ADDRESS
       [--guardian ADDRESS] [--metadata-base-url URL]

Deploys the factory of collections and its desk on a chain and prints a CHAINS file with which a service can start. The key
in the file pays and becomes the admin, who can change everything else; the service need not know it. It must not have sent
a transaction before: the deployment is its first two, so that a second run is harmless and the addresses are the same on
every chain. The authorizer is the address of AUTHORIZER_KEY; the operators are the addresses of SIGNER_KEYS in the same
order, which decides what each may do. A guardian can pause, and cancel a release. The metadata of tokens is under
--metadata-base-url, by default METADATA_BASE_URL, or else /metadata of API_BASE_URL.`

async function runDeployment(words: string[]): Promise<void> {
  if (words.includes("--help") || words.includes("-h")) return say(usage)
  const { rpcUrl, account, isBaseNamed, ...parties } = parse(words)
  const client = connect(rpcUrl, account)
  const chainId = await reach(client.getChainId())
  const deployed = await deployContracts(client, { deployer: account.address, ...parties })
  // A factory of the first generation, which has no desk, has no metadata base.
  if (deployed.desk_address && (isBaseNamed || chainId !== localChainId))
    await checkBase(client, deployed.factory_address, { wanted: parties.metadata_base_url, isBaseNamed })
  say(JSON.stringify({ [chainId]: { ...settingsOf(chainId), rpc_urls: [rpcUrl], ...deployed } }))
}

/** The development chain, whose tokens may point to this machine. */
const localChainId = 31_337

/** The known settings of a public chain, without its example provider. */
function settingsOf(chainId: number): object {
  const known: Record<string, { factory_address: unknown; rpc_urls: unknown }> = publicChains
  const { factory_address: _none, rpc_urls: _examples, ...settings } = known[chainId] ?? {}
  return settings
}

type Deployed = { factory_address: Address; desk_address?: Address }

function connect(rpcUrl: string, account: PrivateKeyAccount) {
  return createWalletClient({
    account,
    transport: http(rpcUrl, { ...endingAfter(10_000), retryCount: 1 }),
    ...onlyAsked,
  }).extend(publicActions)
}

type Client = ReturnType<typeof connect>

/** The first two contracts of the account, deployed now or in an earlier run. */
async function deployContracts(client: Client, parties: Parties): Promise<Deployed> {
  const { factory_address, desk_address, factory_data, desk_data } = planDeployment(parties)
  const wasThere = Boolean(await reach(client.getCode({ address: factory_address })))
  if (!wasThere)
    await deployOne(client, { what: "factory", address: factory_address, data: factory_data, nonce: 0 })
  if (await isOfFirstGeneration(client, factory_address)) {
    complain(
      "This factory is of the first generation, which keeps working without a desk; for today's contracts use a key that has not sent a transaction.",
    )
    return { factory_address }
  }
  // The factory may be from another run, with other settings.
  await checkSettings(client, factory_address, parties)
  if (wasThere) complain(`The factory is already at ${factory_address}.`)
  if (!(await reach(client.getCode({ address: desk_address }))))
    await deployOne(client, { what: "desk", address: desk_address, data: desk_data, nonce: 1 })
  return { factory_address, desk_address }
}

type Wanted = { what: "factory" | "desk"; address: Address; data: Hex; nonce: number }

/** Sends what is not sent yet and waits for its block. A parallel run does no harm: the chain takes one of the two. */
async function deployOne(client: Client, wanted: Wanted): Promise<void> {
  const { address, what, nonce } = wanted
  const sender = client.account.address
  const hasCode = async () => Boolean(await reach(client.getCode({ address })))
  const count = () => client.getTransactionCount({ address: sender, blockTag: "latest" })
  const pending = () => client.getTransactionCount({ address: sender, blockTag: "pending" })
  /** A provider's nodes may lag: the one asked for the code may not have the block yet. */
  const isUsedForOther = async () => {
    const end = performance.now() + lagMilliseconds
    while ((await reach(count())) > nonce && !(await hasCode())) {
      if (performance.now() > end) return true
      await Bun.sleep(pollMilliseconds)
    }
    return false
  }
  if (await isUsedForOther())
    throw new StartError(
      `${sender} has sent transactions on this chain, and number ${nonce + 1} did not deploy the ${what}; use a key that has not sent any`,
    )
  if ((await reach(unlessUnknown(pending(), count))) <= nonce) await sendDeployment(client, wanted)
  complain(`Waiting until the ${what} at ${address} is in a block …`)
  const deadline = performance.now() + patienceMilliseconds
  while (!(await hasCode())) {
    if (await isUsedForOther())
      throw new StartError(
        `transaction number ${nonce + 1} of ${sender} deployed nothing; repeat with another key`,
      )
    if (performance.now() > deadline)
      throw new StartError(
        "the transaction is in no block after five minutes; run this again to keep waiting",
      )
    await Bun.sleep(pollMilliseconds)
  }
}

const patienceMilliseconds = 300_000
const lagMilliseconds = 15_000
const pollMilliseconds = 500

async function sendDeployment(client: Client, { data, nonce }: Wanted): Promise<void> {
  const sender = client.account.address
  const [balance, gas, fees] = await Promise.all([
    reach(client.getBalance({ address: sender })),
    reachContract(() => client.estimateGas({ data })),
    reach(client.estimateFeesPerGas()),
  ])
  const cost = gas * fees.maxFeePerGas
  if (balance < cost)
    throw new StartError(
      `${sender} has ${formatEther(balance)} ether and needs ${formatEther(cost)} for gas; fund it`,
    )
  const hash = await reach(client.sendTransaction({ chain: null, data, gas, nonce, ...fees }))
  complain(`Sent ${hash}.`)
}

async function isOfFirstGeneration(client: Client, address: Address): Promise<boolean> {
  const data = encodeFunctionData({ abi: factoryAbi, functionName: "generation" })
  const answer = await reachContract(async () => {
    const called = await unlessReverted(() => client.call({ to: address, data }), null)
    if (called && !called.data) throw new AbiDecodingZeroDataError()
    return called
  })
  return answer === null
}

async function checkSettings(client: Client, address: Address, parties: Parties): Promise<void> {
  const factory = { address, abi: factoryAbi } as const
  const known = await reachContract(() => client.readContract({ ...factory, functionName: "authorizer" }))
  if (!isAddressEqual(known, parties.authorizer))
    throw new StartError(
      `the factory at ${address} has the authorizer ${known}, not ${parties.authorizer}; its admin changes that with the call that operator chain call set-authorizer --account ${parties.authorizer} prints`,
    )
  const named = await reachContract(() => client.readContract({ ...factory, functionName: "guardian" }))
  if (parties.guardian && !isAddressEqual(named, parties.guardian))
    throw new StartError(
      `the factory at ${address} has ${isAddressEqual(named, zeroAddress) ? "no guardian" : `the guardian ${named}`}, not ${parties.guardian}; its admin changes that by calling setGuardian(${parties.guardian})`,
    )
  for (const { account, roles: needed } of signerRoles(parties.signers)) {
    const roles = await reachContract(() =>
      client.readContract({ ...factory, functionName: "roles", args: [account] }),
    )
    const lacking = rolesIn(Number(needed & ~roles))
    if (lacking.length > 0)
      throw new StartError(
        `the factory at ${address} gives ${account} no role to ${lacking.join(", ")}; its admin changes that with the call that operator chain call grant --account ${account} --roles ${lacking.join(",")} prints`,
      )
  }
}

type Base = { wanted: string; isBaseNamed: boolean }

/**
 * Only reported: the admin may have moved it, for example to a content-addressed store, and the service works with
 * any.
 */
async function checkBase(client: Client, address: Address, { wanted, isBaseNamed }: Base): Promise<void> {
  const factory = { address, abi: factoryAbi } as const
  const known = await reachContract(() => client.readContract({ ...factory, functionName: "baseURI" }))
  const tell = async (why: string, url: string) => {
    const isFrozen = await reachContract(() =>
      client.readContract({ ...factory, functionName: "baseURIFrozen" }),
    )
    const change = isFrozen
      ? "it is frozen, so nobody can change that"
      : `its admin changes that with the call that operator chain call set-metadata-base --url ${url} prints`
    complain(`The metadata base of the factory at ${address} is ${known || "not set"}, ${why}; ${change}.`)
  }
  if (isBaseNamed && known !== wanted) return await tell(`not ${wanted}`, wanted)
  if (!isBaseNamed && known === wanted)
    await tell("as neither METADATA_BASE_URL nor API_BASE_URL is set", "URL")
}

/** A provider's nodes may lag: the one that is asked may not have the factory yet that another one has. */
async function reachContract<T>(ask: () => Promise<T>): Promise<T> {
  return await reach(untilThere(ask))
}

async function untilThere<T>(ask: () => Promise<T>): Promise<T> {
  const end = performance.now() + lagMilliseconds
  for (;;)
    try {
      return await ask()
    } catch (error) {
      if (!lacksContract(error) || performance.now() > end) throw error
      await Bun.sleep(pollMilliseconds)
    }
}

/** The desk's constructor calls the factory, and reverts if there is none. */
function lacksContract(error: unknown): boolean {
  const isEmpty = error instanceof BaseError && error.walk() instanceof AbiDecodingZeroDataError
  return isEmpty || isRevertText(rawMessage(error))
}

/** The node's own words in one line, without the provider's address, which may contain a key. */
async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw new StartError(
      `the chain at --rpc-url failed: ${rawMessage(error).replaceAll(/\s+/g, " ")}; check that the URL is right and the node runs`,
    )
  }
}

type Asked = Omit<Parties, "deployer"> & { account: PrivateKeyAccount; rpcUrl: string; isBaseNamed: boolean }

function parse(words: string[]): Asked {
  const values = readOptions(words)
  const option = (name: keyof typeof values) => {
    const value = values[name]
    if (!value) throw new StartError(`--${name} is missing; --help shows the options`)
    return value
  }
  const rpcUrl = option("rpc-url")
  if (!/^https?:\/\//.test(rpcUrl) || !URL.canParse(rpcUrl))
    throw new StartError("--rpc-url takes an http or https URL")
  const environment: Environment = {
    ...processEnvironment,
    ...(values["metadata-base-url"] && { METADATA_BASE_URL: values["metadata-base-url"] }),
  }
  return {
    rpcUrl,
    account: readAccount(option("key-file")),
    authorizer: toAddress(option("authorizer")),
    signers: operatorsIn(option("operators")),
    guardian: values.guardian ? toAddress(values.guardian) : null,
    metadata_base_url: metadataBaseUrl(environment),
    isBaseNamed: Boolean(environment.METADATA_BASE_URL || environment.API_BASE_URL),
  }
}

function readOptions(words: string[]) {
  const options = {
    "rpc-url": { type: "string" },
    "key-file": { type: "string" },
    authorizer: { type: "string" },
    operators: { type: "string" },
    guardian: { type: "string" },
    "metadata-base-url": { type: "string" },
  } as const
  try {
    return parseArgs({ args: words, options }).values
  } catch (error) {
    throw new StartError(`${(error as Error).message.split(/[.\n]/)[0]}; --help shows the options`)
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

/** Of an account named twice, the factory would keep only the second one's roles. */
function operatorsIn(text: string): Address[] {
  const operators = text.split(",").map(toAddress)
  const twice = operators.find((each, index) => operators.indexOf(each) !== index)
  if (twice === undefined) return operators
  throw new StartError(`--operators names ${twice} twice; every lane needs its own key`)
}

function toAddress(text: string): Address {
  if (!isAddress(text)) throw new StartError(`"${text}" is not an address`)
  return getAddress(text)
}

try {
  await runDeployment(process.argv.slice(2))
} catch (error) {
  complain(
    error instanceof StartError || error instanceof ConfigError
      ? error.message
      : `the factory could not be deployed: ${error}`,
  )
  process.exit(1)
}
