import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { type Address, createTestClient, type Hex, http, publicActions, toHex, walletActions } from "viem"
import { mnemonicToAccount } from "viem/accounts"
import { factoryAbi } from "../engine/chain/contracts.generated.ts"
import { planDeployment } from "../engine/chain/deployment.ts"
import { untilNextBeat } from "../platform/beat.ts"
import { freePort } from "../platform/free-port.ts"
import { listenFailure } from "../platform/listen-failure.ts"
import { StartError } from "../platform/start-error.ts"
import { writeWholeAtOnce } from "../platform/whole-file.ts"
import { anvilPath } from "./anvil-path.ts"
import { startChainGuard } from "./chain-guard.ts"
import { localChain } from "./local-chain.ts"

export type DevChain = {
  chain_id: number
  rpc_url: string
  factory_address: Address
  /** Null on a chain older than desks. */
  desk_address: Address | null
  /** Keys of the service's own accounts, publicly known: worthless outside this machine. */
  signer_keys: Hex[]
  authorizer_key: Hex
  /** Funded accounts for people. */
  wallets: { address: Address; private_key: Hex }[]
  stop(): Promise<void>
}

type DevChainOptions = MetadataBase & {
  folder: string
  /** 0 picks a free one. */
  port: number
  /** Whether anybody waits for blocks; otherwise one is made only for transactions and once a minute. */
  isAwaited: () => Promise<boolean>
}

type MetadataBase = {
  /** The base address of tokens' metadata. */
  metadata_base_url: string
  /** The one that the service set when it last ran in the folder. */
  last_metadata_base_url?: string | undefined
}

/**
 * Starts a local EVM chain with the contracts deployed. Its state is kept in `folder`, written as a whole after every
 * block with a transaction, so that even a crash loses at most the block being made.
 */
export async function startDevChain(options: DevChainOptions): Promise<DevChain> {
  if (options.port !== 0) await untilFree(options.port)
  const stateFile = join(options.folder, "chain.json")
  const anvilPort = await freePort()
  const anvilUrl = `http://127.0.0.1:${anvilPort}`
  keepFirstBlock(stateFile)
  const anvil = spawnAnvil(anvilPort, stateFile)
  const client = createDevClient(anvilUrl)
  try {
    await untilItAnswers(client, anvil, stateFile)
    const contracts = await deployContracts(client, options)
    await saveState(client, stateFile)
    const producer = startBlockProducer(client, stateFile, options.isAwaited)
    const guard = startChainGuard(options.port, anvilUrl, producer.noteSend)
    return {
      chain_id: localChain.id,
      rpc_url: `http://127.0.0.1:${guard.port}`,
      ...contracts,
      signer_keys: [keyAt(1), keyAt(2)],
      authorizer_key: keyAt(3),
      wallets: [4, 5, 6, 7, 8, 9].map((index) => ({
        address: accountAt(index).address,
        private_key: keyAt(index),
      })),
      async stop() {
        await guard.stop()
        await producer.stop()
        await saveState(client, stateFile)
        anvil.stdin.end()
        await anvil.exited
      },
    }
  } catch (error) {
    anvil.stdin.end()
    throw error
  }
}

/** The document of `CHAINS` for a service on this chain. */
export function chainsFor({ chain_id, rpc_url, factory_address, desk_address }: DevChain) {
  return {
    [chain_id]: {
      name: "local",
      rpc_urls: [rpc_url],
      factory_address,
      ...(desk_address && { desk_address }),
      confirmation_depth: 2,
      finality_depth: 12,
      block_time_seconds: 1,
      max_fee_per_gas_gwei: 1_000,
    },
  }
}

const portPatienceMilliseconds = 5_000

