import type { Address, Hex } from "viem"
import type { SimulatedChain } from "./chain/chain.ts"
import type { Chest } from "./chest.ts"
import type { Asked, Clients } from "./clients.ts"
import { Forgotten, make, read, refused, tryMake, unlessForgotten } from "./errands.ts"
import type { Receiver } from "./receiver.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import type { Stream } from "./streams.ts"
import { sendFromWallet, walletAddress, walletCount } from "./wallets.ts"

/** What a history asks the service for, and what was promised. */
export type Asking = {
  collections: CollectionPlayed[]
  /** Secrets that were handed out: no log line may have one. */
  secrets: string[]
  /** Credentials with which a stranger asks: none, forged ones, and the key of another organization. */
  strangers: (string | null)[]
  /** What was allowed that should not have been. */
  breaches: string[]
  /** The ids of events, as the feed was read from its beginning on. */
  feed: string[]
}

export type CollectionPlayed = {
  id: string
  address: string
  /** In the order of the requests. */
  paired: { unit_id: string; chip_id: string }[]
  claims: { id: string; unit_id: string; recipient: Address }[]
  transfers: { id: string; unit_id: string; recipient: Address }[]
  replacements: { id: string; unit_id: string; chip_id: string }[]
}

export type Stage = {
  simulation: Simulation
  chain: SimulatedChain
  clients: Clients
  chance: Stream
  receiver: Receiver
  /** The chips that are paired; null where they are test chips, which the service makes. */
  chest: Chest | null
  /** Whether a back-up was restored, after which the service may know nothing of what it answered. */
  isRestored(): boolean
  /** How far apart two clocks of the service may be. */
  most_skew_seconds: number
}

/**
 * What becomes of a unit once it is issued. `race`: its chip is replaced and it is claimed at the same time. `linger`:
 * its session is used when it is over.
 */
const roles = ["claim", "wallet", "transfer", "replace", "race", "replace_twice", "linger", "keep"] as const
type Role = (typeof roles)[number]

/**
 * One or two collections, their units paired singly and in bulk, and everything that people then do with a unit, many
 * at once. Ends when everything that was asked for has ended.
 */
export async function playStory(stage: Stage, key: string, asking: Asking): Promise<void> {
  const { chance, receiver } = stage
  const endpoint = await make<{ id: string; secret: string }>(stage, {
    token: key,
    path: "/v1/webhook-endpoints",
    body: { url: receiver.url },
  })
  receiver.secret = endpoint.secret
  asking.secrets.push(endpoint.secret)
  const count = chance.happens(0.35) ? 2 : 1
  let wallets = 0
  const nextWallet = () => wallets++ % walletCount
  const names = ["Autumn", "Winter"].slice(0, count)
  await Promise.all(
    names.map((name) => unlessForgotten(playCollection(stage, key, name, nextWallet, asking))),
  )
}

/** Reads the feed of events from where it was read to, for ever. */
export async function followFeed(stage: Stage, key: string, asking: Asking): Promise<void> {
  for (;;) {
    await sleep(stage.simulation, feedMilliseconds)
    await readFeed(stage, key, asking)
  }
}

const feedMilliseconds = 9_000

/** Reads what the feed has more, to its end. */
export async function readFeed(stage: Stage, key: string, { feed }: Asking): Promise<void> {
  for (;;) {
    const after = feed.at(-1) ?? "0"
    const path = `/v1/events?after=${after}&limit=${feedPage}`
    const answer = await stage.clients.ask({ method: "GET", path, token: key })
    if (answer.status === 400 && after !== "0" && stage.isRestored()) {
      await readFeedAnew(stage, key, feed)
      return
    }
    if (answer.status !== 200) throw refused(answer)
    const { events } = answer.body as { events: { id: string }[] }
    // Whoever else read meanwhile has taken this page.
    if (after !== (feed.at(-1) ?? "0")) continue
    feed.push(...events.map(({ id }) => id))
    if (events.length < feedPage) return
  }
}

const feedPage = 20

/** Whoever stands at an event that is not kept starts again, and skips what was met before. */
async function readFeedAnew(stage: Stage, key: string, feed: string[]): Promise<void> {
  let after = "0"
  for (;;) {
    const path = `/v1/events?after=${after}&limit=${feedPage}`
    const { events } = await read<{ events: { id: string }[] }>(stage, key, path)
    feed.push(...events.map(({ id }) => id).filter((id) => !feed.includes(id)))
    if (events.length < feedPage) return
    after = events.at(-1)?.id ?? after
  }
}

