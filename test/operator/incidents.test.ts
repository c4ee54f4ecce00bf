import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { and, eq, isNotNull } from "drizzle-orm"
import { webhookDeliveries, webhookQueue } from "../../src/db/event-schema.ts"
import { effects, lanes, organizations, transactionAttempts, transactions } from "../../src/db/schema.ts"
import { sendEvent, settleEffect } from "../../src/engine/actors/runtime.ts"
import { createAskChain } from "../../src/operator/ask-chain.ts"
import { createHealth } from "../../src/operator/console/health.ts"
import { findStory } from "../../src/operator/verbs/explain.ts"
import { findStuck } from "../../src/operator/verbs/stuck.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines } from "../harness/engines.ts"
import { chainId } from "../harness/services.ts"
import { hook, type Ids, laneId, openScene, type Scene, type World } from "./incidents/scene.ts"

setDefaultTimeout(20_000)
const [sqlite] = engines
let scene: Scene
beforeAll(async () => {
  if (!sqlite) throw new Error("there is no engine")
  scene = await openScene(sqlite)
}, 30_000)
afterAll(() => scene.close())

type Incident = {
  /** Creates the incident: writes the rows that the service itself would write, or changes what the node returns. */
  happen(world: World): Promise<unknown>
  /** The resource that the operator asks about. */
  of: keyof Ids
  /** The words that name the cause. */
  cause: string
}

const signer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const factory = "0x5FbDB2315678afecb367f032d93F642f64180aa3"

/** Reasons that the service stores with a lane that is blocked. */
const stops: Incident[] = [
  ["paused", `${signer} lacks 0.2 ETH for its next transaction: send it at least that`],
  ["paused", `${signer} cannot pay the 0.3 ETH for nonce 7: send it more`],
  ["paused", `${signer} has 0.001 ETH, but its next transaction may cost 0.01 ETH`],
  [
    "halted",
    `the chain has 9 transactions of ${signer}, but the database knows of 7: if a backup was restored, run: operator restored`,
  ],
  ["halted", `the chain has 5 transactions of ${signer}, but 6 were final at a depth of 12 blocks`],
  ["halted", "chain 31337 replaced block 990, which was final at a depth of 12 blocks"],
  ["halted", `nonce 7 of ${signer} was used by transaction 0x07, which this service did not send`],
  ["halted", `nonce 7 of ${signer} was used by a transaction that no provider of chain 31337 has any more`],
].map(([status, cause = ""]) => ({
  of: "issuing",
  cause,
  happen: (world) => setLane(world, { status: status as "paused" | "halted", reason: cause }),
}))

/** Notices that the service stores with a lane that continues. */
const notices: Incident[] = [
  "not all providers of chain 31337 agree on block 990: nothing is confirmed until they do",
  "provider number 2 in rpc_urls of chain 31337 has not answered for an hour",
  `factory ${factory} does not let ${signer} do this, because its role is missing or paused`,
  "nonce 7 (issueUnit) could not be processed and is tried again: the key service does not answer",
  "nonce 7 is not mined even at the highest fee: raise max_fee_per_gas_gwei",
  `nonce 7 (issueUnit) was never signed, and the key of ${signer} is no longer in SIGNER_KEYS`,
  "nonce 7 (issueUnit) had succeeded, but has no effect after a reorganization",
].map((cause) => ({ of: "sending", cause, happen: (world) => setLane(world, { reason: cause }) }))

/** Errors that nodes return for a raw transaction. */
const words: Incident[] = [
  "replacement transaction underpriced",
  "insufficient funds for gas * price + value",
  "nonce too low: next nonce 9, tx nonce 7",
  "nonce too high",
  "max fee per gas less than block base fee",
  "txpool is full",
  "429 too many requests",
  "exceeds block gas limit",
  "intrinsic gas too low",
  "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
].map((cause) => ({
  of: "sending",
  cause,
  happen: (world) =>
    write(world, (tx) =>
      tx
        .update(transactionAttempts)
        .set({ last_error: cause })
        .where(eq(transactionAttempts.transaction_id, world.ids.transaction)),
    ),
}))

/** Results of a call that is simulated before it is sent, and of one that cannot be planned. */
const plans: Incident[] = (
  [
    ["issuing", "the call reverts with SerialGap"],
    ["issuing", "the call reverts with ChipInUse"],
    ["deploying", "the call reverts with 0x1a2b3c4d"],
    ["relayed", "the call reverts with NotIssued"],
    ["relayed", "the call reverts with AlreadyClaimed"],
    ["replacing", "the call reverts with ChipMismatch"],
    ["replacing", "the call reverts with ChipLocked"],
    ["issuing", "there is no collection 0192f000-0000-7000-8000-000000000001"],
  ] as const
).map(([of, cause]) => ({
  of,
  cause,
  happen: (world) =>
    write(world, (tx) =>
      tx
        .update(effects)
        .set({ last_error: cause, attempts: 2 })
        .where(and(eq(effects.actor_id, world.ids[of]), eq(effects.status, "open"))),
    ),
}))

