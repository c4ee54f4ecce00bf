import { type ReceiverMood, receiverMoods } from "./receiver.ts"
import { type Stream, streamOf } from "./streams.ts"

/** Seconds since the beginning of a history. */
type Seconds = number
/** A fault that lasts. */
type Lasting = { at: Seconds; for_seconds: Seconds }

/** What happens to requests to a provider. */
const providerMoods = [
  "silent",
  "unavailable",
  "limited",
  "out_of_credit",
  "lost_answers",
  "internal_errors",
  "strange_words",
  "behind",
  "many_nodes",
  "other_fork",
  "two_forks",
  "empty_answers",
  "swallows",
  "short_ranges",
  "forgetful",
] as const
export type ProviderMood = (typeof providerMoods)[number]

/** One thing that goes wrong. A history is run with a list of them, so that the list can be shortened. */
export type Fault =
  | { kind: "die"; at: Seconds; process: string; steps: number; rest_seconds: Seconds }
  | ({ kind: "freeze"; process: string } & Lasting)
  | { kind: "clock"; at: Seconds; process: string; by_seconds: number }
  | ({ kind: "slow"; milliseconds: number } & Lasting)
  | ({ kind: "disk"; mood: "full" | "busy" | "failing" } & Lasting)
  | ({ kind: "repeat"; probability: number } & Lasting)
  | ({ kind: "wake-ups"; mood: "lost" | "doubled" | "late" } & Lasting)
  | ({ kind: "provider"; provider: number; mood: ProviderMood } & Lasting)
  | {
      kind: "reorganize"
      at: Seconds
      depth: number
      kept: number
      delay: number
      salt: number
      /** The signer whose transactions every pool has dropped, so that others' are mined before them. */
      without?: number
    }
  | { kind: "evict"; at: Seconds; count: number }
  | ({ kind: "prices"; gwei: number; then_gwei: number } & Lasting)
  | ({ kind: "blocks"; mood: "none" | "empty" | "fast" } & Lasting)
  | { kind: "steal"; at: Seconds; signer: number; is_instead: boolean }
  | ({ kind: "clients"; mood: "twice" | "lost_request" | "lost_answer" | "slow" } & Lasting)
  | { kind: "operator"; at: Seconds; act: "retry" | "cancel" | "explain" | "stuck"; salt: number }
  /** The database is restored to its state at the start of the fault, and nothing runs for the rest of it. */
  | ({ kind: "restore"; rest_seconds: Seconds } & Lasting)
  | { kind: "rotate"; at: Seconds; signer: number; pause_seconds: Seconds }
  /** The processes switch to another authorizer key once the factory's admin has named it. */
  | { kind: "authorizer"; at: Seconds; pause_seconds: Seconds }
  /** All signers have little ether at first. */
  | ({ kind: "poor"; microether: number } & Lasting)
  /** The factory's admin pauses the service on the chain. */
  | ({ kind: "pause" } & Lasting)
  /** A block counts as confirmed at once, so that a reorganization undoes much that was built on. */
  | { kind: "hasty"; at: 0 }
  /** Each block is final at once, and none is ever replaced. */
  | { kind: "instant"; at: 0 }
  /** Not faults, but events in addition to the story. */
  | { kind: "refresh"; at: Seconds; salt: number }
  | { kind: "rival"; at: Seconds; salt: number }
  | { kind: "replace"; at: Seconds; salt: number }
  /** In a history with one, the service is released: holders transfer tokens on their own. */
  | { kind: "hand_on"; at: Seconds; salt: number }
  | { kind: "burst"; at: Seconds; salt: number }
  | { kind: "hostile"; at: Seconds; salt: number }
  | ({ kind: "receiver"; mood: ReceiverMood } & Lasting)

/** How long things go wrong; after that the service is left alone and must finish what it began. */
export const rageSeconds = 50

type Harshness = "none" | "mild" | "medium" | "harsh"

/** The minimum and maximum number of faults in a history, in addition to its scenes. */
const counts: Record<Harshness, [number, number]> = {
  none: [0, 0],
  mild: [1, 4],
  medium: [5, 16],
  harsh: [17, 45],
}

