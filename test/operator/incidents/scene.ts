import { Database } from "bun:sqlite"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { and, eq } from "drizzle-orm"
import { chainCursors } from "../../../src/db/chain-schema.ts"
import { openDatabase } from "../../../src/db/open.ts"
import { effects, lanes, transactionAttempts, transactions } from "../../../src/db/schema.ts"
import { startActor } from "../../../src/engine/actors/runtime.ts"
import type { Context, KeyFault } from "../../../src/platform/context.ts"
import { newId } from "../../../src/platform/ids.ts"
import { createCollection } from "../../../src/resources/collections/service.ts"
import { createWebhookEndpoint } from "../../../src/resources/webhook-endpoints/service.ts"
import { chainSettings } from "../../harness/chain-settings.ts"
import type { Engine } from "../../harness/engines.ts"
import {
  alice,
  claim,
  contextWithChain,
  issuedUnit,
  type OwnershipService,
  replaceChip,
  sessionOf,
} from "../../harness/ownership.ts"
import {
  activeCollection,
  chainId,
  createCaller,
  newUnit,
  openService,
  pair,
} from "../../harness/services.ts"

/** Everything that an organization can have in progress at once, without a problem. */
export type Scene = {
  /** Opens a separate copy of the scene for one incident. */
  open(): World
  ids: Ids
  close(): Promise<void>
}

/** The resources, by what each of them waits for. */
export type Ids = Record<
  | "organization"
  | "deploying"
  | "issuing"
  | "sending"
  | "relayed"
  | "offered"
  | "replacing"
  | "endpoint"
  | "session"
  | "transaction",
  string
>

export type World = {
  context: Context
  /** The node that the chain is read from; incidents change its responses. */
  node: Node
  keyFaults: KeyFault[]
  setTime(minutesLater: number): void
  ids: Ids
  close(): Promise<void>
}

export const laneId = "issuance"

export async function openScene(engine: Engine): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), "incidents-"))
  const opened = await openService(engine)
  const caller = await createCaller(opened, { name: "Maker" })
  const service: OwnershipService = {
    ...opened,
    caller,
    says: { owner: null, isReachable: true },
    context: contextWithChain(opened, { owner: null, isReachable: true }),
    read: () => opened.context.db.read,
  }
  const now = opened.context.clock()
  const ids = await fill(service, now)
  const template = join(folder, "template.db")
  const file = new Database(opened.database_url.replace("sqlite:", ""), { readonly: true })
  file.query("vacuum into ?").run(template)
  file.close()
  await opened.close()
  let copies = 0
  return {
    ids,
    open() {
      const path = join(folder, `${++copies}.db`)
      copyFileSync(template, path)
      return openWorldOver(service.context, ids, path, now)
    },
    close: async () => rmSync(folder, { recursive: true }),
  }
}

async function fill(service: OwnershipService, now: Date): Promise<Ids> {
  const { caller, context } = service
  const collection = await activeCollection(service, caller)
  const issued = async () => {
    const { unit, session } = await issuedUnit(service)
    return { unit_id: unit.id, session: sessionOf(caller, String(session.session?.chip_id), unit.id) }
  }
  const paired = async () => {
    const unit = await newUnit(service, caller, collection)
    await pair(service, caller, { unit_id: unit.id, is_test: true })
    return unit.id
  }
  const deploying = await service.turn((turn) =>
    createCollection(turn, context.chains, caller, { name: "Winter" }),
  )
  const [sending, issuing] = [await paired(), await paired()]
  const [first, second, third] = [await issued(), await issued(), await issued()]
  const relayed = await claim(service, first.session, first.unit_id, { recipient: alice })
  const offered = await claim(service, second.session, second.unit_id, {
    ...{ recipient: alice, execution: "client_broadcast" },
  })
  const replacing = await replaceChip(service, third.unit_id, { is_test: true })
  const { endpoint } = await service.turn((turn) =>
    createWebhookEndpoint(turn, service.secret, caller, { body: { url: hook }, url: hook }),
  )
  const session = newId()
  await service.turn((turn) =>
    startActor(turn, {
      ...{ id: session, machine: "session-token", organization_id: caller.organization_id },
      input: { ttl_seconds: 600 },
    }),
  )
  const transaction = await sendTransaction(service, sending)
  await service.turn(async ({ tx }) => {
    const leased_until = new Date(now.getTime() + 24 * 3_600_000)
    await tx.update(lanes).set({ lease_owner: "a worker", leased_until }).where(eq(lanes.id, laneId))
    await tx.insert(chainCursors).values({
      ...{ chain_id: chainId, block_number: headNumber - 1, block_hash: "0x01", updated_at: now },
    })
  })
  return {
    ...{ organization: caller.organization_id, issuing, sending, transaction, session },
    ...{ deploying: deploying.id, relayed: relayed.id, offered: offered.id, replacing: replacing.id },
    endpoint: endpoint.id,
  }
}