const others: Incident[] = [
  {
    of: "issuing",
    cause:
      "no worker holds lane issuance: is one running, with its chain in CHAINS and its key in SIGNER_KEYS?",
    happen: (world) => setLane(world, { lease_owner: null, leased_until: null }),
  },
  {
    of: "relayed",
    cause:
      "no worker holds lane issuance: is one running, with its chain in CHAINS and its key in SIGNER_KEYS?",
    happen: (world) => setLane(world, { leased_until: new Date(0) }),
  },
  {
    of: "sending",
    cause: "is in block 999 and has too few confirmations yet; lane issuance is halted: somebody has to look",
    async happen(world) {
      await setLane(world, { status: "halted", reason: "somebody has to look" })
      await setTransaction(world, { status: "mined", block_number: 999 })
    },
  },
  {
    of: "issuing",
    cause: "unit.issuance_reverted: The chain rejected the issuance",
    happen: (world) =>
      fail(world, "issuing", { code: "unit.issuance_reverted", message: "The chain rejected the issuance" }),
  },
  {
    of: "deploying",
    cause: "collection.deployment_reverted: The chain rejected the deployment of the contract",
    happen: (world) =>
      fail(world, "deploying", {
        code: "collection.deployment_reverted",
        message: "The chain rejected the deployment of the contract",
      }),
  },
  {
    of: "sending",
    cause: "with nonce 7 is sent and not mined",
    happen: async (world) => world.setTime(6),
  },
  {
    of: "sending",
    cause: "nonce 7 is given up, and the empty transaction for it is not mined yet",
    async happen(world) {
      await setTransaction(world, { cancel_requested_at: world.context.clock() })
      world.setTime(6)
    },
  },
  {
    of: "replacing",
    cause: "it waits for its turn in lane:issuance",
    happen: async (world) => world.setTime(6),
  },
  {
    of: "offered",
    cause: "chain 31337 has not settled it",
    happen: async (world) => world.setTime(60),
  },
  {
    of: "offered",
    cause: "some of its logs are missing: add a provider that has all logs to rpc_urls in CHAINS",
    happen: (world) =>
      write(world, (tx) =>
        tx
          .update(effects)
          .set({
            last_error:
              "some of its logs are missing: add a provider that has all logs to rpc_urls in CHAINS",
          })
          .where(eq(effects.actor_id, world.ids.offered)),
      ),
  },
  {
    of: "session",
    cause: "is a worker running?",
    happen: async (world) => world.setTime(20),
  },
  {
    of: "endpoint",
    cause: "status 503",
    async happen(world) {
      await backlog(world, "status 503")
      const gave = { type: "GAVE_UP", last_error: "status 503" }
      await inTurn(world.context, null, (turn) => sendEvent(turn, world.ids.endpoint, gave))
    },
  },
  {
    of: "endpoint",
    cause: "connection refused",
    happen: (world) => backlog(world, "connection refused"),
  },
  {
    of: "endpoint",
    cause: "events",
    async happen(world) {
      await backlog(world, null)
      world.setTime(6)
    },
  },
  {
    of: "offered",
    cause: `AUTHORIZER_KEY is the key of ${signer}, but the authorizer of factory ${factory} of chain 31337 is another one`,
    async happen({ keyFaults }) {
      const text = `AUTHORIZER_KEY is the key of ${signer}, but the authorizer of factory ${factory} of chain 31337 is another one`
      keyFaults.push({ chain_id: chainId, variable: "AUTHORIZER_KEY", text })
    },
  },
  {
    of: "issuing",
    cause: "does not answer",
    happen: async ({ node }) => node.stop(),
  },
  {
    of: "sending",
    cause: "the daily quota of this project is used up",
    async happen({ node }) {
      node.refusal = { status: 429, text: "the daily quota of this project is used up" }
    },
  },
  {
    of: "relayed",
    cause: "has a provider that serves chain 1: correct rpc_urls in CHAINS",
    async happen({ node }) {
      node.chain_id = 1
    },
  },
  {
    of: "issuing",
    cause: "has no contract at factory_address 0x",
    async happen({ node }) {
      node.code = "0x"
    },
  },
  {
    of: "offered",
    cause: "has made no block for 900 seconds, since block 1000",
    async happen({ node }) {
      node.age = 900
    },
  },
]

const incidents = [...stops, ...notices, ...words, ...plans, ...others]

