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
import { createClient, dataOf, type Schemas, type ServiceClient } from "../../clients/typescript/client.ts"
import {
  waitForChipReplacement,
  waitForClaim,
  waitForCollection,
  waitForTransfer,
  waitForUnit,
} from "../../clients/typescript/wait-for.ts"
import { collectionAbi } from "../engine/chain/contracts.generated.ts"
import { localChain } from "./local-chain.ts"
import type { DevService } from "./start.ts"

const unitCount = 6
/** Long enough to wait for a service that is being restarted. */
const patienceMilliseconds = 120_000
const patience = { patience_milliseconds: patienceMilliseconds }

/** The whole journey over HTTP: every status is polled, and the owner's own wallet sends the transfer. */
export async function runJourney(find: FindService, progress: Progress): Promise<Journey> {
  const api = connect(find)
  const over = new AbortController()
  const told = noteEvents(api, progress, over.signal).catch(() => {})
  try {
    return await travel({ api, find, progress })
  } finally {
    over.abort()
    await told
  }
}

/** Notes the events of the feed as they come. */
async function noteEvents(api: ServiceClient, progress: Progress, signal: AbortSignal): Promise<void> {
  for await (const { type, unit_id } of api.events.stream({}, { signal }))
    progress.note(`· event ${type}${unit_id ? ` of unit ${unit_id}` : ""}`)
}

type Trip = { api: ServiceClient; find: FindService; progress: Progress }

async function travel(trip: Trip): Promise<Journey> {
  const { api, find, progress } = trip
  const [owner, friend] = (await find()).wallets
  if (!owner || !friend) throw new Error("dev.json names no wallets")

  const { collection, units, chips } = await issueUnits(trip)
  const serials = units.map((unit) => unit.collection?.token.serial ?? null)
  progress.note(`serials ${serials.join(", ")}`)

  const [unit, otherUnit] = units
  const [chip] = chips
  if (!unit || !otherUnit || !chip)
    throw new Error("the service returned fewer units or chips than were sent")
  const path = { unit_id: unit.id }
  const session = await progress.step("chip tapped and verified", () => tap(api, chip.chip_id))

  const claim = await progress.step("unit claimed through the relay", async () => {
    const body = { recipient: owner.address }
    const opened = await dataOf(
      connect(find, session).POST("/v1/units/{unit_id}/claims", { params: { path }, body }),
    )
    return await waitForClaim(api, opened, patience)
  })
  progress.note(`transaction ${claim.transaction_hash}`)

  const transfer = await progress.step("unit transferred by its owner's wallet", async () => {
    const again = connect(find, await tap(api, chip.chip_id))
    const body = { recipient: friend.address }
    const opened = await dataOf(again.POST("/v1/units/{unit_id}/transfers", { params: { path }, body }))
    await sendFromWallet(find, owner.private_key as Hex, opened.transaction)
    return await waitForTransfer(api, opened, patience)
  })
  progress.note(`transaction ${transfer.transaction_hash}`)

  const { ownership } = await dataOf(api.GET("/v1/units/{unit_id}", { params: { path } }))
  progress.note(`owner ${ownership.owner}, as the chain says`)

  const replacement = await replaceChip(trip, otherUnit.id)
  const issuance = await progress.step("chain's own record read", async () =>
    readChain(await find(), collection.contract.address as Hex),
  )
  return {
    collection: { id: collection.id, ...collection.contract },
    units: units.map(({ id }, index) => ({ id, serial: serials[index] ?? null })),
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

/** A new collection with units that are issued, each with a test chip. */
async function issueUnits({ api, progress }: Trip) {
  const collection = await progress.step("collection deployed", async () => {
    const { id } = await dataOf(api.POST("/v1/collections", { body: { name: "Autumn Jackets" } }))
    return await waitForCollection(api, id, patience)
  })
  progress.note(`contract ${collection.contract.address} on chain ${collection.contract.chain_id}`)

  const created = await progress.step(`${unitCount} units created`, () =>
    Promise.all(
      Array.from({ length: unitCount }, (_, index) =>
        dataOf(
          api.POST("/v1/units", { body: { collection_id: collection.id, name: `Jacket ${index + 1}` } }),
        ),
      ),
    ),
  )
  const { chips } = await progress.step("test chips paired in bulk", () => {
    const wanted = created.map((unit) => ({ unit_id: unit.id, is_test: true as const }))
    return dataOf(api.POST("/v1/chips/bulk", { body: { chips: wanted } }))
  })
  const units = await progress.step("units issued on chain", () =>
    Promise.all(created.map(({ id }) => waitForUnit(api, id, patience))),
  )
  return { collection, units, chips }
}

async function replaceChip({ api, progress }: Trip, unit_id: string) {
  const replacement = await progress.step("another unit's chip replaced", async () => {
    const opened = await dataOf(
      api.POST("/v1/units/{unit_id}/chip-replacements", {
        params: { path: { unit_id } },
        body: { is_test: true },
      }),
    )
    return await waitForChipReplacement(api, opened, patience)
  })
  progress.note(`transaction ${replacement.transaction_hash}`)
  return replacement
}

/** Receives the progress. */
type Progress = {
  step<T>(name: string, work: () => Promise<T>): Promise<T>
  note(text: string): void
}

/** The result, as `demo --json` prints it. */
export type Journey = {
  collection: { id: string; address: string; chain_id: number; status: string }
  units: { id: string; serial: number | null }[]
  transactions: { issuance: string[]; claim: string; transfer: string; chip_replacement: string }
  /** Serials as the chain's logs name them. */
  issued_on_chain: number[]
  owner_on_chain: string
}

/** Finds the service, which a restart may have moved. */
type FindService = () => Promise<DevService>

/** A client that waits for a restarting service; it uses the API key unless a session token is given. */
function connect(find: FindService, sessionToken?: string): ServiceClient {
  return createClient({
    base_url: async () => (await find()).base_url,
    token: async () => sessionToken ?? (await find()).api_key,
    patience_milliseconds: patienceMilliseconds,
  })
}

/** Taps a test chip; its value is verified like that of any chip. Returns the session token. */
async function tap(api: ServiceClient, chipId: string): Promise<string> {
  const { chip_id, e } = await dataOf(api.POST("/v1/test-helpers/taps", { body: { chip_id: chipId } }))
  const { session_token } = await dataOf(api.POST("/v1/taps", { body: { chip_id, e } }))
  if (!session_token) throw new Error("the response to the tap has no session token")
  return session_token.token
}

/** Sends until it is in a block: a killed chain forgets what waits, and the contract accepts it only once. */
async function sendFromWallet(
  find: FindService,
  privateKey: Hex,
  transaction: Schemas["Transaction"],
): Promise<void> {
  const account = privateKeyToAccount(privateKey)
  const deadline = performance.now() + patienceMilliseconds
  for (let attempt = 1; performance.now() < deadline; attempt++) {
    const { chain } = await find()
    const wallet = createWalletClient({ account, chain: localChain, transport: http(chain.rpc_url) })
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
  const client = createPublicClient({ chain: localChain, transport: http(service.chain.rpc_url) })
  const logs = await client.getLogs({ address, fromBlock: 0n })
  const transfers = parseEventLogs({ abi: collectionAbi, eventName: "Transfer", logs })
  const issuances = transfers.filter(({ args }) => BigInt(args.from) === 0n)
  return {
    serials: issuances.map(({ args }) => Number(args.tokenId)),
    transaction_hashes: [...new Set(issuances.map((log) => log.transactionHash))],
  }
}
