import { randomUUID } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import {
  BaseError,
  createPublicClient,
  createWalletClient,
  type Hex,
  HttpRequestError,
  http,
  parseEventLogs,
  publicActions,
} from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { collectionAbi } from "./chain/contracts.generated.ts"
import { dataDirOf, processEnvironment } from "./config.ts"
import type { DevService } from "./dev.ts"
import { complain, say } from "./run.ts"

const unitCount = 6
/** A service that is restarted meanwhile is waited for. */
const patienceMilliseconds = 120_000

/** The whole journey over HTTP: every status is polled, and the owner's own wallet sends the transfer. */
async function runDemo(service: Finder, progress: Progress): Promise<DemoResult> {
  const { wallets } = await service.find()
  const [owner, friend] = wallets
  if (!owner || !friend) throw new Error("dev.json names no wallets")

  const collection = await progress.step("collection deployed", async () => {
    const made = await service.post<Collection>("/v1/collections", { name: "Autumn Jackets" })
    return await service.poll<Collection>(
      `/v1/collections/${made.id}`,
      ({ contract }) => contract.status,
      "active",
    )
  })
  progress.note(`contract ${collection.contract.address} on chain ${collection.contract.chain_id}`)

  const units = await progress.step(`${unitCount} units created`, () =>
    Promise.all(
      Array.from({ length: unitCount }, (_, index) =>
        service.post<Unit>("/v1/units", { collection_id: collection.id, name: `Jacket ${index + 1}` }),
      ),
    ),
  )
  const paired = await progress.step("test chips paired in bulk", () =>
    service.post<{ chips: Chip[] }>("/v1/chips/bulk", {
      chips: units.map((unit) => ({ unit_id: unit.id, is_test: true })),
    }),
  )
  const issued = await progress.step("units issued on chain", () =>
    Promise.all(
      units.map((unit) =>
        service.poll<Unit>(`/v1/units/${unit.id}`, (now) => now.collection.token.status, "active"),
      ),
    ),
  )
  const serials = issued.map((unit) => unit.collection.token.serial)
  progress.note(`serials ${serials.join(", ")}`)

  const [unit, otherUnit] = units as [Unit, Unit]
  const [chip] = paired.chips as [Chip]
  const tapped = await progress.step("chip tapped and verified", () => tap(service, chip.chip_id))
  const session = tapped.session_token.token

  const claim = await progress.step("unit claimed through the relay", async () => {
    const path = `/v1/units/${unit.id}/claims`
    const made = await service.post<Claim>(path, { recipient: owner.address }, session)
    return await service.poll<Claim>(`${path}/${made.id}`, ({ status }) => status, "claimed")
  })
  progress.note(`transaction ${claim.transaction_hash}`)

  const transfer = await progress.step("unit transferred by its owner's wallet", async () => {
    const again = await tap(service, chip.chip_id)
    const path = `/v1/units/${unit.id}/transfers`
    const made = await service.post<Transfer>(path, { recipient: friend.address }, again.session_token.token)
    await sendFromWallet(service.find, owner.private_key as Hex, made.transaction)
    return await service.poll<Transfer>(`${path}/${made.id}`, ({ status }) => status, "confirmed")
  })
  progress.note(`transaction ${transfer.transaction_hash}`)

  const replacement = await progress.step("another unit's chip replaced", async () => {
    const path = `/v1/units/${otherUnit.id}/chip-replacements`
    const made = await service.post<Replacement>(path, { is_test: true })
    return await service.poll<Replacement>(`${path}/${made.id}`, ({ status }) => status, "confirmed")
  })
  progress.note(`transaction ${replacement.transaction_hash}`)

  const issuance = await progress.step("chain's own record read", async () =>
    readChain(await service.find(), collection.contract.address as Hex),
  )
  return {
    collection: { id: collection.id, ...collection.contract },
    units: issued.map(({ id }, index) => ({ id, serial: serials[index] ?? null })),
    transactions: {
      issuance: issuance.transaction_hashes,
      claim: claim.transaction_hash,
      transfer: transfer.transaction_hash,
      chip_replacement: replacement.transaction_hash,
    },
    issued_on_chain: issuance.serials,
    owner_on_chain: friend.address,
  }
}

