import { afterAll, beforeAll, expect, test } from "bun:test"
import { and, eq, inArray } from "drizzle-orm"
import { actorEvents } from "../../src/db/schema.ts"
import { type Cluster, startCluster } from "../harness/cluster.ts"
import {
  crashApi,
  crashPostgres,
  crashWorker,
  flushRedis,
  freezeLaneHolder,
  restartAll,
  stopRedis,
} from "../harness/cluster-faults.ts"
import { brokenPromises, type Load, sendAtOnce, startLoad, untilSettled } from "../harness/cluster-load.ts"

// Three API processes and three workers on one Postgres, one Redis and one chain, under constant load. Every fault ends
// when new units have been taken all the way to a claim.
let cluster: Cluster
let load: Load
/** When the last crash of a process that serves requests was over. */
let calmSince: Date
const patience = 60_000

beforeAll(async () => {
  cluster = await startCluster({ apis: 3, workers: 3 })
  load = await startLoad(cluster, { clients: 5 })
}, patience)
afterAll(() => cluster?.stop(), patience)

test("killing an API process affects no clients", () => crashApi(cluster, load), patience)

test("a killed worker's work is done by the others", () => crashWorker(cluster, load), patience)

test("Redis can be flushed", () => flushRedis(cluster, load), patience)

test(
  "no request fails while Redis is down",
  async () => {
    const failed = await stopRedis(cluster, load, 5_000)
    expect(failed).toBe(0)
  },
  patience,
)

test(
  "Postgres can crash and come back",
  async () => {
    await crashPostgres(cluster, load)
    calmSince = new Date()
  },
  patience,
)

test(
  "a worker that is suspended past its lease and resumed repeats nothing",
  () => freezeLaneHolder(cluster, load),
  3 * patience,
)

test(
  "one value of e sent a hundred times to three API processes is recorded once",
  async () => {
    const answers = await sendAtOnce(cluster, load, 100)
    expect(answers).toEqual({ 201: 1, 409: 99 })
  },
  patience,
)

test(
  "processes stop normally within ten seconds of being asked, and no request fails meanwhile",
  async () => {
    expect(await restartAll(cluster, load)).toEqual({ exitCodes: [0, 0, 0, 0, 0, 0], failed: 0 })
  },
  patience,
)

test(
  "everything that was accepted is done once, and nothing is stuck",
  async () => {
    await load.finish()
    await untilSettled(cluster)
    expect(await brokenPromises(cluster, load.promises)).toEqual([])
    expect(load.promises.claims.length).toBeGreaterThan(10)
  },
  patience,
)

test("no log and no metrics contain a secret", async () => {
  const members = [...cluster.apis, ...cluster.workers]
  const metrics = await Promise.all(members.map((member) => fetch(`${member.operator_url}/metrics`)))
  const texts = [
    ...members.map((member) => member.log()),
    ...(await Promise.all(metrics.map((each) => each.text()))),
  ]
  expect(texts.every((text) => text.length > 100)).toBe(true)
  const { service_secret, signer_keys, authorizer_key } = cluster.context.config
  const secrets = [
    cluster.api_key,
    service_secret.current,
    authorizer_key ?? "",
    ...signer_keys,
    ...load.promises.secrets,
  ]
  const found = secrets.filter((secret) =>
    texts.some((text) => text.toLowerCase().includes(secret.toLowerCase())),
  )
  expect(found).toEqual([])
})

test("every request has a line in the log, and its ID is in the journal of what it started", async () => {
  const lines = cluster.apis.flatMap((api) => api.log().split("\n"))
  const claims = lines.filter((line) => line.includes('"createClaim"') && line.includes('"status":201'))
  const logged = new Set(claims.map((line) => String(JSON.parse(line).request_id)))
  const { read } = cluster.context.db
  const ids = load.promises.claims.map(({ id }) => id)
  const begun = await read
    .select()
    .from(actorEvents)
    .where(and(inArray(actorEvents.actor_id, ids), eq(actorEvents.number, 1)))
  expect(begun.length).toBe(ids.length)
  // A killed process takes its last lines with it, and a response that a crash took is given again by another request.
  const undisturbed = begun.filter(({ at }) => at > calmSince)
  expect(undisturbed.length).toBeGreaterThan(0)
  expect(undisturbed.filter(({ request_id }) => !logged.has(request_id ?? "")).length).toBe(0)
})