export const hook = "https://hooks.maker.example/in"
const headNumber = 1_000

/** The first transaction of a unit's issuance, which is in the pool. */
async function sendTransaction(service: OwnershipService, actorId: string): Promise<string> {
  const id = newId()
  const fees = { max_fee_per_gas: "1", max_priority_fee_per_gas: "1" }
  await service.turn(async ({ tx, at }) => {
    await tx.insert(transactions).values({
      ...{ id, lane_id: laneId, chain_id: chainId, kind: "issueUnit", nonce: 7, to: "0x01", call: "0x" },
      ...{ gas: 100_000, ...fees, status: "sent", hash: sentHash, created_at: at, updated_at: at },
    })
    await tx.insert(transactionAttempts).values({
      ...{ hash: sentHash, transaction_id: id, kind: "first", raw: "0xsecret", ...fees, send_count: 1 },
      created_at: at,
    })
    const isOpen = and(eq(effects.actor_id, actorId), eq(effects.status, "open"))
    await tx.update(effects).set({ transaction_id: id, attempts: 1 }).where(isOpen)
  })
  return id
}

const sentHash = `0x${"ab".repeat(32)}`

function openWorldOver(base: Context, ids: Ids, path: string, begin: Date): World {
  const db = openDatabase(`sqlite:${path}`)
  let now = begin
  const clock = () => now
  const node = openNode(clock)
  const keyFaults: KeyFault[] = []
  const config = { ...base.config, chains: [{ ...chainSettings, rpc_urls: [node.url] }] }
  return {
    context: { ...base, config, db, clock, keyFaults: () => keyFaults },
    ...{ node, keyFaults, ids },
    setTime(minutesLater) {
      now = new Date(begin.getTime() + minutesLater * 60_000)
    },
    async close() {
      node.stop()
      await db.close()
    },
  }
}

/** A node that supports what the operator pages request. */
export type Node = {
  url: string
  chain_id: number
  /** Age of its newest block in seconds. */
  age: number
  /** The code of every contract. */
  code: string
  /** Response to every request, if set. */
  refusal: { status: number; text: string } | null
  stop(): void
}

function openNode(clock: () => Date): Node {
  const state = { chain_id: chainId, age: 1, code: "0x60", refusal: null as Node["refusal"] }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (state.refusal) return new Response(state.refusal.text, { status: state.refusal.status })
      const { id, method } = (await request.json()) as { id: number; method: string }
      const seconds = Math.floor(clock().getTime() / 1_000) - state.age
      const answers: Record<string, unknown> = {
        eth_chainId: hex(state.chain_id),
        eth_blockNumber: hex(headNumber),
        eth_getBlockByNumber: { number: hex(headNumber), timestamp: hex(seconds), transactions: [] },
        eth_getTransactionCount: hex(8),
        eth_getBalance: hex(10n ** 18n),
        eth_getCode: state.code,
      }
      return Response.json({ jsonrpc: "2.0", id, result: answers[method] })
    },
  })
  return Object.assign(state, { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) })
}

function hex(number: number | bigint): string {
  return `0x${number.toString(16)}`
}