export type DemoResult = {
  collection: { id: string; address: string; chain_id: number; status: string }
  units: { id: string; serial: number | null }[]
  transactions: { issuance: string[]; claim: string; transfer: string; chip_replacement: string }
  /** Serials as the chain's logs name them: each once. */
  issued_on_chain: number[]
  owner_on_chain: string
}

type Collection = { id: string; contract: { address: string; chain_id: number; status: string } }
type Unit = { id: string; collection: { token: { status: string; serial: number | null } } }
type Chip = { chip_id: string }
type Claim = { id: string; status: string; transaction_hash: string }
type Replacement = Claim
type Transfer = Claim & { transaction: { chain_id: number; from: Hex; to: Hex; data: Hex; value: Hex } }
type Tap = { session_token: { token: string } }

/** A chip without hardware emits a value, which is verified like that of any chip. */
async function tap(service: Finder, chipId: string): Promise<Tap> {
  const { chip_id, e } = await service.post<{ chip_id: string; e: string }>("/v1/test-helpers/taps", {
    chip_id: chipId,
  })
  return await service.post<Tap>("/v1/taps", { chip_id, e })
}

/** Sends until it is in a block: a chain that is killed forgets what waits, and the contract takes it only once. */
async function sendFromWallet(
  find: () => Promise<DevService>,
  privateKey: Hex,
  transaction: Transfer["transaction"],
): Promise<void> {
  const account = privateKeyToAccount(privateKey)
  const deadline = performance.now() + patienceMilliseconds
  for (let attempt = 1; performance.now() < deadline; attempt++) {
    const { chain } = await find()
    const wallet = createWalletClient({ account, chain: foundry, transport: http(chain.rpc_url) })
    try {
      const hash = await wallet.sendTransaction({ to: transaction.to, data: transaction.data, value: 0n })
      await wallet.extend(publicActions).waitForTransactionReceipt({ hash, pollingInterval: 200 })
      return
    } catch (error) {
      const isAway = error instanceof BaseError && error.walk((cause) => cause instanceof HttpRequestError)
      if (!isAway && attempt > 1) return
      if (!isAway) throw error
      await Bun.sleep(1_000)
    }
  }
  throw new Error("the chain does not answer")
}

async function readChain(service: DevService, address: Hex) {
  const client = createPublicClient({ chain: foundry, transport: http(service.chain.rpc_url) })
  const logs = await client.getLogs({ address, fromBlock: 0n })
  const transfers = parseEventLogs({ abi: collectionAbi, eventName: "Transfer", logs })
  const issuances = transfers.filter(({ args }) => BigInt(args.from) === 0n)
  return {
    serials: issuances.map(({ args }) => Number(args.tokenId)),
    transaction_hashes: [...new Set(issuances.map((log) => log.transactionHash))],
  }
}

type Finder = ReturnType<typeof createCaller>

/** Calls a service that may be killed and started again meanwhile: each create has an idempotency key. */
function createCaller(find: () => Promise<DevService>) {
  async function call<T>(method: string, path: string, body?: unknown, token?: string): Promise<T> {
    const key = randomUUID()
    const deadline = performance.now() + patienceMilliseconds
    for (;;) {
      const service = await find()
      const response = await fetch(`${service.base_url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token ?? service.api_key}`,
          "content-type": "application/json",
          ...(method === "POST" ? { "idempotency-key": key } : {}),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }).catch(() => null)
      if (response?.ok) return (await response.json()) as T
      const isOver = performance.now() > deadline
      if (response && (isOver || !response.headers.has("retry-after"))) throw await refusal(response, path)
      if (isOver) throw new Error(`${service.base_url} does not answer`)
      await Bun.sleep(Number(response?.headers.get("retry-after") ?? 1) * 1_000)
    }
  }

  return {
    find,
    post: <T>(path: string, body: unknown, token?: string) => call<T>("POST", path, body, token),
    async poll<T>(path: string, statusOf: (resource: T) => string, wanted: string): Promise<T> {
      const deadline = performance.now() + patienceMilliseconds
      while (performance.now() < deadline) {
        const resource = await call<T>("GET", path)
        const status = statusOf(resource)
        if (status === wanted) return resource
        if (["failed", "expired"].includes(status)) throw new Error(`${path} ended ${status}`)
        await Bun.sleep(500)
      }
      throw new Error(`${path} was not ${wanted} within ${patienceMilliseconds / 1_000} seconds`)
    },
  }
}

