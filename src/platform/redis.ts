import type { Redis } from "ioredis"
import type { Log } from "./log.ts"

/** Connects for commands that fail without a response in time, and at once while Redis is away. */
export function connectRedis(url: string, patienceMilliseconds: number): Redis {
  const impatience = {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: patienceMilliseconds,
    // A server that vanished silently would make each command time out and keep its connection.
    socketTimeout: silenceMilliseconds,
  }
  return keepToDatabase(quiet(new (loadRedis())(url, { ...usual, ...impatience })))
}

/** Connects for commands that wait for Redis indefinitely, as BullMQ's workers do. */
export function connectWaitingRedis(url: string): Redis {
  const patience = { maxRetriesPerRequest: null, socketTimeout: longSilenceMilliseconds }
  return keepToDatabase(quiet(new (loadRedis())(url, { ...usual, ...patience })))
}

const silenceMilliseconds = 2_000
/** BullMQ's blocking commands return after ten seconds at the latest. */
const longSilenceMilliseconds = 15_000

/** Loads the client, which takes 3 MB of memory, only if Redis is used. */
function loadRedis() {
  return (require("ioredis") as typeof import("ioredis")).Redis
}

/**
 * Treats a Redis without the URL's database as one that is away. The client would go on in database 0, which may belong
 * to somebody else; and so would the further connections that BullMQ makes of this one.
 */
function keepToDatabase(redis: Redis): Redis {
  redis.on("error", () => {
    // Not yet ready: every other error ends such a connection anyway, and each server words this one differently.
    if (redis.status === "connect") redis.disconnect(true)
  })
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = (options) => keepToDatabase(duplicate(options))
  return redis
}

/** Logs once when Redis goes away, with the consequence, and once when it is back. */
export function sayWhenAway(redis: Redis, log: Log, consequence: string): void {
  let isAway = false
  let closings = 0
  const sayAway = (error: string) => {
    if (!isAway) log.warn({ error }, `Redis is unreachable; ${consequence}`)
    isAway = true
  }
  redis.on("error", (error) => sayAway(error.message))
  // A proxy without a server behind it closes connections without an error, and a server only those that are idle.
  redis.on("reconnecting", () => {
    closings++
    if (closings > 1) sayAway("connections are closed at once")
  })
  redis.on("ready", () => {
    if (isAway) log.info({}, "Redis is reachable again")
    isAway = false
    closings = 0
  })
}

/** Returns a function that logs, at most once a minute, that Redis rejects commands, as a full or demoted one does. */
export function sayWhenRefused(log: Log, steadyClock: () => number, consequence: string) {
  let said_at = Number.NEGATIVE_INFINITY
  return (error: unknown): void => {
    // `sayWhenAway` logs when there is no response.
    if (!(error instanceof Error) || error.name !== "ReplyError") return
    if (steadyClock() - said_at < 60_000) return
    said_at = steadyClock()
    log.warn({ error: error.message }, `Redis refuses commands; ${consequence}`)
  }
}

/** Adds an error listener, without which an error would end the process. */
export function quiet<Emitter extends { on(event: "error", listener: () => void): unknown }>(
  emitter: Emitter,
): Emitter {
  emitter.on("error", () => {})
  return emitter
}

const usual = {
  connectTimeout: 2_000,
  keepAlive: 5_000,
  // A demoted server keeps its connections but rejects writes.
  reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  retryStrategy: (times: number) => Math.min(times * 100, 1_000),
}