/** A chain that was just orphaned needs a moment to exit. */
async function untilFree(port: number): Promise<void> {
  const deadline = performance.now() + portPatienceMilliseconds
  for (;;) {
    const error = await triedToListen(port)
    if (error === null) return
    if (error.code !== "EADDRINUSE" || performance.now() > deadline)
      throw listenFailure(error, {
        port: `port ${port} for the local chain`,
        another: "set DEV_CHAIN_PORT (0 picks one)",
      })
    await Bun.sleep(100)
  }
}

/** The error that keeps this process from listening, or null. */
async function triedToListen(port: number): Promise<NodeJS.ErrnoException | null> {
  const server = createServer()
  return await new Promise((resolve) => {
    server.once("error", resolve)
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(null)))
  })
}

/**
 * anvil begins with a block 0 of its own each time, saves it beside the one that it was given, and takes any of them the
 * next time. Another block 0 is a chain that replaced what was final, and halts the lanes.
 */
function keepFirstBlock(stateFile: string): void {
  const state = savedState(stateFile)
  if (!state) return
  const [first] = state.blocks.filter(isGenesis).sort((one, other) => madeAt(one) - madeAt(other))
  const blocks = state.blocks.filter((block) => block === first || !isGenesis(block))
  if (blocks.length < state.blocks.length) writeWholeAtOnce(stateFile, JSON.stringify({ ...state, blocks }))
}

/** Null where there is none, or none that can be read: anvil refuses that itself. */
function savedState(stateFile: string): { blocks: SavedBlock[] } | null {
  try {
    return JSON.parse(readFileSync(stateFile, "utf8"))
  } catch {
    return null
  }
}

type SavedBlock = { header: { number: Hex; timestamp: Hex } }

function isGenesis({ header }: SavedBlock): boolean {
  return Number(header.number) === 0
}

function madeAt({ header }: SavedBlock): number {
  return Number(header.timestamp)
}

/**
 * A shell watches a pipe: when this process is gone, however it ended, the pipe closes and the shell ends anvil. If anvil
 * ends first, so does the shell.
 */
const endWithParent =
  'exec 3<&0; "$0" "$@" </dev/null 3<&- & child=$!; { read -r _ <&3; kill "$child"; } & watch=$!; wait "$child"; kill "$watch"'

function spawnAnvil(port: number, stateFile: string) {
  const flags = ["--port", String(port), "--silent", "--no-mining", "--order", "fifo", "--no-cors"]
  const state = existsSync(stateFile) ? ["--load-state", stateFile] : []
  return Bun.spawn(["sh", "-c", endWithParent, anvilPath(), ...flags, ...state], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "pipe",
    // Its own process group: Ctrl-C reaches only this process, which then stops the chain in order.
    detached: true,
  })
}

type Anvil = ReturnType<typeof spawnAnvil>

function createDevClient(rpcUrl: string) {
  return createTestClient({ mode: "anvil", chain: localChain, transport: http(rpcUrl, { retryCount: 0 }) })
    .extend(publicActions)
    .extend(walletActions)
}

type DevClient = ReturnType<typeof createDevClient>

const startPatienceMilliseconds = 30_000

async function untilItAnswers(client: DevClient, anvil: Anvil, stateFile: string): Promise<void> {
  const said = anvil.stderr.text()
  const deadline = performance.now() + startPatienceMilliseconds
  while (performance.now() < deadline) {
    if (anvil.exitCode !== null) throw endedAtOnce(await said, stateFile)
    try {
      await client.getChainId()
      return
    } catch {
      await Bun.sleep(50)
    }
  }
  throw new StartError(
    `the local chain does not respond; try again, and if that does not help, remove ${stateFile} to start with a new chain`,
  )
}

function endedAtOnce(said: string, stateFile: string): StartError {
  const [why = "it did not say why"] = said
    .replace(/^error: /, "")
    .split("\n")
    .filter(Boolean)
  const next = why.includes(stateFile)
    ? `remove ${stateFile} to start with a new chain`
    : `it is ${anvilPath()}, which has to run on this machine`
  return new StartError(`the local chain could not start: ${why}; ${next}`)
}

const mnemonic = "test test test test test test test test test test test junk"

