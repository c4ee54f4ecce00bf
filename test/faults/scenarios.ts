import { and, eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { requestCancel } from "../../src/chain/transactions.ts"
import { inTurn, type World } from "../../src/context.ts"
import { chipReplacements, lanes, transactionAttempts, transactions, units } from "../../src/db/schema.ts"
import { judge, type Verdict } from "./judge.ts"
import { type Events, type Play, play, retryLane } from "./play.ts"
import type { Faults } from "./proxy.ts"
import { accountAt, type Depths, openStage, type Stage, signers, type Worker } from "./stage.ts"
import type { KillStep, WorkerSettings } from "./worker.ts"

/** One way in which things go wrong. */
export type Scenario = {
  name: string
  /** Where each worker kills itself once; another one follows it. */
  kill?: KillStep
  faults?: Partial<Faults>
  /** How many RPC providers there are; faults are those of the first. */
  providers?: number
  workers?: number
  clock?: WorkerSettings["clock"]
  depths?: Depths
  /** Whether prices rise when the first unit is issued, so that fees have to be raised. */
  spike?: boolean
  events?: () => Happenings
  /** What must have happened, or the run proved nothing. */
  must?: string[]
}

/** `foreign`: transactions that the test itself sent with a signer's key. */
type Happenings = Events & { foreign?: Hex[] }

export type Outcome = Verdict & { name: string; seconds: number }

const usualDepths: Depths = { confirmation_depth: 2, finality_depth: 6 }
const patienceMilliseconds = 60_000

/** Plays one scenario from its own empty chain and database to its end, and judges it. */
export async function run(scenario: Scenario): Promise<Outcome> {
  const begin = performance.now()
  const stage = await openStage(scenario.depths ?? usualDepths, scenario.providers ?? 1)
  const workers: Worker[] = []
  try {
    Object.assign(stage.proxies[0]?.faults ?? {}, scenario.faults)
    const { kill = null, clock = null } = scenario
    for (let index = 0; index < (scenario.workers ?? 1); index++)
      workers.push(stage.startWorker({ kill, clock }))
    if (kill) for (const worker of [...workers]) void replaceWhenDead(stage, workers, worker)
    const events = scenario.events?.() ?? {}
    const spike = scenario.spike ? holdPricesUp() : null
    for (const { faults } of stage.proxies) faults.has_steady_tip = scenario.spike === true
    const all = bothOf(spike ? { beforeBlock: spike } : {}, events)
    const must = scenario.must ?? []
    const { play: current, ...played } = await play(stage, workers, all, must, patienceMilliseconds)
    if (kill && !workers.some(({ child }) => child.signalCode === "SIGKILL"))
      throw new Error("the worker never came to the step where it should have died")
    if (scenario.faults && stage.proxies[0]?.struck === 0) throw new Error("the fault never struck")
    const verdict = await judge(stage, played, events.foreign)
    return { name: scenario.name, seconds: secondsSince(begin), ...verdict }
  } catch (error) {
    const said = workers.map((worker) => worker.said()).join("\n…\n")
    const faults = [`${(error as Error).message}\n${await laneRows(stage.world)}\n${said}`]
    return { name: scenario.name, seconds: secondsSince(begin), faults, duplicates: 0, missing: 1 }
  } finally {
    await stage.close()
  }
}

function secondsSince(begin: number): number {
  return Math.round((performance.now() - begin) / 100) / 10
}

async function laneRows({ context }: World): Promise<string> {
  const rows = await context.db.read.select().from(lanes)
  return rows.map(({ id, status, reason }) => `${id} ${status} ${reason ?? ""}`).join("\n")
}

async function replaceWhenDead(stage: Stage, workers: Worker[], worker: Worker): Promise<void> {
  await worker.child.exited
  if (worker.child.signalCode === "SIGKILL" && !stage.isClosed()) workers.push(stage.startWorker())
}

/** From the first issuance on, blocks cost more than what was offered for it. */
function holdPricesUp() {
  return async ({ stage, played, happened }: Play) => {
    const isSent = stage.proxies.some(({ sent }) =>
      sent.some(({ to }) => to?.toLowerCase() === played.collection?.address.toLowerCase()),
    )
    if (!isSent) return
    happened.add("prices rose")
    await stage.anvil.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 20_000_000_000n })
  }
}

