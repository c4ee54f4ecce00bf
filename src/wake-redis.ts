import { Queue, QueueEvents, Worker } from "bullmq"
import { Redis } from "ioredis"
import type { Log } from "./log.ts"
import { createWakeUps, type WakeUps } from "./wake.ts"

/**
 * Wake-ups between processes, over a BullMQ queue: whoever takes one off tells all processes that listen. While Redis
 * is away they are lost, which costs as long as the workers' own interval.
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
      await Promise.race([Promise.allSettled([listener?.close(), publisher.close()]), Bun.sleep(2_000)])
    },
  }
}

/** Where the wake-ups are in Redis. */
export const wakeUpQueue = { name: "wake-ups", prefix: "service-api" }

type Closing = { close(): Promise<void> }

/** Publishes one wake-up of a queue at a time: those that come meanwhile are one more. */
function startPublisher(url: string, log: Log) {
  const redis = connect(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 1_000 })
  let isAway = false
  redis.on("error", (error) => {
    if (!isAway) log.warn({ error: error.message }, "Redis is away; workers look for work by themselves")
    isAway = true
  })
  redis.on("ready", () => {
    if (isAway) log.info({}, "Redis is back")
    isAway = false
  })
  let jobs: Queue | undefined
  const again = new Map<string, boolean>()

  async function add(queue: string): Promise<void> {
    if (redis.status !== "ready") return
    jobs ??= quiet(
      new Queue(wakeUpQueue.name, { prefix: wakeUpQueue.prefix, connection: redis, skipVersionCheck: true }),
    )
    try {
      await jobs.add(queue, {}, jobOptions(queue))
    } catch {
      // A BullMQ queue that failed while it connected never recovers.
      jobs = undefined
    }
  }

  async function publish(queue: string): Promise<void> {
    if (again.has(queue)) {
      again.set(queue, true)
      return
    }
    do {
      again.set(queue, false)
      await add(queue)
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

/** At most one wake-up of a queue waits, and one more is kept while one is being given. */
function jobOptions(queue: string) {
  return {
    deduplication: { id: queue.replaceAll(":", "-"), keepLastIfActive: true },
    removeOnComplete: true,
    removeOnFail: true,
  }
}

/** Takes wake-ups off the queue, and hears of all that any process took off. Starts anew when BullMQ gives up. */
function startListener(url: string, wake: (queue: string) => void): Closing {
  let closed = false
  let open: Closing | undefined

  async function listen(): Promise<void> {
    const connection = connect(url, { maxRetriesPerRequest: null })
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

/** A wake-up may be given twice, so a worker that died with one is no reason to fail it. */
const stalls = { lockDuration: 10_000, stalledInterval: 5_000, maxStalledCount: 10 }

/** The connection says when Redis is away; without a listener an error would end the process. */
function quiet<Emitter extends { on(event: "error", listener: () => void): unknown }>(
  emitter: Emitter,
): Emitter {
  emitter.on("error", () => {})
  return emitter
}

function connect(url: string, settings: Settings): Redis {
  return quiet(
    new Redis(url, {
      ...settings,
      connectTimeout: 2_000,
      keepAlive: 5_000,
      retryStrategy: (times: number) => Math.min(times * 100, 1_000),
    }),
  )
}

type Settings = { enableOfflineQueue?: boolean; maxRetriesPerRequest: number | null; commandTimeout?: number }