/** Asks once more for everything that was ever made, whoever heard of it. */
export async function readAgain({ clients }: Stage, key: string, { strangers }: Asking) {
  const made = clients.exchanges.flatMap(({ method, path, status, body, token }) => {
    const { id } = (body ?? {}) as { id?: string | null }
    const hasAddress = method === "POST" && status === 201 && typeof id === "string" && path !== "/v1/taps"
    return hasAddress && !strangers.includes(token) ? [`${path}/${id}`] : []
  })
  for (const path of new Set(made)) await clients.ask({ method: "GET", path, token: key })
}

async function playCollection(
  stage: Stage,
  key: string,
  name: string,
  nextWallet: () => number,
  asking: Asking,
): Promise<void> {
  const { chance, simulation } = stage
  const made = await make<Collection>(stage, { token: key, path: "/v1/collections", body: { name } })
  const address = made.contract.address
  const played: CollectionPlayed = {
    id: made.id,
    address,
    paired: [],
    claims: [],
    transfers: [],
    replacements: [],
  }
  asking.collections.push(played)
  const unitIds: string[] = []
  const units = 3 + chance.below(4)
  while (unitIds.length < units) {
    const body = { collection_id: made.id, external_id: `${name} ${unitIds.length}` }
    unitIds.push((await make<Unit>(stage, { token: key, path: "/v1/units", body })).id)
  }
  await until(stage, async () => {
    const { contract } = await read<Collection>(stage, key, `/v1/collections/${made.id}`)
    return contract.status === "active"
  })
  const lives: Promise<void>[] = []
  const live = (pair: CollectionPlayed["paired"][number]) => {
    played.paired.push(pair)
    lives.push(unlessForgotten(playUnit(stage, key, played, pair, chance.pick(roles), nextWallet, asking)))
  }
  let next = 0
  while (next < unitIds.length) {
    const size = chance.happens(0.5) ? 1 : 1 + chance.below(unitIds.length - next)
    const taken = unitIds.slice(next, next + size)
    for (const pair of await pairChips(stage, key, taken)) live(pair)
    next += size
    if (chance.happens(0.4)) await sleep(simulation, chance.between(0, 8_000))
  }
  await Promise.all(lives)
}

/** The chip of a request: one of the chest, with what it emits, or a test chip. */
export function chipFor({ chest }: Stage, chipId = chest?.take()): object {
  return chest && chipId ? { chip_id: chipId, e: chest.emit(chipId) } : { is_test: true }
}

async function pairChips(
  stage: Stage,
  token: string,
  unitIds: string[],
): Promise<CollectionPlayed["paired"]> {
  const [first] = unitIds
  if (unitIds.length === 1) {
    const body = { unit_id: first, ...chipFor(stage) }
    const { chip_id } = await make<Chip>(stage, { token, path: "/v1/chips", body })
    return [{ unit_id: String(first), chip_id }]
  }
  const body = { chips: unitIds.map((unit_id) => ({ unit_id, ...chipFor(stage) })) }
  const { chips } = await make<{ chips: Chip[] }>(stage, { token, path: "/v1/chips/bulk", body })
  return chips.map(({ chip_id, unit }) => ({ chip_id, unit_id: unit.id }))
}

async function playUnit(
  stage: Stage,
  key: string,
  played: CollectionPlayed,
  { unit_id, chip_id }: CollectionPlayed["paired"][number],
  role: Role,
  nextWallet: () => number,
  asking: Asking,
): Promise<void> {
  await until(stage, async () => {
    const unit = await read<Unit>(stage, key, `/v1/units/${unit_id}`)
    if (stage.isRestored() && unit.chip_id === null) throw new Forgotten(unit_id)
    return unit.collection?.token.status === "active"
  })
  const person = { ...stage, key, played, unit_id, chip_id, asking }
  switch (role) {
    case "claim":
      return await claim(person, nextWallet(), "service_relay")
    case "wallet":
      return await claim(person, nextWallet(), "client_broadcast")
    case "replace":
      await replace(person)
      return
    case "race":
      await Promise.all([claim(person, nextWallet(), "service_relay"), replace(person)])
      return
    case "replace_twice": {
      const chip = await replace(person)
      await replace({ ...person, chip_id: chip ?? chip_id })
      return
    }
    case "transfer": {
      const owner = nextWallet()
      await claim(person, owner, "service_relay")
      return await transfer(person, owner, nextWallet())
    }
    case "linger":
      return await linger(person)
    case "keep":
  }
}

type Person = Stage & {
  key: string
  played: CollectionPlayed
  unit_id: string
  chip_id: string
  asking: Asking
}

type Session = { token: string; expires_at: string }