/** Once, when the condition holds. */
function once(name: string, isTime: (play: Play) => Promise<boolean>, act: (play: Play) => Promise<void>) {
  return (): Events => ({
    async beforeBlock(current) {
      if (current.happened.has(name) || !(await isTime(current))) return
      current.happened.add(name)
      await act(current)
    },
  })
}

async function isIssued({ stage }: Play): Promise<boolean> {
  const rows = await stage.world.context.db.read.select().from(units).where(eq(units.token_status, "active"))
  return rows.length > 0
}

async function isIssuedOnChain({ stage, played }: Play): Promise<boolean> {
  if (!played.paired) return false
  const address = played.collection?.address as Hex
  return (await stage.anvil.client.getLogs({ address, fromBlock: 0n })).length > 0
}

async function isReplaced({ stage }: Play): Promise<boolean> {
  const rows = await stage.world.context.db.read
    .select()
    .from(chipReplacements)
    .where(eq(chipReplacements.status, "confirmed"))
  return rows.length > 0
}

/** The last blocks are replaced by empty ones, the first of which has the `instead`. */
function reorganize(depth: number, instead: string[] = []) {
  return async ({ stage }: Play) => {
    const request = stage.anvil.client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [depth, instead.map((raw) => [raw, 0])] })
  }
}

/** Reopens lanes as a person would, once each has said why it stopped. */
function reopening(events: () => Happenings) {
  return () => {
    const inner = events()
    let isBusy = false
    return {
      ...inner,
      async beforeBlock(current: Play) {
        await inner.beforeBlock?.(current)
        if (isBusy) return
        const { read } = current.stage.world.context.db
        const halted = await read.select().from(lanes).where(eq(lanes.status, "halted"))
        if (halted.length === 0) return
        isBusy = true
        void Promise.all(halted.map(({ id }) => retryLane(current.stage, id))).finally(() => {
          isBusy = false
        })
        current.happened.add("a lane halted")
      },
    }
  }
}

/** The signer's key is used by somebody else; `instead` of ours, which is kept from the pool until then. */
function stolenNonce(instead: boolean) {
  return () => {
    const foreign: Hex[] = []
    return {
      foreign,
      async beforeBlock({ stage, played, happened }: Play) {
        const [proxy] = stage.proxies
        if (!played.paired || !proxy || happened.has("a nonce was used by somebody else")) return
        const { client } = stage.anvil
        const last = foreign.at(-1)
        if (last && (await client.getTransactionReceipt({ hash: last }).catch(() => null))) {
          happened.add("a nonce was used by somebody else")
          if (instead) proxy.faults.refuse_every = 0
          return
        }
        if (instead) {
          proxy.faults.refuse_every = 1
          if (!(await hasAllocated(stage, signers[1]))) return
        }
        // The pool forgets it together with those before it when prices rise.
        if (last && (await client.getTransaction({ hash: last }).catch(() => null))) return
        foreign.push(await useKey(stage, signers[1]))
      },
    }
  }
}

async function hasAllocated({ world, anvil }: Stage, address: Address): Promise<boolean> {
  const [lane] = await world.context.db.read
    .select()
    .from(lanes)
    .where(and(eq(lanes.address, address), eq(lanes.status, "open")))
  return (lane?.next_nonce ?? 0) > (await anvil.client.getTransactionCount({ address }))
}

/** Dear enough to be in the next block, whatever prices do. */
async function useKey({ anvil: { client } }: Stage, address: Address): Promise<Hex> {
  const nonce = await client.getTransactionCount({ address, blockTag: "pending" })
  const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n }
  return await client.sendTransaction({ account: accountAt(2), nonce, to: address, gas: 21_000n, ...fees })
}

