import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import {
  createWalletClient,
  getAddress,
  getContractAddress,
  type Hex,
  http,
  isAddress,
  publicActions,
} from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { factoryAbi, factoryBytecode } from "./chain/contracts.generated.ts"
import { rawMessage } from "./chain/rpc.ts"
import { complain, say } from "./run.ts"
import { StartError } from "./start-error.ts"

const usage = `bun src/deploy-factory.ts --rpc-url URL --key-file FILE --authorizer ADDRESS --operators ADDRESS,ADDRESS

Deploys the factory of collections on a chain, once, and prints its address for CHAINS. The key in the file pays and
becomes the admin, who can change the rest; it need not be known to the service. The authorizer is the address of
AUTHORIZER_KEY, the operators those of SIGNER_KEYS.`

/** Deploys the factory, unless the first transaction of the same key has done so before. */
async function deployFactory(words: string[]): Promise<void> {
  const { rpcUrl, account, authorizer, operators } = parse(words)
  const client = createWalletClient({ account, transport: http(rpcUrl) }).extend(publicActions)
  const address = getContractAddress({ from: account.address, nonce: 0n })
  if (await client.getCode({ address })) return say(`The factory is at ${address} already.`)
  const hash = await client.deployContract({
    chain: null,
    abi: factoryAbi,
    bytecode: factoryBytecode,
    args: [account.address, authorizer, operators],
  })
  say(`Sent ${hash}; waiting for its block …`)
  const receipt = await client.waitForTransactionReceipt({ hash })
  if (receipt.status !== "success" || !receipt.contractAddress)
    throw new StartError(
      `the deployment reverted in transaction ${hash}; has the account enough for the gas?`,
    )
  say(`The factory is at ${getAddress(receipt.contractAddress)}.`)
}

function parse(words: string[]) {
  const options = {
    "rpc-url": { type: "string" },
    "key-file": { type: "string" },
    authorizer: { type: "string" },
    operators: { type: "string" },
  } as const
  const { values } = parseArgs({ args: words, options })
  const { "rpc-url": rpcUrl, "key-file": keyFile, authorizer, operators } = values
  if (!rpcUrl || !keyFile || !authorizer || !operators) throw new StartError(`usage: ${usage}`)
  const key = readFileSync(keyFile, "utf8").trim()
  if (!/^0x[0-9a-fA-F]{64}$/.test(key))
    throw new StartError(`${keyFile} does not hold a private key, 0x and 64 hexadecimal digits`)
  const addressOf = (text: string) => {
    if (!isAddress(text)) throw new StartError(`"${text}" is not an address`)
    return getAddress(text)
  }
  return {
    rpcUrl,
    account: privateKeyToAccount(key as Hex),
    authorizer: addressOf(authorizer),
    operators: operators.split(",").map(addressOf),
  }
}

try {
  await deployFactory(process.argv.slice(2))
} catch (error) {
  complain(error instanceof StartError ? error.message : `the chain refused: ${rawMessage(error)}`)
  process.exit(1)
}
