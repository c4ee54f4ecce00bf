import { Redis } from "ioredis"
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible"
import type { Caller } from "../caller.ts"
import type { Config, RateLimit } from "../config.ts"
import type { Log } from "../log.ts"

/** Counts what callers do, each kind in buckets of its own. Every function answers the bucket after the count. */
export type RateLimits = {
  /** A request of a known caller: a publishable key is shared by many, so it counts for each client address. */
  countRequest(caller: Caller, clientAddress: () => string): Promise<Bucket>
  /** A credential that nobody ever had, or that was revoked. */
  countFailedCredential(clientAddress: string): Promise<Bucket>
  /** A value of `e` that is not from the chip. */
  countRefusedValue(chipId: string): Promise<Bucket>
  close(): void
}

/** How full a bucket is. `overfull` when this very count is one too many. */
export type Bucket = { limit: number; remaining: number; milliseconds_until_reset: number; overfull: boolean }

/** Buckets in memory, or in Redis for several processes; while Redis is away each process counts for itself. */
export function createRateLimits(config: Pick<Config, "rate_limits" | "redis_url">, log: Log): RateLimits {
  const redis = config.redis_url === null ? null : connect(config.redis_url, log)
  const counters = mapValues(config.rate_limits, (limit, name) => counterOf(redis, name, limit))
  return {
    countRequest: ({ kind, credential_id }, clientAddress) =>
      counters[kind](kind === "publishable_key" ? `${credential_id} ${clientAddress()}` : credential_id),
    countFailedCredential: (clientAddress) => counters.failed_credential(clientAddress),
    countRefusedValue: (chipId) => counters.refused_value(chipId),
    close: () => redis?.disconnect(),
  }
}

/** `X-RateLimit-*` as integrators know it, the reset in Unix seconds; `Retry-After` once it is too much. */
export function headersOf(bucket: Bucket, now: Date): Record<string, string> {
  const { limit, remaining, milliseconds_until_reset, overfull } = bucket
  return {
    "x-ratelimit-limit": `${limit}`,
    "x-ratelimit-remaining": `${remaining}`,
    "x-ratelimit-reset": `${Math.ceil((now.getTime() + milliseconds_until_reset) / 1000)}`,
    ...(overfull && { "retry-after": `${Math.max(1, Math.ceil(milliseconds_until_reset / 1000))}` }),
  }
}

type Counter = (key: string) => Promise<Bucket>

function counterOf(redis: Redis | null, name: string, { requests, seconds }: RateLimit): Counter {
  const settings = { keyPrefix: `service-api:rate:${name}`, points: requests, duration: seconds }
  const inMemory = new RateLimiterMemory(settings)
  const limiter = redis
    ? new RateLimiterRedis({
        ...settings,
        storeClient: redis,
        rejectIfRedisNotReady: true,
        insuranceLimiter: inMemory,
      })
    : inMemory
  const bucketOf = (count: RateLimiterRes, overfull: boolean): Bucket => ({
    limit: requests,
    remaining: count.remainingPoints,
    milliseconds_until_reset: Math.max(0, count.msBeforeNext),
    overfull,
  })
  return async (key) => {
    try {
      return bucketOf(await limiter.consume(key), false)
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return bucketOf(refusal, true)
      throw refusal
    }
  }
}

/** A request never waits for a Redis that is away: the counter in memory takes over at once. */
function connect(url: string, log: Log): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 250,
    connectTimeout: 2_000,
    retryStrategy: (times: number) => Math.min(times * 100, 1_000),
  })
  let isAway = false
  redis.on("error", (error) => {
    if (!isAway) log.warn({ error: error.message }, "Redis is away; each process limits rates for itself")
    isAway = true
  })
  redis.on("ready", () => {
    isAway = false
  })
  return redis
}

function mapValues<Key extends string, Value, Result>(
  record: Record<Key, Value>,
  change: (value: Value, key: Key) => Result,
): Record<Key, Result> {
  const entries = (Object.entries(record) as [Key, Value][]).map(([key, value]) => [key, change(value, key)])
  return Object.fromEntries(entries) as Record<Key, Result>
}
