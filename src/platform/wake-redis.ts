import { Queue, QueueEvents, Worker } from "bullmq"
import { within } from "./deadline.ts"
import type { Log } from "./log.ts"
import { connectRedis, connectWaitingRedis, quiet, sayWhenAway, sayWhenRefused } from "./redis.ts"
import { createWakeUps, type WakeUps } from "./wake.ts"

/**
 * Creates wake-ups between processes over a BullMQ queue. Whichever process takes one notifies all that listen. While
 * Redis is away wake-ups are lost, and workers fall back on their own intervals.
 */
export function createRedisWakeUps(url: string, log: Log): WakeUps {
  const local = createWakeUps()
  const publisher = startPublisher(url, log)
  let listener: Closing | undefined
  return {
    wake: publisher.publish,
    onWake(queue, callback) {
      listener ??= startListener(url, local.wake)
      return local.onWake(queue, callback)
    },
    async close() {
      // BullMQ waits indefinitely for a Redis that is away.
      const closed = Promise.allSettled([listener?.close(), publisher.close()])
      await within(closed, 2_000, "BullMQ did not close").catch(() => {})
    },
  }
}

/** The BullMQ queue of the wake-ups. */
export const wakeUpQueue = { name: "wake-ups", prefix: "service-api" }

type Closing = { close(): Promise<void> }

/** Publishes a queue's wake-up at once; further ones within 20 ms are joined into one. */
function startPublisher(url: string, log: Log) {
  const redis = connectRedis(url, 1_000)
  const consequence = "workers look for work without wake-ups"
  sayWhenAway(redis, log, consequence)
  const sayRefused = sayWhenRefused(log, () => performance.now(), consequence)
  let jobs: Queue | undefined
  const again = new Map<string, boolean>()

  async function add(queue: string): Promise<void> {
    if (redis.status !== "ready") return
    const known = jobs ?? openJobs()
    jobs = known
    try {
      await known.add(queue, {}, jobOptions(queue))
    } catch (error) {
      sayRefused(error)
      // A BullMQ queue that failed while connecting never recovers, and one that is not closed is never freed.
      if (jobs === known) jobs = undefined
      await known.close().catch(() => {})
    }
  }

  function openJobs(): Queue {
    const options = { prefix: wakeUpQueue.prefix, connection: redis, skipVersionCheck: true }
    return quiet(new Queue(wakeUpQueue.name, options))
  }

  async function publish(queue: string): Promise<void> {
    if (again.has(queue)) {
      again.set(queue, true)
      return
    }
    do {
      again.set(queue, false)
      await add(queue)
      await Bun.sleep(restMilliseconds)
    } while (again.get(queue))
    again.delete(queue)
  }

  return {
    publish: (queue: string) => void publish(queue),
    async close() {
      redis.disconnect()
    },
  }
}

const restMilliseconds = 20

/** Keeps at most one waiting wake-up per queue, and one more while one is being delivered. */
function jobOptions(queue: string) {
  return {
    deduplication: { id: queue.replaceAll(":", "-"), keepLastIfActive: true },
    removeOnComplete: true,
    removeOnFail: true,
  }
}

/** Takes wake-ups off the queue, and calls `wake` for those that any process took. Restarts when BullMQ gives up. */
function startListener(url: string, wake: (queue: string) => void): Closing {
  let closed = false
  let open: Closing | undefined

  async function listen(): Promise<void> {
    const connection = connectWaitingRedis(url)
    const options = { prefix: wakeUpQueue.prefix, connection, skipVersionCheck: true, autorun: false }
    const worker = quiet(
      new Worker(wakeUpQueue.name, async ({ name }) => name, { ...options, concurrency: 20, ...stalls }),
    )
    const events = quiet(new QueueEvents(wakeUpQueue.name, options))
    events.on("completed", ({ returnvalue }) => wake(returnvalue))
    open = {
      async close() {
        await Promise.allSettled([worker.close(true), events.close()])
        connection.disconnect()
      },
    }
    await Promise.race([worker.run(), events.run()]).catch(() => {})
    await open.close()
  }

  async function run(): Promise<void> {
    while (!closed) {
      await listen()
      if (!closed) await Bun.sleep(1_000)
    }
  }

  void run()
  return {
    async close() {
      closed = true
      await open?.close()
    },
  }
}

/** A wake-up may be delivered twice, so a worker that died is no reason to fail it. */
const stalls = { lockDuration: 10_000, stalledInterval: 5_000, maxStalledCount: 10 }
