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
import { createClient, dataOf, type Schemas, type ServiceClient } from "../clients/typescript/client.ts"
import { collectionAbi } from "./chain/contracts.generated.ts"
import { dataDirOf, processEnvironment } from "./config.ts"
import type { DevService } from "./dev.ts"
import { complain, say } from "./run.ts"

const unitCount = 6
/** A service that is restarted meanwhile is waited for. */
const patienceMilliseconds = 120_000

/** The whole journey over HTTP: every status is polled, and the owner's own wallet sends the transfer. */
async function runDemo(find: FindService, progress: Progress): Promise<DemoResult> {
  const api = connect(find)
  const [owner, friend] = (await find()).wallets
  if (!owner || !friend) throw new Error("dev.json names no wallets")

  const collection = await progress.step("collection deployed", async () => {
    const { id } = await dataOf(api.POST("/v1/collections", { body: { name: "Autumn Jackets" } }))
    return await poll(
      () => dataOf(api.GET("/v1/collections/{collection_id}", { params: { path: { collection_id: id } } })),
      ({ contract }) => contract.status,
      "active",
    )
  })
  progress.note(`contract ${collection.contract.address} on chain ${collection.contract.chain_id}`)

  const units = await progress.step(`${unitCount} units created`, () =>
    Promise.all(
      Array.from({ length: unitCount }, (_, index) =>
        dataOf(
          api.POST("/v1/units", { body: { collection_id: collection.id, name: `Jacket ${index + 1}` } }),
        ),
      ),
    ),
  )
  const paired = await progress.step("test chips paired in bulk", () => {
    const chips = units.map((unit) => ({ unit_id: unit.id, is_test: true as const }))
    return dataOf(api.POST("/v1/chips/bulk", { body: { chips } }))
  })
  const issued = await progress.step("units issued on chain", () =>
    Promise.all(
      units.map(({ id }) =>
        poll(
          () => dataOf(api.GET("/v1/units/{unit_id}", { params: { path: { unit_id: id } } })),
          ({ collection }) => collection?.token.status ?? "pending",
          "active",
        ),
      ),
    ),
  )
  const serials = issued.map((unit) => unit.collection?.token.serial ?? null)
  progress.note(`serials ${serials.join(", ")}`)

  const [unit, otherUnit] = units
  const [chip] = paired.chips
  if (!unit || !otherUnit || !chip)
    throw new Error("the service answered fewer units or chips than were sent")
  const path = { unit_id: unit.id }
  const session = await progress.step("chip tapped and verified", () => tap(api, chip.chip_id))

  const claim = await progress.step("unit claimed through the relay", async () => {
    const body = { recipient: owner.address }
    const { id } = await dataOf(
      connect(find, session).POST("/v1/units/{unit_id}/claims", { params: { path }, body }),
    )
    const params = { path: { ...path, claim_id: id } }
    return await poll(
      () => dataOf(api.GET("/v1/units/{unit_id}/claims/{claim_id}", { params })),
      ({ status }) => status,
      "claimed",
    )
  })
  progress.note(`transaction ${claim.transaction_hash}`)

  const transfer = await progress.step("unit transferred by its owner's wallet", async () => {
    const again = connect(find, await tap(api, chip.chip_id))
    const body = { recipient: friend.address }
    const { id, transaction } = await dataOf(
      again.POST("/v1/units/{unit_id}/transfers", { params: { path }, body }),
    )
    await sendFromWallet(find, owner.private_key as Hex, transaction)
    const params = { path: { ...path, transfer_id: id } }
    return await poll(
      () => dataOf(api.GET("/v1/units/{unit_id}/transfers/{transfer_id}", { params })),
      ({ status }) => status,
      "confirmed",
    )
  })
  progress.note(`transaction ${transfer.transaction_hash}`)

  const replacement = await progress.step("another unit's chip replaced", async () => {
    const other = { unit_id: otherUnit.id }
    const { id } = await dataOf(
      api.POST("/v1/units/{unit_id}/chip-replacements", { params: { path: other }, body: { is_test: true } }),
    )
    const params = { path: { ...other, replacement_id: id } }
    return await poll(
      () => dataOf(api.GET("/v1/units/{unit_id}/chip-replacements/{replacement_id}", { params })),
      ({ status }) => status,
      "confirmed",
    )
  })
  progress.note(`transaction ${replacement.transaction_hash}`)

  const issuance = await progress.step("chain's own record read", async () =>
    readChain(await find(), collection.contract.address as Hex),
  )
  return {
    collection: { id: collection.id, ...collection.contract },
    units: issued.map(({ id }, index) => ({ id, serial: serials[index] ?? null })),
    transactions: {
      issuance: issuance.transaction_hashes,
      claim: claim.transaction_hash ?? "",
      transfer: transfer.transaction_hash ?? "",
      chip_replacement: replacement.transaction_hash ?? "",
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

/** Where the service is now: a restart may have moved it. */
type FindService = () => Promise<DevService>

/** A client that waits for a service that is being restarted; with an API key unless a session token is given. */
function connect(find: FindService, sessionToken?: string): ServiceClient {
  return createClient({
    base_url: async () => (await find()).base_url,
    token: async () => sessionToken ?? (await find()).api_key,
    patience_milliseconds: patienceMilliseconds,
  })
}

/** A chip without hardware emits a value, which is verified like that of any chip. Answers a session token. */
async function tap(api: ServiceClient, chipId: string): Promise<string> {
  const { chip_id, e } = await dataOf(api.POST("/v1/test-helpers/taps", { body: { chip_id: chipId } }))
  const { session_token } = await dataOf(api.POST("/v1/taps", { body: { chip_id, e } }))
  if (!session_token) throw new Error("the tap was answered without a session token")
  return session_token.token
}

async function poll<T>(
  read: () => Promise<T>,
  statusOf: (resource: T) => string,
  wanted: string,
): Promise<T> {
  const deadline = performance.now() + patienceMilliseconds
  while (performance.now() < deadline) {
    const resource = await read()
    const status = statusOf(resource)
    if (status === wanted) return resource
    if (["failed", "expired"].includes(status)) throw new Error(`what should become ${wanted} is ${status}`)
    await Bun.sleep(500)
  }
  throw new Error(`nothing was ${wanted} within ${patienceMilliseconds / 1_000} seconds`)
}

/** Sends until it is in a block: a chain that is killed forgets what waits, and the contract takes it only once. */
async function sendFromWallet(
  find: FindService,
  privateKey: Hex,
  transaction: Schemas["Transaction"],
): Promise<void> {
  const account = privateKeyToAccount(privateKey)
  const deadline = performance.now() + patienceMilliseconds
  for (let attempt = 1; performance.now() < deadline; attempt++) {
    const { chain } = await find()
    const wallet = createWalletClient({ account, chain: foundry, transport: http(chain.rpc_url) })
    try {
      const hash = await wallet.sendTransaction({
        to: transaction.to as Hex,
        data: transaction.data as Hex,
        value: 0n,
      })
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
    env: {
      ...processEnvironment,
      DATA_DIR: folder,
      PORT: "0",
      OPERATOR_PORT: "0",
      DEV_CHAIN_PORT: "0",
      LOG_LEVEL: "error",
    },
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
    const result = await runDemo(find, progress)
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
