import type { Asking, CollectionPlayed, Stage } from "./asking.ts"
import { newCollection, newUnit, pairChips, untilActive, untilIssued } from "./collections.ts"
import { make, read, refused, unlessForgotten } from "./errands.ts"
import { claim, linger, replace, transfer } from "./people.ts"
import { sleep } from "./scheduler.ts"
import { walletCount } from "./wallets.ts"

/**
 * What happens to a unit once it is issued. `race`: its chip is replaced and it is claimed at the same time. `linger`:
 * its session is used after it has expired.
 */
const roles = ["claim", "wallet", "transfer", "replace", "race", "replace_twice", "linger", "keep"] as const
type Role = (typeof roles)[number]

/**
 * One or two collections, their units paired singly and in bulk, and everything that people then do with a unit,
 * concurrently. Ends when everything that was requested has ended.
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

/** Keeps reading the feed of events from its last position. */
export async function followFeed(stage: Stage, key: string, asking: Asking): Promise<void> {
  for (;;) {
    await sleep(stage.simulation, feedMilliseconds)
    await readFeed(stage, key, asking)
  }
}

const feedMilliseconds = 9_000

/** Reads the rest of the feed, to its end. */
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
    // A concurrent reader has already taken this page.
    if (after !== (feed.at(-1) ?? "0")) continue
    feed.push(...events.map(({ id }) => id))
    if (events.length < feedPage) return
  }
}

const feedPage = 20

/** A reader whose cursor was deleted starts again, and skips what it has already seen. */
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

/** Reads everything again that was ever created, whoever got the response. */
export async function readAgain({ clients }: Stage, maker: string, { strangers, collections }: Asking) {
  const keys = new Set(collections.map(({ key }) => key))
  // What was created with a session belongs to a unit.
  const keyOf = (path: string) =>
    collections.find(({ paired }) => paired.some(({ unit_id }) => path.includes(unit_id)))?.key ?? maker
  const made = new Map<string, string>()
  for (const { method, path, status, body, token } of clients.exchanges) {
    const { id } = (body ?? {}) as { id?: string | null }
    const hasAddress = method === "POST" && status === 201 && typeof id === "string" && path !== "/v1/taps"
    if (!hasAddress || strangers.includes(token)) continue
    made.set(`${path}/${id}`, token && keys.has(token) ? token : keyOf(path))
  }
  for (const [path, token] of made) await clients.ask({ method: "GET", path, token })
}

async function playCollection(
  stage: Stage,
  key: string,
  name: string,
  nextWallet: () => number,
  asking: Asking,
): Promise<void> {
  const { chance, simulation } = stage
  const played = await newCollection(stage, key, name, asking)
  const unitIds: string[] = []
  const units = 3 + chance.below(4)
  while (unitIds.length < units) unitIds.push(await newUnit(stage, played, `${name} ${unitIds.length}`))
  await untilActive(stage, played)
  const lives: Promise<void>[] = []
  const live = (pair: CollectionPlayed["paired"][number]) => {
    played.paired.push(pair)
    lives.push(unlessForgotten(playUnit(stage, played, pair, chance.pick(roles), nextWallet, asking)))
  }
  let next = 0
  while (next < unitIds.length) {
    const size = chance.happens(0.5) ? 1 : 1 + chance.below(unitIds.length - next)
    const taken = unitIds.slice(next, next + size)
    for (const pair of await pairChips(stage, played, taken)) live(pair)
    next += size
    if (chance.happens(0.4)) await sleep(simulation, chance.between(0, 8_000))
  }
  await Promise.all(lives)
}

async function playUnit(
  stage: Stage,
  played: CollectionPlayed,
  { unit_id, chip_id }: CollectionPlayed["paired"][number],
  role: Role,
  nextWallet: () => number,
  asking: Asking,
): Promise<void> {
  await untilIssued(stage, played, unit_id)
  const person = { ...stage, played, unit_id, chip_id, asking }
  switch (role) {
    case "claim":
      await claim(person, { wallet: nextWallet(), execution: "service_relay" })
      return
    case "wallet":
      await claim(person, { wallet: nextWallet(), execution: "client_broadcast" })
      return
    case "replace":
      await replace(person)
      return
    case "race":
      await Promise.all([
        claim(person, { wallet: nextWallet(), execution: "service_relay" }),
        replace(person),
      ])
      return
    case "replace_twice": {
      const chip = await replace(person)
      await replace({ ...person, chip_id: chip ?? chip_id })
      return
    }
    case "transfer": {
      const isClaimed = await claim(person, { wallet: nextWallet(), execution: "service_relay" })
      if (isClaimed) await transfer(person, nextWallet())
      return
    }
    case "linger":
      return await linger(person)
    case "keep":
  }
}
