import { Queue, QueueEvents, Worker } from "bullmq"
import { within } from "./deadline.ts"
import type { Log } from "./log.ts"
import { connectRedis, connectWaitingRedis, quiet, sayWhenAway, sayWhenRefused } from "./redis.ts"
import { createWakeUps, type WakeUps } from "./wake.ts"

/**
 * Wake-ups between processes, over a BullMQ queue: whoever takes one tells all processes that listen. While Redis is
 * away they are lost, and workers look at their own interval.
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
      // BullMQ waits without end for a Redis that is away.
      const closed = Promise.allSettled([listener?.close(), publisher.close()])
      await within(closed, 2_000, "BullMQ did not close").catch(() => {})
    },
  }
}

/** Where the wake-ups are in Redis. */
export const wakeUpQueue = { name: "wake-ups", prefix: "service-api" }

type Closing = { close(): Promise<void> }

/** Publishes a queue's wake-up at once; those that come soon after it become one more. */
function startPublisher(url: string, log: Log) {
  const redis = connectRedis(url, 1_000)
  const consequence = "workers look for work by themselves"
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
      // A BullMQ queue that failed while it connected never recovers, and one that is not closed stays for ever.
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

/** At most one wake-up of a queue waits, and one more is kept while one is delivered. */
function jobOptions(queue: string) {
  return {
    deduplication: { id: queue.replaceAll(":", "-"), keepLastIfActive: true },
    removeOnComplete: true,
    removeOnFail: true,
  }
}

/** Takes wake-ups off the queue, and hears of all that any process took. Restarts when BullMQ gives up. */
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

/** A wake-up may be delivered twice, so a dead worker is no reason to fail it. */
const stalls = { lockDuration: 10_000, stalledInterval: 5_000, maxStalledCount: 10 }