/** Once prices have risen, a person gives up nonces of issuances that are out, until a cancel is mined. */
function givingUp(): Events {
  return {
    async beforeBlock({ stage, happened }) {
      if (!happened.has("prices rose") || happened.has("a cancel was mined")) return
      const { context } = stage.world
      const { read } = context.db
      const rows = await read.select().from(transactions).where(eq(transactions.kind, "issueUnit"))
      const cancels = await read
        .select()
        .from(transactionAttempts)
        .where(eq(transactionAttempts.is_cancel, true))
      if (cancels.some(({ hash }) => rows.some((row) => row.hash === hash)))
        happened.add("a cancel was mined")
      const open = rows.filter(({ status }) => status === "signed" || status === "sent")
      const [first] = open.sort((one, other) => one.nonce - other.nonce)
      if (first && open.every(({ cancel_requested_at }) => cancel_requested_at === null))
        await inTurn(context, null, (turn) => requestCancel(turn, first.id))
    },
  }
}

/** A person gives up the nonce of a claim that is mined all the same, and whose block is replaced later. */
function givingUpTooLate(): Events {
  let claimed: string | undefined
  return {
    async beforeBlock(current) {
      const { context } = current.stage.world
      const rows = await context.db.read
        .select()
        .from(transactions)
        .where(eq(transactions.kind, "relayClaim"))
      if (claimed === undefined) {
        const open = rows.find(({ status }) => status === "signed" || status === "sent")
        if (!open || !(await inTurn(context, null, (turn) => requestCancel(turn, open.id)))) return
        claimed = open.id
      }
      if (current.happened.has("reorganized")) return
      if (!rows.some(({ id, status }) => id === claimed && ["confirmed", "reverted"].includes(status))) return
      current.happened.add("reorganized")
      await reorganize(5)(current)
    },
  }
}

/** Nonces are given up; later a reorganization brings back the first of those transactions instead of its cancel. */
function givenUpComesBack(): Events {
  const giving = givingUp()
  return {
    async beforeBlock(current) {
      await giving.beforeBlock?.(current)
      const { stage, happened } = current
      if (!happened.has("a cancel was mined") || happened.has("what was given up came back")) return
      if (!(await isIssued(current))) return
      const { read } = stage.world.context.db
      const attempts = await read.select().from(transactionAttempts)
      const rows = await read.select().from(transactions)
      const given = rows.find((row) => attempts.some(({ hash, is_cancel }) => is_cancel && hash === row.hash))
      const first = attempts.find(
        ({ transaction_id, kind }) => transaction_id === given?.id && kind === "first",
      )
      if (!given?.block_number || !first) return
      const head = await stage.anvil.client.getBlock()
      const depth = Number(head.number) - given.block_number + 1
      await reorganize(depth, [first.raw])(current)
      happened.add("what was given up came back")
    },
  }
}

/** The pool forgets the first few of our transactions. */
function evicting(): Events {
  const dropped = new Set<string>()
  return {
    async beforeBlock({ stage, happened }) {
      const fresh = stage.proxies[0]?.sent.filter(({ hash }) => !dropped.has(hash)) ?? []
      for (const { hash } of fresh) {
        if (dropped.size >= 5) return
        dropped.add(hash)
        await stage.anvil.client.dropTransaction({ hash })
        happened.add("the pool forgot a transaction")
      }
    },
  }
}

/** For many blocks no node answers a send, which higher fees do not help. */
function refusing(): Events {
  let refused = 0
  return {
    async beforeBlock({ stage, played, happened }) {
      const [proxy] = stage.proxies
      if (!played.paired || !proxy || happened.has("sends were taken again")) return
      refused += 1
      proxy.faults.refuse_every = refused <= 15 ? 1 : 0
      if (refused <= 15) return
      const attempts = await stage.world.context.db.read.select().from(transactionAttempts)
      if (attempts.some(({ kind }) => kind === "bump")) throw new Error("fees were raised for silence")
      happened.add("sends were taken again")
    },
  }
}