/**
 * The faults of a seed: a mixture of mild and harsh. Each history leaves out some kinds and most moods of providers, so
 * that in some histories a few kinds and moods occur often (swarm testing, Groce et al. 2012).
 */
export function drawFaults(seed: bigint, processes: readonly string[], providers: number): Fault[] {
  const stream = streamOf(seed, "faults")
  const [least, most] = counts[harshnessOf(stream)]
  const count = least + stream.below(most - least + 1)
  const kinds = someOf(stream, weights, 0.5)
  const moods = someOf(streamOf(seed, "moods"), providerMoods, 0.25)
  const faults = Array.from({ length: count }, () =>
    drawFault(stream, kinds, { processes, providers, moods }),
  )
  const scenes = count > 0 ? drawScenes(streamOf(seed, "scenes")) : []
  const drawn = [...faults, ...scenes].sort((one, other) => one.at - other.at)
  return streamOf(seed, "finality").happens(0.06) ? onInstantChain(drawn) : drawn
}

/** Without the faults that require blocks to be replaced. */
function onInstantChain(faults: Fault[]): Fault[] {
  const possible = faults.filter(
    (fault) => !["reorganize", "hasty"].includes(fault.kind) && !isOfAnotherFork(fault),
  )
  return [{ kind: "instant", at: 0 }, ...possible]
}

/** Returns whether nodes of a provider follow another fork. */
export function isOfAnotherFork(fault: Fault): boolean {
  return fault.kind === "provider" && ["other_fork", "two_forks"].includes(fault.mood)
}

/** Rare coincidences, drawn at the right moment. With few other faults they are likely to occur. */
function drawScenes(stream: Stream): Fault[] {
  // What was lost in a restore is judged less strictly, so this is a history of its own.
  if (stream.happens(0.4)) return drawForgetting(stream)
  const ofChain = stream.happens(0.6) ? drawUndoing : drawDearness
  return [
    ...(stream.happens(0.9) ? ofChain(stream) : []),
    ...(stream.happens(0.3) ? [drawRefusedCommits(stream)] : []),
    ...(stream.happens(0.2) ? [drawTheft(stream)] : []),
  ]
}

/**
 * A reorganization that loses deployments and issuances but keeps what was built on them: claims and replacements, or
 * issuances of another key. They are mined without a contract, and succeed without effect.
 */
function drawUndoing(stream: Stream): Fault[] {
  const salt = stream.word()
  const reorganize = { kind: "reorganize", depth: deepest, kept: 1, delay: 0, salt, without: 1 } as const
  const isHasty = stream.happens(0.7)
  const hasty: Fault[] = isHasty ? [{ kind: "hasty", at: 0 }] : []
  if (stream.happens(0.2)) {
    const at = rounded(isHasty ? stream.between(3.2, 5.4) : stream.between(6.5, 11))
    const before = rounded(at - stream.between(2, 3))
    return [...hasty, { kind: "rotate", at: before, signer: 1, pause_seconds: 0 }, { ...reorganize, at }]
  }
  const kind = stream.pick(["rival", "replace"] as const)
  const [least, most] = underWay[kind][isHasty ? "hasty" : "usual"]
  const at = rounded(stream.between(least, most))
  const comings = Array.from(
    { length: 6 },
    (): Fault => ({ kind, at: rounded(Math.max(0, at - stream.between(2, 7))), salt: stream.word() }),
  )
  return [...hasty, ...comings, { ...reorganize, at }]
}

/**
 * When claims, or second chip replacements, are in flight while the issuances are not deep yet: seconds, from and to.
 */
const underWay = {
  rival: { hasty: [5, 8], usual: [13, 19] },
  replace: { hasty: [7, 12], usual: [18.5, 25] },
} as const

/**
 * Prices above everything that the service offers while its first transactions are in flight, and then prices that the
 * first offers do not meet; by then pools may have dropped the offers at the limit.
 */