function accountAt(addressIndex: number) {
  return mnemonicToAccount(mnemonic, { addressIndex })
}

function keyAt(addressIndex: number): Hex {
  const key = accountAt(addressIndex).getHdKey().privateKey
  if (!key) throw new Error("the development mnemonic gives no key")
  return toHex(key)
}

/** Deploys as the first transactions of the first account, so the addresses are the same on every run. */
async function deployContracts(
  client: DevClient,
  base: MetadataBase,
): Promise<{ factory_address: Address; desk_address: Address | null }> {
  const admin = accountAt(0)
  const { factory_address, desk_address, factory_data, desk_data } = planDeployment({
    deployer: admin.address,
    guardian: null,
    authorizer: accountAt(3).address,
    signers: [accountAt(1).address, accountAt(2).address],
    metadata_base_url: base.metadata_base_url,
  })
  const known = await client.getTransactionCount({ address: admin.address })
  if (known === 0) {
    for (const data of [factory_data, desk_data])
      await client.sendTransaction({ account: admin, data, gas: 12_000_000n })
    await client.mine({ blocks: 1 })
  }
  if (!(await client.getCode({ address: factory_address })))
    throw new StartError("the contracts could not be deployed on the local chain")
  if (!(await client.getCode({ address: desk_address }))) return { factory_address, desk_address: null }
  await moveMetadata(client, factory_address, base)
  return { factory_address, desk_address }
}

/** The service may have been started on another port. A base that the factory's admin chose stays. */
async function moveMetadata(
  client: DevClient,
  address: Address,
  { metadata_base_url: now, last_metadata_base_url: before }: MetadataBase,
): Promise<void> {
  const factory = { address, abi: factoryAbi } as const
  const [present, isFrozen, admin] = await Promise.all([
    client.readContract({ ...factory, functionName: "baseURI" }),
    client.readContract({ ...factory, functionName: "baseURIFrozen" }),
    client.readContract({ ...factory, functionName: "admin" }),
  ])
  const isOurs = present === (before ?? present) && admin === accountAt(0).address
  if (present === now || isFrozen || !isOurs) return
  await client.writeContract({ ...factory, account: accountAt(0), functionName: "setBaseURI", args: [now] })
  await client.mine({ blocks: 1 })
}

/** Makes a block each second while somebody waits for one. Only the guard passes transactions to the chain. */
function startBlockProducer(client: DevClient, stateFile: string, isAwaited: () => Promise<boolean>) {
  let stopped = false
  let idleSeconds = 0
  let sending = 0
  let sent = 0
  let mined = 0
  async function produce(): Promise<void> {
    while (!stopped) {
      // Whoever waits for a silent chain reports it.
      await produceWhenDue().catch(() => {})
      await Bun.sleep(untilNextBeat(1_000))
    }
  }
  async function produceWhenDue(): Promise<void> {
    const isPending = await hasPending()
    const isDue = isPending || idleSeconds >= 60 || (await isAwaited())
    if (isDue) await client.mine({ blocks: 1 })
    idleSeconds = isDue ? 0 : idleSeconds + 1
    if (isPending) await saveState(client, stateFile)
  }
  async function hasPending(): Promise<boolean> {
    if (sending === 0 && mined === sent) return false
    const known = sent
    const { pending } = await client.getTxpoolStatus()
    if (pending === 0) mined = known
    return pending > 0
  }
  const running = produce()
  return {
    /** A send that waits for its block is answered only then. */
    noteSend(answer: Promise<unknown>) {
      const note = () => {
        sending -= 1
        sent += 1
      }
      sending += 1
      answer.then(note, note)
    },
    async stop() {
      stopped = true
      await running
    },
  }
}

async function saveState(client: DevClient, stateFile: string): Promise<void> {
  const packed = await client.dumpState()
  writeWholeAtOnce(stateFile, Bun.gunzipSync(Buffer.from(packed.slice(2), "hex")))
}
