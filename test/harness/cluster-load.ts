import { eq, inArray } from "drizzle-orm"
import { type Address, createPublicClient, getAddress, http, toHex } from "viem"
import { chips, claims, effects, taps, units } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Cluster, Member } from "./cluster.ts"

/** What successful responses promised to clients, to be compared with the outcome. */
export type Promises = {
  collections: { id: string; address: Address }[]
  units: { id: string; collection_id: string; chip_id: string; recipient: Address | null }[]
  taps: string[]
  claims: { id: string; unit_id: string }[]
  /** Requests sent, retries included, by status; 0 for no response. */
  answers: Map<number, number>
  /** What must be in no log: credentials and chip values. */
  secrets: string[]
}

export type Load = {
  promises: Promises
  /** Waits until this many more units have been claimed. */
  untilProgress(units: number): Promise<void>
  /** How many requests got no response or a server error. */
  failures(): number
  /** Like a load balancer, sends nothing more to an API process and waits for the requests in flight. */
  leave(api: Member): Promise<void>
  join(api: Member): void
  /** Starts no new journeys, and waits for those in progress. */
  finish(): Promise<void>
}

/** Clients that each take one unit after another through its lifecycle, across all API processes, until `finish`. */
export async function startLoad(cluster: Cluster, options: { clients: number }): Promise<Load> {
  const promises: Promises = {
    collections: [],
    units: [],
    taps: [],
    claims: [],
    answers: new Map(),
    secrets: [],
  }
  const client = createClient(cluster, promises)
  for (const name of ["Jackets", "Boots"]) {
    const { id, contract } = await client.create<Collection>("/v1/collections", { name })
    promises.collections.push({ id, address: contract.address })
  }
  for (const { id } of promises.collections)
    await client.poll<Collection>(`/v1/collections/${id}`, ({ contract }) => contract.status === "active")

  let isFinishing = false
  let arrived = 0
  const running = Array.from({ length: options.clients }, async (_, index) => {
    while (!isFinishing) {
      await journey(client, promises, index)
      arrived++
    }
  })
  const broken = Promise.all(running).then(() => {})
  broken.catch(() => {})
  return {
    promises,
    async untilProgress(more) {
      const goal = arrived + more
      while (arrived < goal) await Promise.race([broken, Bun.sleep(50)])
    },
    failures: () =>
      [...promises.answers].reduce(
        (sum, [status, times]) => (status === 0 || status >= 500 ? sum + times : sum),
        0,
      ),
    leave: client.leave,
    join: client.join,
    async finish() {
      isFinishing = true
      await Promise.all(running)
    },
  }
}

type Collection = { id: string; contract: { address: Address; status: string } }
type Unit = { id: string; collection: { token: { status: string } } }

/** Creates, pairs, issues, taps and claims a unit, as a brand and a person would. */
async function journey(client: Client, promises: Promises, index: number): Promise<void> {
  const { id: collection_id } = promises.collections[index % promises.collections.length] as { id: string }
  const { id } = await client.create<Unit>("/v1/units", { collection_id })
  const { chip_id } = await client.create<{ chip_id: string }>("/v1/chips", { unit_id: id, is_test: true })
  const unit: Promises["units"][number] = { id, collection_id, chip_id, recipient: null }
  promises.units.push(unit)
  await client.poll<Unit>(`/v1/units/${id}`, ({ collection }) => collection.token.status === "active")

  const { e } = await client.create<{ e: string }>("/v1/test-helpers/taps", { chip_id })
  const tap = await client.create<{ id: string; session_token: { token: string } }>("/v1/taps", {
    chip_id,
    e,
  })
  promises.taps.push(tap.id)

  const { token } = tap.session_token
  promises.secrets.push(e, token)
  const recipient = getAddress(toHex(crypto.getRandomValues(new Uint8Array(20))))
  const claim = await client.create<{ id: string }>(`/v1/units/${id}/claims`, { recipient }, token)
  promises.claims.push({ id: claim.id, unit_id: id })
  unit.recipient = recipient
  await client.poll<{ status: string }>(
    `/v1/units/${id}/claims/${claim.id}`,
    ({ status }) => status === "claimed",
  )
}

type Client = ReturnType<typeof createClient>

/** How long a client keeps trying before it calls something stuck. */
const patienceMilliseconds = 150_000
const requestPatienceMilliseconds = 10_000