function drawDearness(stream: Stream): Fault[] {
  const at = rounded(stream.happens(0.7) ? stream.between(0.4, 1.9) : stream.between(2, 16))
  const for_seconds = rounded(stream.between(8, 20))
  const gwei = rounded(stream.between(unpayable, 12))
  const prices = { kind: "prices", at, for_seconds, gwei, then_gwei: dearestPeace } as const
  if (stream.happens(0.7)) return [prices]
  const evict = () => ({ kind: "evict", at: rounded(at + stream.between(3, for_seconds)), count: 8 }) as const
  return [prices, evict(), evict()]
}

/** A disk that fails at the busiest time. */
function drawRefusedCommits(stream: Stream): Fault {
  const at = rounded(stream.between(0, 10))
  return { kind: "disk", mood: "failing", at, for_seconds: rounded(stream.between(1, 4)) }
}

/** Another sender who uses a key at the same time as the service. */
function drawTheft(stream: Stream): Fault {
  return { kind: "steal", at: rounded(stream.between(1, 14)), signer: stream.below(2), is_instead: true }
}

/** A back-up from before chip replacements, and people who claim such units as soon as it is restored, or before. */
function drawForgetting(stream: Stream): Fault[] {
  const at = rounded(stream.between(4, 9))
  const for_seconds = rounded(stream.between(10, 20))
  const rest_seconds = rounded(stream.between(1, 8))
  const some = (kind: "replace" | "rival", least: number, most: number) =>
    Array.from(
      { length: 8 },
      (): Fault => ({ kind, at: rounded(at + stream.between(least, most)), salt: stream.word() }),
    )
  return [
    { kind: "hasty", at: 0 },
    { kind: "restore", at, for_seconds, rest_seconds },
    ...some("replace", 0.2, 3),
    ...(stream.happens(0.2) ? some("rival", 3, for_seconds - 2) : []),
    ...some("rival", for_seconds, for_seconds + rest_seconds + 3),
  ]
}

function harshnessOf(stream: Stream): Harshness {
  const share = stream.fraction()
  if (share < 0.02) return "none"
  if (share < 0.5) return "mild"
  return share < 0.8 ? "medium" : "harsh"
}

type Weight = [kind: Fault["kind"], weight: number]

/** How often each kind is drawn, relative to the others. */
const weights: Weight[] = [
  ["die", 22],
  ["reorganize", 14],
  ["provider", 18],
  ["freeze", 5],
  ["clock", 4],
  ["slow", 2],
  ["disk", 4],
  ["repeat", 3],
  ["wake-ups", 3],
  ["evict", 6],
  ["prices", 8],
  ["blocks", 4],
  ["steal", 3],
  ["clients", 10],
  ["operator", 4],
  ["rotate", 3],
  ["authorizer", 2],
  ["restore", 2],
  ["pause", 3],
  ["poor", 3],
  ["refresh", 4],
  ["rival", 8],
  ["replace", 5],
  ["hand_on", 6],
  ["burst", 3],
  ["hostile", 4],
  ["receiver", 8],
]

/** What faults can act on. */
type Around = { processes: readonly string[]; providers: number; moods: readonly ProviderMood[] }

