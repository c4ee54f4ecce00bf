import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import {
  type Address,
  type Chain,
  createTestClient,
  type Hex,
  http,
  publicActions,
  toHex,
  walletActions,
} from "viem"
import { mnemonicToAccount, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { transactionAttempts } from "../../src/db/schema.ts"
import { anvilPath } from "../../src/dev/anvil-path.ts"
import { planDeployment } from "../../src/engine/chain/deployment.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { tiedToParent } from "../harness/child-process.ts"
import { type FakeKeyService, startAwsKms } from "../harness/key-services.ts"
import { type ProviderProxy, startProxy } from "./proxy.ts"
import type { KillStep, WorkerSettings } from "./worker.ts"

/** A chain, its providers, a database, and worker processes that can be killed. */
export type Stage = {
  folder: string
  anvil: Anvil
  proxies: ProviderProxy[]
  /** Key services that hold signers' keys outside all processes; empty unless `moveKeyAway` was called. */
  keyServices: FakeKeyService[]
  /** The API's side of the service, which talks to the chain itself. */
  world: World
  /** The environment variables of the service's processes. */
  environment: Record<string, string>
  /** Transactions that reached a provider before they were in the database. */
  unstored: Hex[]
  startWorker(options?: WorkerOptions): Worker
  /** Moves the second signer's key to a key service, for workers that start later. */
  moveKeyAway(): void
  isClosed(): boolean
  close(): Promise<void>
}

export type WorkerOptions = { kill?: KillStep | null; clock?: WorkerSettings["clock"] }

export type Worker = {
  child: Bun.Subprocess
  /** The end of its log, for a failed run. */
  said(): string
}

export type Depths = {
  confirmation_depth: number
  finality_depth: number
  bump_after_blocks?: number
  block_time_seconds?: number
}

export const leaseMilliseconds = 600

/** A new chain with a factory in which the first `signerCount` accounts after the deployer's have roles. */
export async function openStage(depths: Depths, providers: number, signerCount = 2): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "faults-"))
  const anvil = await startAnvil()
  const contracts = await deployContracts(anvil, signerCount)
  const unstored: Hex[] = []
  let world: World | undefined
  const proxies = Array.from({ length: providers }, () =>
    startProxy(anvil.url, async (hash) => {
      const stored = await world?.context.db.read
        .select({ hash: transactionAttempts.hash })
        .from(transactionAttempts)
        .where(eq(transactionAttempts.hash, hash))
      if (stored?.length === 0) unstored.push(hash)
    }),
  )
  const chainsFile = (name: string, rpc_urls: string[]) => {
    const path = join(folder, name)
    const chain = {
      name: "fault test",
      rpc_urls,
      ...contracts,
      block_time_seconds: 0.15,
      max_fee_per_gas_gwei: 1_000,
      bump_after_blocks: 3,
      ...depths,
    }
    writeFileSync(path, JSON.stringify({ [foundry.id]: chain }))
    return path
  }
  const shared = {
    DATA_DIR: folder,
    SERVICE_SECRET: "not a secret: 0123456789 abcdefghij",
    SIGNER_KEYS: signerIndexes(signerCount).map(keyAt).join(","),
    AUTHORIZER_KEY: keyAt(3),
  }
  const environment: Record<string, string> = {
    ...shared,
    LOG_LEVEL: "debug",
    CHAINS: chainsFile(
      "chains.json",
      proxies.map(({ url }) => url),
    ),
  }
  world = await openWorld(
    loadConfig({ ...shared, LOG_LEVEL: "silent", CHAINS: chainsFile("direct.json", [anvil.url]) }),
    tell,
  )
  const workers: Worker[] = []
  const keyServices: FakeKeyService[] = []
  let isClosed = false
  return {
    folder,
    anvil,
    proxies,
    keyServices,
    world,
    environment,
    unstored,
    startWorker({ kill = null, clock = null } = {}) {
      const worker = spawnWorker({ environment, lease_milliseconds: leaseMilliseconds, kill, clock })
      workers.push(worker)
      return worker
    },
    moveKeyAway() {
      const service = startAwsKms(keyAt(2))
      keyServices.push(service)
      Object.assign(environment, {
        SIGNER_KEYS: [keyAt(1), "aws-kms:alias/issuing"].join(","),
        AWS_ENDPOINT_URL_KMS: service.url,
        AWS_ACCESS_KEY_ID: "somebody",
        AWS_SECRET_ACCESS_KEY: "not a secret",
        AWS_REGION: "eu-west-1",
      })
    },
    isClosed: () => isClosed,
    async close() {
      isClosed = true
      for (const { child } of workers) {
        if (child.exitCode === null) child.kill("SIGKILL")
        await child.exited
      }
      await world.close()
      for (const each of [...proxies, ...keyServices]) await each.stop()
      await anvil.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function spawnWorker(settings: WorkerSettings): Worker {
  const command = [process.execPath, join(import.meta.dir, "worker.ts"), JSON.stringify(settings)]
  const child = Bun.spawn(tiedToParent(command), {
    // The key services' SDKs read credentials and endpoints from the environment.
    env: { ...process.env, ...settings.environment },
    stdin: "ignore",
    stdout: "inherit",
    stderr: "pipe",
  })
  let said = ""
  const listen = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stderr) said = `${said}${decoder.decode(chunk)}`.slice(-6_000)
  }
  void listen()
  return { child, said: () => said }
}