/** Taps until a value is taken, now and then twice with the same one, and answers the session that begins. */
async function tap(person: Person, ttl = 3_600): Promise<Session | null> {
  const { chance, key, chip_id, clients, asking } = person
  for (let attempt = 0; attempt < 10; attempt++) {
    const e = await emit(person)
    if (e === null) return null
    asking.secrets.push(e)
    const body = { chip_id, e, ttl }
    const asked: Asked = { method: "POST", path: "/v1/taps", token: key, body }
    const answers = await Promise.all(
      chance.happens(0.25) ? [clients.ask(asked), clients.ask(asked)] : [clients.ask(asked)],
    )
    const taken = answers.find(({ status }) => status === 201)
    if (!taken) continue
    const { session_token } = taken.body as { session_token: Session }
    asking.secrets.push(session_token.token)
    return session_token
  }
  return null
}

/** A value of the chip; null where it emits none any more. */
async function emit({ chest, clients, key, chip_id }: Person): Promise<string | null> {
  if (chest) return chest.emit(chip_id)
  const body = { chip_id }
  const emitted = await clients.ask({ method: "POST", path: "/v1/test-helpers/taps", token: key, body })
  return emitted.status === 201 ? (emitted.body as { e: string }).e : null
}

async function claim(
  person: Person,
  wallet: number,
  execution: "service_relay" | "client_broadcast",
): Promise<void> {
  const { unit_id, played } = person
  const recipient = walletAddress(wallet)
  const session = await tap(person)
  if (session === null) return
  const path = `/v1/units/${unit_id}/claims`
  const made = await tryMake<Made>(person, { token: session.token, path, body: { execution, recipient } })
  if (!made) return
  played.claims.push({ id: made.id, unit_id, recipient })
  await submitUntilEnded(person, `${path}/${made.id}`, wallet, made)
}

async function transfer(person: Person, owner: number, friend: number): Promise<void> {
  const { unit_id, played } = person
  const recipient = walletAddress(friend)
  const session = await tap(person)
  if (session === null) return
  const path = `/v1/units/${unit_id}/transfers`
  const made = await tryMake<Made>(person, { token: session.token, path, body: { recipient } })
  if (!made) return
  played.transfers.push({ id: made.id, unit_id, recipient })
  await submitUntilEnded(person, `${path}/${made.id}`, owner, made)
}

/** The shortest session there is, used at once and as soon as it is over by any clock of a process. */
async function linger(person: Person): Promise<void> {
  const { clients, simulation, asking, most_skew_seconds } = person
  const session = await tap(person, shortestSessionSeconds)
  if (session === null) return
  const asked = { method: "GET", path: "/v1/session-tokens/current", token: session.token } as const
  const over = Date.parse(session.expires_at) - simulation.epoch
  const skew = most_skew_seconds * 1_000
  const first = await clients.ask(asked)
  if (first.status !== 200 && first.answered_at < over - skew && !person.isRestored())
    asking.breaches.push(`a session of ${shortestSessionSeconds} s is refused before`)
  await sleep(simulation, over + skew - simulation.now)
  const { status } = await clients.ask(asked)
  if (status < 300) asking.breaches.push(`a session of ${shortestSessionSeconds} s is good for longer`)
}

const shortestSessionSeconds = 60

/** Answers the chip that the unit has in the end; null when it was not replaced. */
async function replace(person: Person): Promise<string | null> {
  const { unit_id, played, key } = person
  const path = `/v1/units/${unit_id}/chip-replacements`
  const made = await tryMake<Made & { chip_id: string }>(person, {
    token: key,
    path,
    body: chipFor(person),
  })
  if (!made) return null
  played.replacements.push({ id: made.id, unit_id, chip_id: made.chip_id })
  await until(person, async () => endOf(await read<Made>(person, key, `${path}/${made.id}`)) !== null)
  return made.chip_id
}

/** A wallet that was given a payload sends it until the service says how it ended. */
async function submitUntilEnded(person: Person, path: string, wallet: number, made: Made): Promise<void> {
  const ended = async () => endOf(await read<Made>(person, person.key, path))
  if (!made.transaction) return await until(person, async () => (await ended()) !== null)
  await sendFromWallet(person.simulation, person.chain, wallet, made.transaction, ended)
}

export type Collection = { id: string; contract: { address: string; status: string } }
type Unit = { id: string; chip_id: string | null; collection: { token: { status: string } } | null }
type Chip = { chip_id: string; unit: { id: string } }
export type Made = { id: string; status: string; transaction?: { to: Address; data: Hex } | null }

export function endOf({ status }: Made): "well" | "badly" | null {
  if (["claimed", "confirmed"].includes(status)) return "well"
  return ["expired", "failed"].includes(status) ? "badly" : null
}

export async function until({ simulation }: Stage, isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(simulation, 2_000)
}