/** Until some blocks have passed, the first provider follows another chain. */
function healing(): Events {
  return {
    async beforeBlock({ stage, blocks, happened }) {
      const [first] = stage.proxies
      if (!first) return
      first.faults.is_forked = blocks > 5 && blocks < 30
      if (blocks >= 30) happened.add("the providers agreed again")
    },
  }
}

const issuing = (step: KillStep["step"], pass = 1): KillStep => ({ step, kind: "issueUnit", pass })

/** Where a worker dies: after what the step's name says, before anything follows from it. */
export const killSteps: (Pick<Scenario, "name" | "spike" | "events"> & { kill: KillStep })[] = [
  { name: "deploy: signed", kill: { step: "sign", kind: "deployCollection", pass: 1 } },
  { name: "deploy: sent", kill: { step: "broadcast", kind: "deployCollection", pass: 1 } },
  { name: "deploy: applied", kill: { step: "apply", kind: "deployCollection", pass: 1 } },
  { name: "issue: allocated", kill: issuing("allocate") },
  { name: "issue: signed", kill: issuing("sign") },
  { name: "issue: stored", kill: issuing("store", 2) },
  { name: "issue: sent", kill: issuing("broadcast", 2) },
  { name: "issue: marked", kill: issuing("mark", 2) },
  { name: "issue: receipt seen", kill: issuing("receipt") },
  { name: "issue: mined", kill: issuing("mined", 2) },
  { name: "issue: confirmed", kill: issuing("confirm", 2) },
  { name: "issue: applied", kill: issuing("apply") },
  { name: "bump: signed", kill: issuing("bump.sign"), spike: true },
  { name: "bump: stored", kill: issuing("bump.store"), spike: true },
  { name: "bump: sent", kill: issuing("bump.broadcast"), spike: true },
  { name: "cancel: signed", kill: issuing("cancel.sign"), spike: true, events: givingUp },
  { name: "cancel: stored", kill: issuing("cancel.store"), spike: true, events: givingUp },
  { name: "cancel: sent", kill: issuing("cancel.broadcast"), spike: true, events: givingUp },
  { name: "claim: sent", kill: { step: "broadcast", kind: "relayClaim", pass: 1 } },
  { name: "claim: confirmed", kill: { step: "confirm", kind: "relayClaim", pass: 1 } },
  { name: "replace: sent", kill: { step: "broadcast", kind: "replaceChip", pass: 1 } },
  { name: "watch: read", kill: { step: "watch.read", kind: "watchAuthorization", pass: 1 } },
  { name: "watch: settled", kill: { step: "watch.settle", kind: "watchAuthorization", pass: 1 } },
]

const lost: Partial<Faults> = { lose_every: 3 }
const deeper: Depths = { confirmation_depth: 3, finality_depth: 12 }