export type Anvil = {
  url: string
  client: ReturnType<typeof createAnvilClient>
  /** For example SIGSTOP, after which it does not respond, and SIGCONT. */
  signal(name: NodeJS.Signals): void
  stop(): Promise<void>
}

function createAnvilClient(url: string, chain: Chain) {
  return createTestClient({ mode: "anvil", chain, transport: http(url, { retryCount: 0 }) })
    .extend(publicActions)
    .extend(walletActions)
}

/** A chain that mines blocks on request only. Retries, because a port that was free a moment ago may be taken. */
export async function startAnvil(chain: Chain = foundry): Promise<Anvil> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const anvil = await startAnvilOn(await freePort(), chain)
    if (anvil) return anvil
  }
  throw new Error("anvil found no free port")
}

/** Null if it exited at once, for example because the port is taken. */
async function startAnvilOn(port: number, chain: Chain): Promise<Anvil | null> {
  const url = `http://127.0.0.1:${port}`
  const place = ["--port", String(port), "--chain-id", String(chain.id)]
  const command = [anvilPath(), ...place, "--silent", "--no-mining", "--order", "fifo"]
  const child = Bun.spawn(tiedToParent(command), {
    stdio: ["ignore", "ignore", "inherit"],
  })
  const client = createAnvilClient(url, chain)
  for (let attempt = 0; attempt < 200; attempt++) {
    const answers = await client.getChainId().catch(() => null)
    if (child.exitCode !== null) return null
    if (answers)
      return {
        url,
        client,
        signal: (name) => child.kill(name),
        async stop() {
          child.kill("SIGKILL")
          await child.exited
        },
      }
    await Bun.sleep(25)
  }
  child.kill("SIGKILL")
  throw new Error(`anvil does not answer on port ${port}`)
}

/** The parent key of the accounts that anvil funds; deriving its mnemonic's seed is slow. */
const accountKeys = mnemonicToAccount("test test test test test test test test test test test junk", {
  path: "m/44'/60'/0'/0",
}).getHdKey()

export function accountAt(addressIndex: number): PrivateKeyAccount {
  return privateKeyToAccount(keyAt(addressIndex))
}

export function keyAt(addressIndex: number): Hex {
  const key = accountKeys.deriveChild(addressIndex).privateKey
  if (!key) throw new Error("the mnemonic gives no key")
  return toHex(key)
}

export const signers: [Address, Address] = [accountAt(1).address, accountAt(2).address]

/** Which of the accounts sign: those after the deployer's. */
function signerIndexes(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}

/** A factory and a desk for the first `signerCount` accounts after the deployer's, at the same addresses on each chain. */
export async function deployContracts(
  { client }: Anvil,
  signerCount: number,
): Promise<{ factory_address: Address; desk_address: Address }> {
  const account = accountAt(0)
  const { factory_address, desk_address, factory_data, desk_data } = planDeployment({
    deployer: account.address,
    guardian: null,
    authorizer: accountAt(3).address,
    signers: signerIndexes(signerCount).map((index) => accountAt(index).address),
    metadata_base_url: "",
  })
  for (const data of [factory_data, desk_data])
    await client.sendTransaction({ account, data, gas: 12_000_000n })
  await client.mine({ blocks: 3 })
  return { factory_address, desk_address }
}