/** A client as the documentation recommends: it retries requests without a response with the same key, and polls. */
function createClient(cluster: Cluster, promises: Promises) {
  let turn = 0
  let made = 0
  const members = [...cluster.apis]
  const underWay = new Map<Member, number>()

  /** The response of the next API process, or null if there is none. */
  async function ask(method: string, path: string, token: string, key: string | null, body?: unknown) {
    const api = members[turn++ % members.length] as Member
    underWay.set(api, (underWay.get(api) ?? 0) + 1)
    const answer = await fetch(`${api.base_url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(key && { "idempotency-key": key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestPatienceMilliseconds),
    })
      .then(async (response) => ({ status: response.status, body: JSON.parse(await response.text()) }))
      .catch(() => null)
    underWay.set(api, (underWay.get(api) ?? 1) - 1)
    const status = answer?.status ?? 0
    promises.answers.set(status, (promises.answers.get(status) ?? 0) + 1)
    return answer
  }

  async function untilDone<T>(
    what: string,
    attempt: () => Promise<T | null>,
    pauseMilliseconds: number,
  ): Promise<T> {
    const deadline = performance.now() + patienceMilliseconds
    while (performance.now() < deadline) {
      const done = await attempt()
      if (done !== null) return done
      await Bun.sleep(pauseMilliseconds)
    }
    throw new Error(`${what} is stuck`)
  }

  return {
    async create<T>(path: string, body: unknown, token = cluster.api_key): Promise<T> {
      const key = `create-${++made}`
      const attempt = async () => {
        const answer = await ask("POST", path, token, key, body)
        if (answer?.status === 201) return answer.body as T
        const isTemporary = !answer || answer.status >= 500 || answer.status === 429
        if (isTemporary || answer.body.error.code === "idempotency.in_progress") return null
        throw new Error(`POST ${path} answered ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      return await untilDone(`POST ${path}`, attempt, 200)
    },
    async poll<T>(path: string, isDone: (resource: T) => boolean): Promise<T> {
      const attempt = async () => {
        const answer = await ask("GET", path, cluster.api_key, null)
        return answer?.status === 200 && isDone(answer.body) ? (answer.body as T) : null
      }
      return await untilDone(path, attempt, 500)
    },
    async leave(api: Member): Promise<void> {
      members.splice(members.indexOf(api), 1)
      while ((underWay.get(api) ?? 0) > 0) await Bun.sleep(20)
    },
    join(api: Member): void {
      members.push(api)
    },
  }
}

/** Sends one chip value many times concurrently, across all API processes. Returns how many got each status. */
export async function sendAtOnce(
  cluster: Cluster,
  load: Load,
  times: number,
): Promise<Record<number, number>> {
  const chip_id = load.promises.units.at(0)?.chip_id
  const post = async (api: Member | undefined, path: string, body: unknown) => {
    const response = await fetch(`${api?.base_url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${cluster.api_key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as { id: string; e: string } }
  }
  const { body } = await post(cluster.apis[0], "/v1/test-helpers/taps", { chip_id })
  const answers = await Promise.all(
    Array.from({ length: times }, (_, index) =>
      post(cluster.apis[index % cluster.apis.length], "/v1/taps", { chip_id, e: body.e }),
    ),
  )
  const counts: Record<number, number> = {}
  for (const { status, body } of answers) {
    counts[status] = (counts[status] ?? 0) + 1
    if (status === 201) load.promises.taps.push(body.id)
  }
  return counts
}

/** Every broken promise, a line each. */
export async function brokenPromises(cluster: Cluster, promises: Promises): Promise<string[]> {
  const { read } = cluster.context.db
  const broken: string[] = []
  const expect = (holds: boolean, otherwise: string) => {
    if (!holds) broken.push(otherwise)
  }
  const ids = promises.units.map(({ id }) => id)
  const unitRows = await read.select().from(units).where(inArray(units.id, ids))
  const chipRows = await read.select().from(chips).where(inArray(chips.unit_id, ids))
  const claimRows = await read.select().from(claims)
  const tapRows = await read.select().from(taps)
  const open = await read.select().from(effects).where(eq(effects.status, "open"))
  expect(open.length === 0, `${open.length} effects are open`)
  expect(
    sameMembers(tapRows, promises.taps),
    `${tapRows.length} taps are recorded, ${promises.taps.length} were accepted`,
  )
  expect(
    sameMembers(
      claimRows,
      promises.claims.map(({ id }) => id),
    ),
    `${claimRows.length} claims are recorded, ${promises.claims.length} were accepted`,
  )
  for (const claim of claimRows) expect(claim.status === "claimed", `claim ${claim.id} is ${claim.status}`)

  const owners = await ownersOnChain(cluster, promises)
  for (const unit of promises.units) {
    const row = unitRows.find(({ id }) => id === unit.id)
    const chip = chipRows.filter(({ unit_id }) => unit_id === unit.id)
    expect(row?.token_status === "active", `unit ${unit.id} is ${row?.token_status}`)
    expect(chip.length === 1 && chip[0]?.chip_id === unit.chip_id, `unit ${unit.id} lost its chip`)
    const owner = owners.get(`${unit.collection_id} ${row?.serial}`)
    expect(
      owner === unit.recipient,
      `serial ${row?.serial} of unit ${unit.id} belongs to ${owner}, not ${unit.recipient}`,
    )
  }
  expect(
    owners.size === promises.units.length,
    `${owners.size} tokens exist for ${promises.units.length} units`,
  )
  return broken
}

function sameMembers(rows: { id: string }[], ids: string[]): boolean {
  return rows.length === ids.length && rows.every(({ id }) => ids.includes(id))
}

/** The owner of every token according to the chain's logs, by collection and serial. */
async function ownersOnChain(cluster: Cluster, promises: Promises): Promise<Map<string, Address>> {
  const client = createPublicClient({ transport: http(cluster.chain.rpc_url) })
  const owners = new Map<string, Address>()
  for (const { id, address } of promises.collections) {
    const moves = await client.getContractEvents({
      address,
      abi: collectionAbi,
      eventName: "Transfer",
      fromBlock: 0n,
    })
    for (const { args } of moves) owners.set(`${id} ${args.tokenId}`, getAddress(args.to ?? address))
  }
  return owners
}

/** Waits until no effect is open. */
export async function untilSettled(cluster: Cluster): Promise<void> {
  const deadline = performance.now() + 60_000
  const open = eq(effects.status, "open")
  while (
    (await cluster.context.db.read.select({ id: effects.id }).from(effects).where(open).limit(1)).length > 0
  ) {
    if (performance.now() > deadline) return
    await Bun.sleep(200)
  }
}
