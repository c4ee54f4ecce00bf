import type { Redis } from "ioredis"
import type { RateLimit } from "../platform/config.ts"

/**
 * The token buckets of one limit, one per key. A full bucket has `requests` points; an empty one refills evenly over
 * `seconds`.
 */
type Buckets = {
  /** Takes a point if there is one. */
  count(key: string): Promise<Bucket>
  /** Takes nothing; exhausted if there is no point for the next request. */
  look(key: string): Promise<Bucket>
  /** Takes these points even if there are too few; refilling then starts below zero. */
  charge(key: string, points: number): Promise<void>
}

/**
 * The state of a bucket. `remaining`: the points left; `is_exhausted`: there was none for this request;
 * `milliseconds_until_next`: until there is one again; `milliseconds_until_reset`: until it is full.
 */
export type Bucket = {
  limit: number
  remaining: number
  milliseconds_until_reset: number
  milliseconds_until_next: number
  is_exhausted: boolean
}

/**
 * Returns a function that creates the buckets of a named limit: in Redis, by its clock, or in memory if there is no
 * Redis or it does not respond.
 */
export function createBuckets(
  redis: Redis | null,
  steadyClock: () => number,
  onFailure: (error: unknown) => void = () => {},
): (name: string, limit: RateLimit) => Buckets {
  const ask = redis && askingRedis(redis)
  return (name, limit) => {
    const inMemory = takeInMemory(limit, steadyClock)
    const otherwise = { take: inMemory, onFailure }
    return bucketsOf(limit, ask ? takeInRedis(ask, name, limit, otherwise) : inMemory)
  }
}

/**
 * Takes points unless more than `most` would then be taken. Returns how many were taken before: a full bucket, from
 * which none is taken, needs no entry.
 */
type Take = (key: string, points: number, most: number) => number | Promise<number>

function bucketsOf({ requests, seconds }: RateLimit, take: Take): Buckets {
  const most = requests + roundingTolerance
  const millisecondsFor = (points: number) => (points * seconds * 1_000) / requests
  const bucketOf = (taken: number, missing: number): Bucket => ({
    limit: requests,
    remaining: Math.max(0, Math.floor(most - taken)),
    milliseconds_until_reset: millisecondsFor(taken),
    milliseconds_until_next: millisecondsFor(Math.max(0, missing)),
    is_exhausted: missing > 0,
  })
  return {
    async count(key) {
      const taken = await take(key, 1, most)
      const missing = taken + 1 - most
      return bucketOf(missing > 0 ? taken : taken + 1, missing)
    },
    async look(key) {
      const taken = await take(key, 0, most)
      return bucketOf(taken, taken + 1 - most)
    },
    async charge(key, points) {
      await take(key, points, Number.MAX_SAFE_INTEGER)
    },
  }
}

/** In points. */
const roundingTolerance = 1e-6

function takeInMemory({ requests, seconds }: RateLimit, steadyClock: () => number): Take {
  const milliseconds = seconds * 1_000
  let recent = new Map<string, { taken: number; at: number }>()
  let earlier = recent
  let since = steadyClock()
  return (key, points, most) => {
    const now = steadyClock()
    // A bucket untouched for this long is full again, which equals having no entry.
    if (now - since >= milliseconds || recent.size >= mostRecent) {
      earlier = recent
      recent = new Map()
      since = now
    }
    const bucket = recent.get(key) ?? earlier.get(key)
    const taken = bucket ? Math.max(0, bucket.taken - ((now - bucket.at) * requests) / milliseconds) : 0
    if (points > 0 && taken + points <= most) recent.set(key, { taken: taken + points, at: now })
    return taken
  }
}

/** Per generation, of which two are kept: bounds the memory of a limit however many addresses send requests. */
const mostRecent = 50_000

function takeInRedis(
  ask: AskRedis,
  name: string,
  { requests, seconds }: RateLimit,
  otherwise: { take: Take; onFailure: (error: unknown) => void },
): Take {
  return async (key, points, most) => {
    try {
      return Number(await ask(`service-api:bucket:${name}:${key}`, points, most, requests, seconds))
    } catch (error) {
      otherwise.onFailure(error)
      return await otherwise.take(key, points, most)
    }
  }
}

type AskRedis = (
  key: string,
  points: number,
  most: number,
  requests: number,
  seconds: number,
) => Promise<string>

function askingRedis(redis: Redis): AskRedis {
  redis.defineCommand("takeOfBucket", { numberOfKeys: 1, lua: takeOfBucket })
  return (...given) => (redis as Redis & { takeOfBucket: AskRedis }).takeOfBucket(...given)
}

/** The same as `takeInMemory`. An entry with a time in the future is from before Redis's clock was set back. */
const takeOfBucket = `
local points, most, requests, seconds = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local bucket = redis.call("HMGET", KEYS[1], "taken", "at")
local taken = 0
if bucket[1] and tonumber(bucket[2]) <= now then
  taken = math.max(0, bucket[1] - (now - bucket[2]) * requests / (seconds * 1000000))
end
if points > 0 and taken + points <= most then
  redis.call("HSET", KEYS[1], "taken", taken + points, "at", now)
  redis.call("PEXPIRE", KEYS[1], math.ceil((taken + points) * seconds * 1000 / requests))
end
return string.format("%.17g", taken)
`
