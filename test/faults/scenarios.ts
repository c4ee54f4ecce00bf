import { lanes } from "../../src/db/schema.ts"
import type { World } from "../../src/engine/world.ts"
import { judgePrices } from "./bounds.ts"
import { dearWithFullWindow } from "./dear-blocks.ts"
import {
  bothOf,
  evicting,
  givenUpComesBack,
  givingUp,
  givingUpTooLate,
  type Happenings,
  healing,
  holdPricesUp,
  isIssued,
  isIssuedOnChain,
  isReplaced,
  neverRaised,
  once,
  refusing,
  reopening,
  reorganize,
  saying,
  stolenNonce,
  withoutRole,
} from "./happenings.ts"
import { judge, type Verdict } from "./judge.ts"
import { changingKeys, revertedThenNot, rotateAuthorizer, throttling } from "./keys.ts"
import { NothingShown, play } from "./play.ts"
import type { Faults } from "./proxy.ts"
import { type Depths, openStage, type Stage, type Worker } from "./stage.ts"
import type { KillStep, WorkerSettings } from "./worker.ts"

/** One way in which things go wrong. */
export type Scenario = {
  name: string
  /** Where each worker kills itself once; another one replaces it. */
  kill?: KillStep
  faults?: Partial<Faults>
  /** How many RPC providers there are; faults apply to the first. */
  providers?: number
  workers?: number
  clock?: WorkerSettings["clock"]
  depths?: Depths
  /** Whether a key service signs for the issuing lane. */
  key_service?: boolean
  /** Whether prices rise when the first unit is issued, so that fees have to be raised. */
  spike?: boolean
  events?: () => Happenings
  /** What must have happened for the run to prove anything. */
  must?: string[]
  /** Whether another sender uses nonces: then none is given up. */
  takes_nonces?: true
  /** Whether the simulation covers the same in every gate: then only the whole matrix includes it. */
  is_simulated?: true
}

export type Outcome = Verdict & { name: string; seconds: number }

const usualDepths: Depths = { confirmation_depth: 2, finality_depth: 6 }
const patienceMilliseconds = 60_000

/**
 * Runs one scenario from an empty chain and database to its end, and judges it. If its fault or crash did not occur,
 * which depends on timing when another sender uses the same nonce, it is run again.
 */
export async function run(scenario: Scenario): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const { shows_nothing, ...outcome } = await playOnce(scenario)
    if (!shows_nothing || tries === mostTries) return outcome
  }
}

const mostTries = 4