async function refusal(response: Response, path: string): Promise<Error> {
  const { error } = (await response.json()) as {
    error: { code: string; message: string; request_id: string }
  }
  return new Error(`${path} answered ${error.code}: ${error.message} (${error.request_id})`)
}

type Progress = ReturnType<typeof createProgress>

/** A line for each step, with its seconds while it runs on a terminal. */
function createProgress(isQuiet: boolean) {
  const since = performance.now()
  const seconds = (from: number) => `${((performance.now() - from) / 1_000).toFixed(1)} s`
  return {
    async step<T>(name: string, work: () => Promise<T>): Promise<T> {
      if (isQuiet) return await work()
      const begin = performance.now()
      const live = process.stdout.isTTY
        ? setInterval(() => process.stdout.write(`\r  … ${name} ${seconds(begin)}`), 100)
        : undefined
      const value = await work().finally(() => clearInterval(live))
      process.stdout.write(`${process.stdout.isTTY ? "\r\x1b[K" : ""}  ✓ ${name} (${seconds(begin)})\n`)
      return value
    },
    note(text: string): void {
      if (!isQuiet) say(`      ${text}`)
    },
    elapsed: () => seconds(since),
  }
}

/** The running service of a folder, or null when nobody answers. */
async function runningService(folder: string): Promise<DevService | null> {
  const path = join(folder, "dev.json")
  if (!existsSync(path)) return null
  const service = JSON.parse(readFileSync(path, "utf8")) as DevService
  const response = await fetch(`${service.base_url}/health`).catch(() => null)
  return response?.ok ? service : null
}

async function startOwnService(folder: string) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "dev.ts")], {
    env: { ...processEnvironment, DATA_DIR: folder, PORT: "0", DEV_CHAIN_PORT: "0", LOG_LEVEL: "error" },
    stdout: "ignore",
    stderr: "inherit",
  })
  const deadline = performance.now() + patienceMilliseconds
  while (child.exitCode === null && performance.now() < deadline) {
    if (await runningService(folder)) return child
    await Bun.sleep(200)
  }
  child.kill()
  throw new Error("the service for the demo did not start")
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } })
  const folder = dataDirOf(processEnvironment)
  const progress = createProgress(values.json)
  let own: Bun.Subprocess | undefined
  if (!(await runningService(folder)))
    own = await progress.step("service started for this demo", () => startOwnService(folder))
  try {
    const find = async () => JSON.parse(readFileSync(join(folder, "dev.json"), "utf8")) as DevService
    const result = await runDemo(createCaller(find), progress)
    say(values.json ? JSON.stringify(result, null, 2) : summary(result, progress.elapsed()))
  } finally {
    own?.kill("SIGINT")
    await own?.exited
  }
}

function summary({ collection, units, transactions, owner_on_chain }: DemoResult, elapsed: string): string {
  return `
The journey took ${elapsed}.

  collection         ${collection.address}
  serials            ${units.map(({ serial }) => serial).join(", ")}
  issuance           ${transactions.issuance.join(", ")}
  claim              ${transactions.claim}
  transfer           ${transactions.transfer}
  chip replacement   ${transactions.chip_replacement}
  owner now          ${owner_on_chain}`
}

try {
  await main()
} catch (error) {
  complain(`the demo stopped: ${(error as Error).message}`)
  process.exit(1)
}
