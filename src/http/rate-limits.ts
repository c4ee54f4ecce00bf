import type { Redis } from "ioredis"
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible"
import type { Caller } from "../platform/caller.ts"
import type { Config, RateLimit } from "../platform/config.ts"
import type { Log } from "../platform/log.ts"
import { connectRedis, sayWhenAway } from "../platform/redis.ts"

/** Counts what callers do, each kind in buckets of its own, and answers the bucket after the count. */
export type RateLimits = {
  /** A request of a known caller: a publishable key is shared by many, so it counts for each client address. */
  countRequest(caller: Caller, clientAddress: () => string): Promise<Bucket>
  /** A credential that nobody ever had, of whatever kind or of none, or one that was revoked. */
  countFailedCredential(clientAddress: string): Promise<Bucket>
  /** A guess at what only the thing of this name can know. */
  countRefusedValue(name: string): Promise<Bucket>
  /** A page that somebody opened: a chip's address, or what a token shows. */
  countPage(bucket: "tap_redirect" | "metadata", clientAddress: string): Promise<Bucket>
  /** How much an organization has had kept: the fuller one of answers and their bytes, without counting anything. */
  keptAnswers(organization_id: string): Promise<Bucket>
  countKeptAnswer(organization_id: string, bytes: number): Promise<void>
  close(): void
}

/** What an answer that is kept may have on average: 16 MiB are a thousand answers of these many bytes. */
const keptAnswerBytes = (16 * 1024 * 1024) / 1_000

/** How full a bucket is. `overfull` when this very count is one too many. */
export type Bucket = { limit: number; remaining: number; milliseconds_until_reset: number; overfull: boolean }

/** Buckets in memory, or in Redis for several processes; while Redis is away each process counts for itself. */
export function createRateLimits(config: Pick<Config, "rate_limits" | "redis_url">, log: Log): RateLimits {
  // A request never waits for a Redis that is away: the counters in memory take over at once.
  const redis = config.redis_url === null ? null : connectRedis(config.redis_url, 250)
  if (redis) sayWhenAway(redis, log, "each process limits rates for itself")
  const counters = mapValues(config.rate_limits, (limit, name) => counterOf(redis, name, limit))
  const { requests, seconds } = config.rate_limits.kept_answer
  const keptBytes = counterOf(redis, "kept_bytes", {
    requests: Math.ceil(requests * keptAnswerBytes),
    seconds,
  })
  return {
    countRequest: ({ kind, credential_id }, clientAddress) =>
      counters[kind].count(
        kind === "publishable_key" ? `${credential_id} ${clientAddress()}` : credential_id,
      ),
    countFailedCredential: (clientAddress) => counters.failed_credential.count(clientAddress),
    countRefusedValue: (name) => counters.refused_value.count(name),
    countPage: (bucket, clientAddress) => counters[bucket].count(clientAddress),
    async keptAnswers(organization_id) {
      const [answers, bytes] = await Promise.all([
        counters.kept_answer.look(organization_id),
        keptBytes.look(organization_id),
      ])
      return bytes.overfull ? bytes : answers
    },
    async countKeptAnswer(organization_id, bytes) {
      await Promise.all([
        counters.kept_answer.count(organization_id),
        keptBytes.count(organization_id, bytes),
      ])
    },
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

type Counter = {
  count(key: string, points?: number): Promise<Bucket>
  /** Counts nothing; overfull when the next one would be one too many. */
  look(key: string): Promise<Bucket>
}

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
  return {
    async count(key, points = 1) {
      try {
        return bucketOf(await limiter.consume(key, points), false)
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return bucketOf(refusal, true)
        throw refusal
      }
    },
    async look(key) {
      const count = await limiter.get(key)
      if (!count)
        return { limit: requests, remaining: requests, milliseconds_until_reset: 0, overfull: false }
      return bucketOf(count, count.remainingPoints <= 0)
    },
  }
}

function mapValues<Key extends string, Value, Result>(
  record: Record<Key, Value>,
  change: (value: Value, key: Key) => Result,
): Record<Key, Result> {
  const entries = (Object.entries(record) as [Key, Value][]).map(([key, value]) => [key, change(value, key)])
  return Object.fromEntries(entries) as Record<Key, Result>
}
