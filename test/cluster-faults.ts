import { lanes } from "../src/db/schema.ts"
import type { Cluster, Member } from "./cluster.ts"
import type { Load } from "./cluster-load.ts"

// Each of these ends when the service has got on after the fault, and throws when it does not.

export async function crashApi(cluster: Cluster, load: Load): Promise<void> {
  const api = anyOf(cluster.apis)
  await api.kill()
  await load.untilProgress(2)
  await api.start()
}

export async function crashWorker(cluster: Cluster, load: Load): Promise<void> {
  const { worker } = await freezeHolder(cluster)
  await worker.kill()
  await load.untilProgress(2)
  await worker.start()
}

export async function flushRedis(cluster: Cluster, load: Load): Promise<void> {
  await cluster.redis.flush()
  await load.untilProgress(2)
}

/** Answers how many requests failed meanwhile. */
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

/** Stops a lane's holder in its tracks until another worker took the lane, and for a while after that. */
export async function freezeLaneHolder(cluster: Cluster, load: Load): Promise<void> {
  const { worker, lane_id, owner } = await freezeHolder(cluster)
  while ((await ownerOf(cluster, lane_id)) === owner) await Bun.sleep(200)
  await load.untilProgress(2)
  worker.signal("SIGCONT")
  await load.untilProgress(2)
}

/** One after the other, as a deployment does it. Answers how they ended and how many requests failed. */
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

/** Freezes workers one after the other until it is one whose lane is not renewed any more. */
async function freezeHolder(cluster: Cluster): Promise<{ worker: Member; lane_id: string; owner: string }> {
  for (;;)
    for (const worker of cluster.workers) {
      worker.signal("SIGSTOP")
      const before = await leases(cluster)
      await Bun.sleep(2_500)
      const now = await leases(cluster)
      const lane = now.find(
        ({ id, owner, until }) =>
          owner !== null &&
          before.some((each) => each.id === id && each.owner === owner && each.until === until),
      )
      if (lane?.owner) return { worker, lane_id: lane.id, owner: lane.owner }
      worker.signal("SIGCONT")
    }
}

async function leases(cluster: Cluster) {
  const rows = await cluster.context.db.read.select().from(lanes)
  return rows.map(({ id, lease_owner, leased_until }) => ({
    id,
    owner: lease_owner,
    until: leased_until?.getTime() ?? null,
  }))
}

async function ownerOf(cluster: Cluster, laneId: string): Promise<string | null> {
  return (await leases(cluster)).find(({ id }) => id === laneId)?.owner ?? null
}

function anyOf(members: Member[]): Member {
  const member = members[Math.floor(Math.random() * members.length)]
  if (!member) throw new Error("the cluster has no such process")
  return member
}