function drawFault(stream: Stream, kinds: readonly Weight[], { processes, providers, moods }: Around): Fault {
  const kind = kindFrom(stream, kinds)
  // Most of a history happens early.
  const at = rounded(rageSeconds * stream.fraction() ** 1.5)
  const lasting = (least: number, most: number) => ({
    at,
    for_seconds: rounded(Math.min(stream.between(least, most), rageSeconds - at)),
  })
  const process = stream.pick(processes)
  const salt = stream.word()
  switch (kind) {
    case "die": {
      const steps = 1 + stream.below(stream.happens(0.5) ? 60 : 1_500)
      return { kind, at, process, steps, rest_seconds: rounded(stream.between(0.1, 15)) }
    }
    case "freeze":
      return { kind, process, ...lasting(2, 40) }
    case "clock":
      return { kind, at, process, by_seconds: rounded(stream.between(-45, 45)) }
    case "slow":
      return { kind, milliseconds: rounded(stream.between(1, 25)), ...lasting(1, 15) }
    case "disk":
      return { kind, mood: stream.pick(["full", "busy", "failing"] as const), ...lasting(0.2, 12) }
    case "repeat":
      return { kind, probability: rounded(stream.between(0.1, 1)), ...lasting(5, 60) }
    case "wake-ups":
      return { kind, mood: stream.pick(["lost", "doubled", "late"] as const), ...lasting(5, 60) }
    case "provider":
      return { kind, provider: stream.below(providers), mood: stream.pick(moods), ...lasting(2, 50) }
    case "reorganize": {
      const depth = 1 + stream.below(stream.happens(0.5) ? 4 : deepest)
      const kept = stream.pick([1, 0.9, 0.5, 0])
      return { kind, at, depth, kept, delay: stream.below(4), salt }
    }
    case "evict":
      return { kind, at, count: 1 + stream.below(8) }
    case "prices":
      return {
        kind,
        gwei: rounded(stream.between(2, 20)),
        // Often as high as it stays, which earlier offers do not meet.
        then_gwei: rounded(stream.happens(0.5) ? dearestPeace : stream.between(1, dearestPeace)),
        ...lasting(8, 50),
      }
    case "blocks":
      return { kind, mood: stream.pick(["none", "empty", "fast"] as const), ...lasting(4, 30) }
    case "steal":
      return { kind, at, signer: stream.below(2), is_instead: stream.happens(0.6) }
    case "clients": {
      const mood = stream.pick(["twice", "lost_request", "lost_answer", "slow"] as const)
      return { kind, mood, ...lasting(5, 60) }
    }
    case "operator":
      return { kind, at, act: stream.pick(["retry", "cancel", "explain", "stuck"] as const), salt }
    case "hasty":
    case "instant":
      return { kind, at: 0 }
    case "rotate":
      return { kind, at, signer: stream.below(2), pause_seconds: rounded(stream.between(0, 6)) }
    case "restore":
      return { kind, rest_seconds: rounded(stream.between(0.5, 20)), ...lasting(1, 40) }
    case "poor":
      return { kind, ...lasting(5, 45), at: 0, microether: Math.round(50 * 60 ** stream.fraction()) }
    case "pause":
      return { kind, ...lasting(2, 30) }
    case "authorizer":
      return { kind, at, pause_seconds: rounded(stream.between(0, 6)) }
    case "refresh":
    case "rival":
    case "replace":
    case "hand_on":
    case "burst":
    case "hostile":
      return { kind, at, salt }
    case "receiver":
      return { kind, mood: stream.pick(receiverMoods), ...lasting(5, 40) }
  }
}

/** How long a fault lasts, in seconds, including its immediate consequences. */
export function lengthOf(fault: Fault): number {
  switch (fault.kind) {
    case "die":
      return dyingSeconds + fault.rest_seconds
    case "reorganize":
    case "evict":
    case "steal":
    case "operator":
    case "refresh":
    case "rival":
    case "replace":
    case "hand_on":
    case "burst":
    case "hostile":
      return settlingSeconds
    case "hasty":
    case "instant":
      return 0
    case "clock":
      return skewedSeconds
    case "rotate":
    case "authorizer":
      return rotatingSeconds
    case "restore":
      return fault.for_seconds + fault.rest_seconds
    case "poor":
    case "pause":
      return fault.for_seconds + settlingSeconds
    default:
      return fault.for_seconds
  }
}

/** When nothing goes wrong by itself any more, and past faults have had their effects. */
export function lastsUntil(faults: readonly Fault[]): number {
  return Math.max(0, ...faults.map((fault) => fault.at + lengthOf(fault))) * 1_000
}

/** Within this time a process passes the steps that it has left. */
const dyingSeconds = 20
const settlingSeconds = 10
/** A lane's lease expires sooner. */
const skewedSeconds = 30
/** Within this time every process has been restarted. */
const rotatingSeconds = 45