/** Faults of the chain, its providers, other workers and clocks, in which no worker has to die. */
export const otherFaults: Scenario[] = [
  { name: "nothing", must: [] },
  { name: "lost responses", faults: lost },
  { name: "refused sends", faults: { refuse_every: 2 } },
  { name: "no send is answered for long", events: refusing, must: ["sends were taken again"] },
  { name: "half of the receipts fail", faults: { receipt_errors: true } },
  { name: "only provider five blocks behind", faults: { lag_blocks: 5 } },
  { name: "one of two providers five behind", faults: { lag_blocks: 5 }, providers: 2 },
  {
    name: "two providers disagree",
    faults: {},
    providers: 2,
    depths: { confirmation_depth: 2, finality_depth: 40 },
    events: healing,
    must: ["the providers agreed again"],
  },
  {
    name: "one provider follows another chain beyond finality",
    faults: {},
    providers: 2,
    events: healing,
    must: ["the providers agreed again"],
  },
  { name: "bursts of 429", faults: { limits: true } },
  {
    name: "pool evicts",
    // No bump comes to the rescue: the same bytes have to go out again.
    depths: { ...usualDepths, bump_after_blocks: 1_000 },
    events: evicting,
    must: ["the pool forgot a transaction"],
  },
  { name: "prices rise", spike: true, must: ["prices rose"] },
  { name: "a person gives up a nonce", spike: true, events: givingUp, must: ["a cancel was mined"] },
  {
    name: "a nonce given up too late, then a reorganization",
    depths: deeper,
    events: givingUpTooLate,
    must: ["reorganized"],
  },
  {
    name: "what was given up comes back by a reorganization",
    depths: { confirmation_depth: 2, finality_depth: 60 },
    spike: true,
    events: givenUpComesBack,
    must: ["what was given up came back"],
  },
  {
    name: "reorganization of depth 1",
    events: once("reorganized", isIssuedOnChain, reorganize(1)),
    must: ["reorganized"],
  },
  {
    name: "reorganization of confirmation depth - 1",
    depths: deeper,
    events: once("reorganized", isIssuedOnChain, reorganize(2)),
    must: ["reorganized"],
  },
  {
    name: "reorganization beyond the confirmation depth",
    depths: deeper,
    events: once("reorganized", isIssued, reorganize(7)),
    must: ["reorganized"],
  },
  {
    name: "reorganization after a replacement",
    depths: deeper,
    events: once("reorganized", isReplaced, reorganize(5)),
    must: ["reorganized"],
  },
  {
    name: "reorganization beyond finality, retried by a person",
    depths: { confirmation_depth: 2, finality_depth: 4 },
    events: reopening(once("reorganized", isIssued, reorganize(8))),
    must: ["reorganized", "a lane halted"],
  },
  { name: "second worker", workers: 2 },
  { name: "three workers, each dies once", workers: 3, kill: issuing("broadcast") },
  { name: "clock steps forward", clock: { by_milliseconds: 600_000, after_milliseconds: 1_200 } },
  { name: "clock steps back", clock: { by_milliseconds: -600_000, after_milliseconds: 1_200 } },
  {
    name: "clock steps forward, then the worker dies",
    clock: { by_milliseconds: 600_000, after_milliseconds: 0 },
    kill: issuing("store"),
  },
  {
    name: "key used by somebody else, retried by a person",
    events: reopening(stolenNonce(false)),
    must: ["a nonce was used by somebody else", "a lane halted"],
  },
  {
    name: "nonce taken from a stored transaction, retried",
    events: reopening(stolenNonce(true)),
    must: ["a nonce was used by somebody else", "a lane halted"],
  },
]

/** Every kill step, with and without lost responses. */
export const crashes: Scenario[] = killSteps.flatMap(({ name, ...step }) => [
  { ...step, name: `killed at ${name}` },
  { ...step, name: `killed at ${name}, lost responses`, faults: lost },
])

/** The faults of the line and of the chain that can meet a crash at any step. */
const combined = otherFaults.filter(
  ({ kill, name }) => !kill && name !== "nothing" && name !== "lost responses",
)

/** Everything: each kill step with each other fault. */
export const matrix: Scenario[] = [
  ...crashes,
  ...otherFaults,
  ...killSteps.flatMap(({ name, kill, spike = false, events }) =>
    combined.map(
      (fault): Scenario => ({
        ...fault,
        name: `killed at ${name}, ${fault.name}`,
        kill,
        events: () => bothOf(fault.events?.() ?? {}, events?.() ?? {}),
        ...(spike ? { depths: { ...(fault.depths ?? usualDepths), bump_after_blocks: 3 } } : {}),
        spike: spike || fault.spike === true,
      }),
    ),
  ),
]

function bothOf(one: Happenings, other: Happenings): Happenings {
  return {
    foreign: one.foreign ?? other.foreign ?? [],
    async beforeBlock(current) {
      await one.beforeBlock?.(current)
      await other.beforeBlock?.(current)
    },
  }
}