describe("without any incident", () => {
  test("the health strip reports no problem, nothing is stuck, and no story names a cause", async () => {
    const world = scene.open()
    expect((await signsOf(world)).filter(({ is_wrong }) => is_wrong)).toEqual([])
    expect(await findStuck(world.context.db.read, world.context.clock())).toEqual([])
    for (const { of, cause } of [...stops, ...notices, ...words, ...plans])
      expect(await waitsFor(world, of)).not.toContain(cause)
    await world.close()
  })
})

describe("the incidents of this test", () => {
  test("are more than fifty", () => expect(incidents.length).toBeGreaterThan(50))

  test.each(incidents.map((incident, index) => [index + 1, incident.of, incident.cause, incident] as const))(
    "%d, asked about %s: %s",
    async (_number, of, cause, { happen }) => {
      const world = scene.open()
      try {
        await happen(world)
        expect(await waitsFor(world, of)).toContain(cause)
        const signs = await signsOf(world)
        const loud = signs.filter(({ is_wrong }) => is_wrong).map(({ text }) => text)
        expect(loud.join("\n")).toContain(cause)
      } finally {
        await world.close()
      }
    },
  )

  test("do not include what an operator did on purpose: a suspended organization is no problem, but stories name it", async () => {
    const world = scene.open()
    const suspended_at = world.context.clock()
    await write(world, (tx) =>
      tx.update(organizations).set({ suspended_at }).where(isNotNull(organizations.id)),
    )
    expect(await waitsFor(world, "issuing")).toContain(
      "its organization has been suspended since 2026-03-31T23:59",
    )
    const said = (await signsOf(world)).find(({ text }) =>
      text.includes("organization Maker has been suspended"),
    )
    expect(said?.is_wrong).toBe(false)
    await world.close()
  })
})

async function waitsFor({ context, ids }: World, of: keyof Ids): Promise<string> {
  const story = await findStory(context, ids[of])
  if (Array.isArray(story)) throw new Error(`there are several of ${of}`)
  return story.waits_for
}

function signsOf({ context }: World) {
  return createHealth(context)()
}

type Tx = Parameters<Parameters<typeof inTurn>[2]>[0]["tx"]

async function write({ context }: World, work: (tx: Tx) => Promise<unknown>): Promise<void> {
  await inTurn(context, null, ({ tx }) => work(tx))
}

function setLane(world: World, change: Partial<typeof lanes.$inferInsert>): Promise<void> {
  return write(world, (tx) => tx.update(lanes).set(change).where(eq(lanes.id, laneId)))
}

function setTransaction(world: World, change: Partial<typeof transactions.$inferInsert>): Promise<void> {
  return write(world, (tx) =>
    tx.update(transactions).set(change).where(eq(transactions.id, world.ids.transaction)),
  )
}

async function fail({ context, ids }: World, of: keyof Ids, error: { code: string; message: string }) {
  const isOpen = and(eq(effects.actor_id, ids[of]), eq(effects.status, "open"))
  const [effect] = await context.db.read.select().from(effects).where(isOpen)
  await inTurn(context, null, (turn) => settleEffect(turn, String(effect?.id), { error }))
}

/** Queues three events for the endpoint; the first delivery failed with the given error, if any. */
async function backlog({ context, ids }: World, said: string | null): Promise<void> {
  const at = context.clock()
  const [endpoint_id, event_id] = [ids.endpoint, newId()]
  await inTurn(context, null, async ({ tx }) => {
    for (const position of [1, 2, 3])
      await tx.insert(webhookQueue).values({
        ...{ endpoint_id, event_id: newId(), line: newId(), position, attempts: said ? 1 : 0 },
        ...{ due_at: at, last_error: said, created_at: at },
      })
    if (said === null) return
    await tx.insert(webhookDeliveries).values({
      ...{ id: newId(), endpoint_id, event_id, attempt: 1, status: "failed", error: said },
      ...{ milliseconds: 5, created_at: at },
    })
  })
}

test("a chain's state is cached for two seconds, even if the clock was set back meanwhile", async () => {
  const world = scene.open()
  let passed = 0
  const askChain = createAskChain({ ...world.context, steadyClock: () => passed })
  expect(await askChain(chainId)).toBeNull()
  world.node.refusal = { status: 500, text: "out of order" }
  world.setTime(-60)
  passed += 1_999
  expect(await askChain(chainId)).toBeNull()
  passed += 1
  expect(await askChain(chainId)).toContain("out of order")
  await world.close()
})

test("a problem of a webhook endpoint is reported with the endpoint's URL", async () => {
  const world = scene.open()
  await backlog(world, "connection refused")
  const said = (await signsOf(world)).find(({ text }) => text.includes(hook))
  expect(said?.text).toBe(
    `webhook endpoint ${hook} is enabled, 3 events waiting since 2026-03-31T23:59:00Z: connection refused`,
  )
  expect(said?.address).toBe(`/console/actors/${scene.ids.endpoint}`)
  await world.close()
})
