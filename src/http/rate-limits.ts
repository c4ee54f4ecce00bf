import type { Caller } from "../platform/caller.ts"
import type { Context } from "../platform/context.ts"
import { connectRedis, sayWhenAway, sayWhenRefused } from "../platform/redis.ts"
import { type Bucket, createBuckets } from "./buckets.ts"

/** Counts what callers do, each kind in its own buckets, and returns the bucket after the count. */
export type RateLimits = {
  /** Counts a request of a known caller. A publishable key has many users, so it counts per client address. */
  countRequest(caller: Caller, clientAddress: () => string): Promise<Bucket>
  /** Counts a token that is no credential of this service, or a key that was revoked or has expired. */
  countFailedCredential(clientAddress: string): Promise<Bucket>
  /** Counts a wrong guess of a value that only the chip can know. */
  countRefusedValue(name: string): Promise<Bucket>
  /** Counts a page view: a tap URL or a token's metadata. */
  countPage(bucket: "tap_redirect" | "metadata", clientAddress: string): Promise<Bucket>
  /** Returns the tighter of an organization's buckets for number and size of stored responses. Counts nothing. */
  keptAnswers(organization_id: string): Promise<Bucket>
  countKeptAnswer(organization_id: string, bytes: number): Promise<void>
  close(): void
}

/** The average size allowed for a stored response: 16 MiB per thousand. */
const keptAnswerBytes = (16 * 1024 * 1024) / 1_000

/**
 * Keeps buckets in memory, or in Redis when there are several processes. While Redis is down, each counts for itself.
 */
export function createRateLimits({
  config,
  log,
  steadyClock,
}: Pick<Context, "config" | "log" | "steadyClock">): RateLimits {
  // A request never waits for a Redis that is down: the buckets in memory take over.
  const redis = config.redis_url === null ? null : connectRedis(config.redis_url, 250)
  const consequence = "each process counts rate limits for itself"
  if (redis) sayWhenAway(redis, log, consequence)
  const bucketsOf = createBuckets(redis, steadyClock, sayWhenRefused(log, steadyClock, consequence))
  const buckets = mapValues(config.rate_limits, (limit, name) => bucketsOf(name, limit))
  const { requests, seconds } = config.rate_limits.kept_answer
  const keptBytes = bucketsOf("kept_bytes", { requests: Math.ceil(requests * keptAnswerBytes), seconds })
  return {
    countRequest: ({ kind, credential_id }, clientAddress) =>
      buckets[kind].count(kind === "publishable_key" ? `${credential_id} ${clientAddress()}` : credential_id),
    countFailedCredential: (clientAddress) => buckets.failed_credential.count(clientAddress),
    countRefusedValue: (name) => buckets.refused_value.count(name),
    countPage: (bucket, clientAddress) => buckets[bucket].count(clientAddress),
    async keptAnswers(organization_id) {
      const [answers, bytes] = await Promise.all([
        buckets.kept_answer.look(organization_id),
        keptBytes.look(organization_id),
      ])
      return bytes.milliseconds_until_next > answers.milliseconds_until_next ? bytes : answers
    },
    async countKeptAnswer(organization_id, bytes) {
      await Promise.all([
        buckets.kept_answer.charge(organization_id, 1),
        keptBytes.charge(organization_id, bytes),
      ])
    },
    close: () => redis?.disconnect(),
  }
}

/** Returns `X-RateLimit-*`, with the reset in Unix seconds, and `Retry-After` if the bucket is exhausted. */
export function headersOf(bucket: Bucket, now: Date): Record<string, string> {
  const { limit, remaining, milliseconds_until_reset, milliseconds_until_next, is_exhausted } = bucket
  return {
    "x-ratelimit-limit": `${limit}`,
    "x-ratelimit-remaining": `${remaining}`,
    "x-ratelimit-reset": `${Math.ceil((now.getTime() + milliseconds_until_reset) / 1000)}`,
    ...(is_exhausted && { "retry-after": `${Math.max(1, Math.ceil(milliseconds_until_next / 1000))}` }),
  }
}

function mapValues<Key extends string, Value, Result>(
  record: Record<Key, Value>,
  change: (value: Value, key: Key) => Result,
): Record<Key, Result> {
  const entries = (Object.entries(record) as [Key, Value][]).map(([key, value]) => [key, change(value, key)])
  return Object.fromEntries(entries) as Record<Key, Result>
}
