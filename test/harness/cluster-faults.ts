import { lanes } from "../../src/db/schema.ts"
import type { Cluster, Member } from "./cluster.ts"
import type { Load } from "./cluster-load.ts"

// Each of these ends once the service has made progress after the fault, and throws if it does not.

export async function crashApi(cluster: Cluster, load: Load): Promise<void> {
  const api = anyOf(cluster.apis)
  await api.kill()
  await load.untilProgress(2)
  await api.start()
}

export async function crashWorker(cluster: Cluster, load: Load): Promise<void> {
  const worker = anyOf(cluster.workers)
  await worker.kill()
  await load.untilProgress(2)
  await worker.start()
}

export async function flushRedis(cluster: Cluster, load: Load): Promise<void> {
  await cluster.redis.flush()
  await load.untilProgress(2)
}

/** Returns how many requests failed in the meantime. */
export async function stopRedis(cluster: Cluster, load: Load, milliseconds: number): Promise<number> {
  const before = load.failures()
  await cluster.redis.kill()
  await Promise.all([Bun.sleep(milliseconds), load.untilProgress(2)])
  const failed = load.failures() - before
  await cluster.redis.start()
  await load.untilProgress(1)
  return failed
}

export async function crashPostgres(cluster: Cluster, load: Load): Promise<void> {
  await cluster.postgres.restart()
  await load.untilProgress(2)
}

/** Suspends a lane's holder until another worker has taken the lane, and for a while after that. */
export async function freezeLaneHolder(cluster: Cluster, load: Load): Promise<void> {
  const worker = await freezeHolder(cluster)
  try {
    await load.untilProgress(2)
  } finally {
    worker.signal("SIGCONT")
  }
  await load.untilProgress(2)
}

/** Restarts one after the other, as a deployment does. Returns their exit codes and how many requests failed. */
export async function restartAll(cluster: Cluster, load: Load) {
  const before = load.failures()
  const exitCodes: number[] = []
  for (const member of [...cluster.apis, ...cluster.workers]) {
    const isApi = cluster.apis.includes(member)
    if (isApi) await load.leave(member)
    exitCodes.push(await member.stop())
    await member.start()
    if (isApi) load.join(member)
  }
  await load.untilProgress(1)
  return { exitCodes, failed: load.failures() - before }
}

/** Suspends workers one after the other until another worker takes over a lane. */
async function freezeHolder(cluster: Cluster): Promise<Member> {
  const deadline = performance.now() + 90_000
  for (let turn = 0; performance.now() < deadline; turn++) {
    const worker = cluster.workers[turn % cluster.workers.length] as Member
    worker.signal("SIGSTOP")
    if (await losesALane(cluster)) return worker
    worker.signal("SIGCONT")
  }
  throw new Error(`no worker holds a lane: ${JSON.stringify(await leases(cluster))}`)
}

/** Returns whether a lane whose lease is not renewed gets another owner while one worker is suspended. */
async function losesALane(cluster: Cluster): Promise<boolean> {
  const before = await leases(cluster)
  await Bun.sleep(2_500)
  const silent = (await leases(cluster)).filter((now) => before.some((lease) => isSame(lease, now)))
  return silent.length > 0 && (await isTakenOver(cluster, silent))
}

type Lease = { id: string; owner: string | null; until: number | null }

function isSame(one: Lease, other: Lease): boolean {
  return one.owner !== null && one.id === other.id && one.owner === other.owner && one.until === other.until
}

/** A busy machine may renew late, and then the lease stays with its owner. */
async function isTakenOver(cluster: Cluster, silent: Lease[]): Promise<boolean> {
  const deadline = performance.now() + 40_000
  while (performance.now() < deadline) {
    const now = await leases(cluster)
    for (const lease of silent) {
      const found = now.find(({ id }) => id === lease.id)
      if (found && !isSame(lease, found)) return found.owner !== lease.owner
    }
    await Bun.sleep(200)
  }
  throw new Error(`nobody takes over: ${JSON.stringify(silent)}`)
}

async function leases(cluster: Cluster): Promise<Lease[]> {
  const rows = await cluster.context.db.read.select().from(lanes)
  return rows.map(({ id, lease_owner, leased_until }) => ({
    id,
    owner: lease_owner,
    until: leased_until?.getTime() ?? null,
  }))
}

function anyOf(members: Member[]): Member {
  const member = members[Math.floor(Math.random() * members.length)]
  if (!member) throw new Error("the cluster has no such process")
  return member
}