async function playOnce(scenario: Scenario): Promise<Outcome & { shows_nothing: boolean }> {
  const begin = performance.now()
  const stage = await openStage(scenario.depths ?? usualDepths, scenario.providers ?? 1)
  const workers: Worker[] = []
  try {
    Object.assign(stage.proxies[0]?.faults ?? {}, scenario.faults)
    const { kill = null, clock = null } = scenario
    if (scenario.key_service) stage.moveKeyAway()
    for (let index = 0; index < (scenario.workers ?? 1); index++)
      workers.push(stage.startWorker({ kill, clock }))
    if (kill) for (const worker of [...workers]) void replaceWhenDead(stage, workers, worker)
    const events = scenario.events?.() ?? {}
    const spike = scenario.spike ? holdPricesUp() : null
    const all = bothOf(spike ? { beforeBlock: spike } : {}, events)
    const must = scenario.must ?? []
    const { play: current, ...played } = await play(stage, workers, all, must, patienceMilliseconds)
    if (kill && !workers.some(({ child }) => child.signalCode === "SIGKILL"))
      throw new NothingShown("the worker never came to the step where it should have died")
    if (scenario.faults && stage.proxies[0]?.struck === 0) throw new NothingShown("the fault never struck")
    const verdict = await judge(stage, played, events.foreign)
    const faults = [...verdict.faults, ...(await judgePrices(stage))]
    return { name: scenario.name, seconds: secondsSince(begin), ...verdict, faults, shows_nothing: false }
  } catch (error) {
    const said = workers.map((worker) => worker.said()).join("\n…\n")
    const faults = [`${(error as Error).message}\n${await laneRows(stage.world)}\n${said}`]
    const shows_nothing = error instanceof NothingShown
    return {
      name: scenario.name,
      seconds: secondsSince(begin),
      faults,
      duplicates: 0,
      missing: 1,
      shows_nothing,
    }
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
  { name: "refresh: sent", kill: { step: "broadcast", kind: "refreshMetadata", pass: 1 } },
  { name: "refresh: confirmed", kill: { step: "confirm", kind: "refreshMetadata", pass: 1 } },
  { name: "watch: read", kill: { step: "watch.read", kind: "watchAuthorization", pass: 1 } },
  { name: "watch: settled", kill: { step: "watch.settle", kind: "watchAuthorization", pass: 1 } },
]

const lost: Partial<Faults> = { lose_every: 3 }
const deeper: Depths = { confirmation_depth: 3, finality_depth: 12 }

/** Faults of the chain, its providers, other workers and clocks, in which no worker has to die. */
export const otherFaults: Scenario[] = [
  { name: "nothing", must: [] },
  { name: "lost responses", faults: lost, is_simulated: true },
  { name: "refused sends", faults: { refuse_every: 2 }, is_simulated: true },
  { name: "no send is answered for long", events: refusing, must: ["sends were taken again"] },
  { name: "half of the receipts fail", faults: { receipt_errors: true }, is_simulated: true },
  { name: "only provider five blocks behind", faults: { lag_blocks: 5 }, is_simulated: true },
  { name: "one of two providers five behind", faults: { lag_blocks: 5 }, providers: 2, is_simulated: true },
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
  { name: "bursts of 429", faults: { limits: true }, is_simulated: true },
  {
    name: "pool evicts",
    is_simulated: true,
    // Without a bump: the same bytes have to be sent again.
    depths: { ...usualDepths, bump_after_blocks: 1_000 },
    events: evicting,
    must: ["the pool forgot a transaction"],
  },
  { name: "prices rise", spike: true, must: ["prices rose"], is_simulated: true },
  {
    name: "a person gives up a nonce",
    spike: true,
    events: givingUp,
    must: ["a cancel was mined"],
    is_simulated: true,
  },
  {
    name: "a nonce given up too late, then a reorganization",
    is_simulated: true,
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
    is_simulated: true,
    events: once("reorganized", isIssuedOnChain, reorganize(1)),
    must: ["reorganized"],
  },
  {
    name: "reorganization of confirmation depth - 1",
    is_simulated: true,
    depths: deeper,
    events: once("reorganized", isIssuedOnChain, reorganize(2)),
    must: ["reorganized"],
  },
  {
    name: "reorganization beyond the confirmation depth",
    is_simulated: true,
    depths: deeper,
    events: once("reorganized", isIssued, reorganize(7)),
    must: ["reorganized"],
  },
  {
    name: "reorganization after a replacement",
    is_simulated: true,
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
  ...[402, 429, 503].map((status) => ({
    name: `one of two providers answers a JSON error under ${status}`,
    is_simulated: true as const,
    faults: { says_always: { status, code: -32_011, message: "no backends available for method" } },
    providers: 2,
  })),
  {
    name: "one of two providers answers in words nobody knows",
    is_simulated: true,
    faults: { says_always: { status: 200, code: -32_000, message: "the quokka sleeps" } },
    providers: 2,
  },
  { name: "one of two providers swallows what is sent", faults: { swallows: true }, providers: 2 },
  {
    name: "words that nobody knows for a while",
    is_simulated: true,
    events: saying("the quokka sleeps", neverRaised),
    must: ["sends were taken again"],
  },
  {
    name: "a full pool for a while",
    is_simulated: true,
    events: saying("txpool is full", neverRaised),
    must: ["sends were taken again"],
  },
  {
    name: "a node's fee cap for a while",
    events: saying("tx fee (1.35 ether) exceeds the configured cap (1.00 ether)", neverRaised),
    must: ["sends were taken again"],
  },
  ...[
    "insufficient funds for gas * price + value: balance 0, tx cost 1",
    "InsufficientFunds, Account balance: 0, cumulative cost: 1",
    "Upfront cost exceeds account balance",
  ].map((words, index) => ({
    name: `words of low funds for a while, client ${index + 1}`,
    events: saying(words, neverRaised),
    must: ["sends were taken again"],
  })),
  { name: "gas outside the call is dear", faults: { least_gas: 600_000 } },
  {
    name: "an operator is removed and named again",
    events: withoutRole,
    must: ["the operator was named again"],
  },
  {
    name: "a reorganization that lets succeed what had reverted",
    // However long a dead worker takes to be replaced.
    depths: { confirmation_depth: 2, finality_depth: 600 },
    events: revertedThenNot,
    must: ["what had reverted succeeded"],
  },
  {
    name: "the authorizer is rotated while authorizations of the one before are open",
    events: once("rotated", isIssued, rotateAuthorizer),
    must: ["rotated"],
  },
  {
    name: "a key service that is slow, throttles and signs otherwise each time",
    key_service: true,
    events: throttling,
    must: ["the key service signed again"],
  },
  { name: "second worker", workers: 2, is_simulated: true },
  { name: "three workers, each dies once", workers: 3, kill: issuing("broadcast") },
  {
    name: "clock steps forward",
    clock: { by_milliseconds: 600_000, after_milliseconds: 1_200 },
    is_simulated: true,
  },
  {
    name: "clock steps back",
    clock: { by_milliseconds: -600_000, after_milliseconds: 1_200 },
    is_simulated: true,
  },
  {
    name: "clock steps forward, then the worker dies",
    is_simulated: true,
    clock: { by_milliseconds: 600_000, after_milliseconds: 0 },
    kill: issuing("store"),
  },
  {
    name: "key used by somebody else, retried by a person",
    is_simulated: true,
    events: reopening(stolenNonce(false)),
    takes_nonces: true,
    must: ["a nonce was used by somebody else", "a lane halted"],
  },
  {
    name: "nonce taken from a stored transaction, retried",
    is_simulated: true,
    events: reopening(stolenNonce(true)),
    takes_nonces: true,
    must: ["a nonce was used by somebody else", "a lane halted"],
  },
]

/**
 * Scenarios that cannot be combined with a crash: they stop workers themselves, or rely on what workers do between two
 * blocks.
 */
export const undisturbed: Scenario[] = [
  {
    name: "blocks ten times as dear for a full window",
    events: dearWithFullWindow,
    must: ["the window was mined"],
  },
  {
    name: "two signers change places",
    events: changingKeys([2, 1]),
    must: ["the keys were changed"],
  },
  {
    name: "both signers are swapped for others",
    events: changingKeys([8, 9]),
    must: ["the keys were changed"],
  },
  { name: "two signers are swapped for one", events: changingKeys([8]), must: ["the keys were changed"] },
]

/** Every kill step, with and without lost responses. */
export const crashes: Scenario[] = killSteps.flatMap(({ name, ...step }) => [
  { ...step, name: `killed at ${name}` },
  { ...step, name: `killed at ${name}, lost responses`, faults: lost },
])

const killedInGate = [
  "deploy: sent",
  "issue: stored",
  "bump: sent",
  "cancel: stored",
  "claim: confirmed",
  "watch: settled",
]

/**
 * What `bun test` runs: real processes that die, real sockets, and what the simulation cannot do. The simulation kills
 * processes at every statement and request, and covers every fault that is marked so above.
 */
export const crashesInGate = crashes.filter(({ name }) =>
  killedInGate.includes(name.slice("killed at ".length)),
)
export const faultsInGate = [...otherFaults, ...undisturbed].filter((scenario) => !scenario.is_simulated)

/** The faults of the connection and of the chain that can coincide with a crash at any step. */
const combined = otherFaults.filter(
  ({ kill, name }) => !kill && name !== "nothing" && name !== "lost responses",
)

/** Everything: each kill step with each other fault that can coincide with it. */
export const matrix: Scenario[] = [
  ...crashes,
  ...otherFaults,
  ...undisturbed,
  ...killSteps.flatMap(({ name, kill, spike = false, events }) =>
    combined
      .filter(({ takes_nonces }) => !takes_nonces || events !== givingUp)
      .map(
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