/** The base fee, in gwei, at which the service must get everything done: below its cap with all additions. */
export const dearestPeace = 4
/** The lowest base fee, in gwei, above the service's cap with all additions. */
const unpayable = 7

/** Below the finality depth, allowing for blocks mined until a reorganization is noticed. */
const deepest = 9

/** A random selection, each item with this chance; all items if none is selected. */
function someOf<T>(stream: Stream, all: readonly T[], chance: number): readonly T[] {
  const some = all.filter(() => stream.happens(chance))
  return some.length > 0 ? some : all
}

function kindFrom(stream: Stream, kinds: readonly Weight[]): Fault["kind"] {
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0)
  let left = stream.below(total)
  for (const [kind, weight] of kinds) {
    left -= weight
    if (left < 0) return kind
  }
  throw new Error("the weights of the faults do not add up")
}

function rounded(number: number): number {
  return Math.round(number * 10) / 10
}

/** A fault as a line of text. */
export function describeFault(fault: Fault): string {
  const { at } = fault
  return `${at.toFixed(1).padStart(6)} s  ${wordsOf(fault)}`
}

function wordsOf(fault: Fault): string {
  const lasts = "for_seconds" in fault ? ` for ${fault.for_seconds} s` : ""
  switch (fault.kind) {
    case "die":
      return `${fault.process} dies ${fault.steps} steps later and is back after ${fault.rest_seconds} s`
    case "freeze":
      return `${fault.process} stands still${lasts}`
    case "clock":
      return `the clock of ${fault.process} is wrong by ${fault.by_seconds} s from here on`
    case "slow":
      return `every step takes ${fault.milliseconds} ms${lasts}`
    case "disk":
      return `the disk is ${fault.mood}${lasts}`
    case "repeat":
      return `${Math.round(fault.probability * 100)} % of database transactions run twice${lasts}`
    case "wake-ups":
      return `wake-ups are ${fault.mood}${lasts}`
    case "provider":
      return `provider ${fault.provider}: ${fault.mood.replaceAll("_", " ")}${lasts}`
    case "reorganize":
      return `the last ${fault.depth} blocks are replaced, ${Math.round(fault.kept * 100)} % of their transactions return${fault.without === undefined ? "" : `, none of signer ${fault.without}`}, after ${fault.delay} blocks`
    case "evict":
      return `the pool forgets ${fault.count} transactions`
    case "prices":
      return `the base fee jumps to ${fault.gwei} gwei${lasts}, then to ${fault.then_gwei}`
    case "blocks":
      return `${fault.mood === "none" ? "no" : fault.mood} blocks${lasts}`
    case "steal":
      return `somebody else uses the key of signer ${fault.signer}${fault.is_instead ? ", instead of what waits" : ""}`
    case "clients":
      return `clients and service: ${fault.mood.replaceAll("_", " ")}${lasts}`
    case "operator":
      return `an operator asks for ${fault.act}`
    case "rotate":
      return `signer ${fault.signer} gets another key, with ${fault.pause_seconds} s between one process and the next`
    case "restore":
      return `the database is put back to what it is now, ${fault.for_seconds} s later, and nothing runs for ${fault.rest_seconds} s`
    case "authorizer":
      return `the authorizer gets another key, with ${fault.pause_seconds} s between one process and the next`
    case "poor":
      return `signers have ${fault.microether / 1e6} ether each${lasts}`
    case "pause":
      return `the service is stopped on chain${lasts}`
    case "hasty":
      return "what is in a block is taken for confirmed"
    case "instant":
      return "each block is final at once"
    case "refresh":
      return "a brand says that what its tokens show has changed"
    case "rival":
      return "somebody else wants a unit"
    case "replace":
      return "a brand replaces a unit's chip again and again"
    case "hand_on":
      return "a holder sends a token on without the service"
    case "burst":
      return "another brand issues many units at once"
    case "hostile":
      return "a stranger sends nonsense"
    case "receiver":
      return `who is sent events is ${fault.mood}${lasts}`
  }
}
