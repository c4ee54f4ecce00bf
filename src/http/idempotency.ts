import { createHash } from "node:crypto"
import { and, eq } from "drizzle-orm"
import { type Given, query } from "../db/query.ts"
import { idempotencyKeys } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import type { Caller } from "../platform/caller.ts"
import type { Context } from "../platform/context.ts"
import { ApiError, formError } from "../platform/errors.ts"
import { reseal, type Secret, seal, unseal } from "../platform/sealing.ts"
import { canonicalJson } from "./canonical-json.ts"

/** A request with an idempotency key: the key, its scope, and a fingerprint of the request's content. */
export type KeyedRequest = { scope: string; key: string; operation: string; fingerprint: string }

/** A successful response as stored, without headers except `location`. */
export type KeptAnswer = { status: number; body: string; location: string | null }

/** Returns the request's key and fingerprint, or null without a key. Throws `validation.failed` on an invalid key. */
export function keyedRequest(
  request: Request,
  caller: Caller,
  asked: { operation: string; params: Record<string, string>; body: unknown },
): KeyedRequest | null {
  const header = request.headers.get("idempotency-key")
  if (header === null) return null
  const fingerprint = createHash("sha256")
    .update(canonicalJson([asked.operation, asked.params, asked.body]))
    .digest("hex")
  return { scope: scopeOf(caller), key: parseKey(header), operation: asked.operation, fingerprint }
}

/**
 * Returns the stored response to the same request, `conflict` if another request has the key, or null if it is free.
 */
export async function findKeptAnswer(
  context: Context,
  asked: KeyedRequest,
): Promise<KeptAnswer | "conflict" | null> {
  const [row] = await keyRow(context.db.read, asked)
  if (!row || isOver(row, context.clock())) return null
  return row.fingerprint === asked.fingerprint ? keptAnswer(context.config.service_secret, row) : "conflict"
}

/**
 * Claims the key, runs `work` and stores its response, all in the caller's database transaction. If the same request
 * came first, returns its stored response. Throws `idempotency.key_conflict` if the key belongs to another request, and
 * `idempotency.in_progress` if the same one has not finished.
 */
export async function answerOnce(
  turn: Turn,
  secret: Secret,
  asked: KeyedRequest,
  work: () => Promise<KeptAnswer>,
): Promise<KeptAnswer & { replayed: boolean }> {
  const first = await claimKey(turn, asked)
  if (first) return { ...requireSame(secret, first, asked), replayed: true }
  const answer = await work()
  await keepAnswer(turn.tx, {
    scope: asked.scope,
    key: asked.key,
    response_status: answer.status,
    response_location: answer.location,
    sealed_body: seal(secret, purpose, boundTo(asked), answer.body),
  })
  return { ...answer, replayed: false }
}

/** The fingerprints of the keyed requests that this process is running now, by scope and key. */
export type Running = Map<string, string>

/**
 * Holds the key while `work` runs. Throws `idempotency.in_progress` if the same request is running, and
 * `idempotency.key_conflict` if another one holds the key.
 */
export async function holdingKey<T>(
  running: Running,
  asked: KeyedRequest,
  work: () => Promise<T>,
): Promise<T> {
  const name = boundTo(asked)
  const other = running.get(name)
  if (other !== undefined)
    throw new ApiError(other === asked.fingerprint ? "idempotency.in_progress" : "idempotency.key_conflict")
  running.set(name, asked.fingerprint)
  try {
    return await work()
  } finally {
    running.delete(name)
  }
}

type KeyRow = typeof idempotencyKeys.$inferSelect

/**
 * Returns null if this request now has the key, else the row of the request that came first. Takes over a row that is
 * older than a day. Throws `idempotency.in_progress` if another request claims the key at the same time.
 */
async function claimKey(turn: Turn, asked: KeyedRequest): Promise<KeyRow | null> {
  const ours = {
    ...asked,
    response_status: null,
    response_location: null,
    sealed_body: null,
    created_at: turn.at,
  }
  const inserted = await insertKey(turn.tx, ours)
  if (inserted.length > 0) return null
  const [row] = await keyRow(turn.tx, asked)
  if (!row) throw new ApiError("idempotency.in_progress")
  if (!isOver(row, turn.at)) return row
  const taken = await takeKey(turn.tx, { ...ours, seen_at: row.created_at })
  if (taken.length > 0) return null
  throw new ApiError("idempotency.in_progress")
}

function requireSame(secret: Secret, row: KeyRow, asked: KeyedRequest): KeptAnswer {
  if (row.fingerprint !== asked.fingerprint) throw new ApiError("idempotency.key_conflict")
  const answer = keptAnswer(secret, row)
  if (!answer) throw new ApiError("idempotency.in_progress")
  return answer
}

function keptAnswer(secret: Secret, row: KeyRow): KeptAnswer | null {
  if (row.response_status === null || row.sealed_body === null) return null
  return {
    status: row.response_status,
    location: row.response_location,
    body: unseal(secret, purpose, boundTo(row), row.sealed_body),
  }
}

/** Reseals a stored response with the current secret; returns null if it already is. Throws `SealBroken`. */
export function resealKeptAnswer(
  secret: Secret,
  row: { scope: string; key: string; sealed_body: string },
): string | null {
  return reseal(secret, purpose, boundTo(row), row.sealed_body)
}

const purpose = "kept answers"
/** How long a response is stored. */
export const keptMilliseconds = 24 * 60 * 60 * 1000

function isOver(row: KeyRow, now: Date): boolean {
  return now.getTime() - row.created_at.getTime() >= keptMilliseconds
}

function boundTo(asked: { scope: string; key: string }): string {
  return `${asked.scope} ${asked.key}`
}

function ofKey({ scope, key }: Given<{ scope: string; key: string }>) {
  return and(eq(idempotencyKeys.scope, scope), eq(idempotencyKeys.key, key))
}

const keyRow = query((db, given: Given<{ scope: string; key: string }>) =>
  db.select().from(idempotencyKeys).where(ofKey(given)),
)

const insertKey = query((db, row: Given<KeyRow>) =>
  db.insert(idempotencyKeys).values(row).onConflictDoNothing().returning({ key: idempotencyKeys.key }),
)

const takeKey = query((db, { seen_at, ...row }: Given<KeyRow & { seen_at: Date }>) =>
  db
    .update(idempotencyKeys)
    .set(row)
    .where(and(ofKey(row), eq(idempotencyKeys.created_at, seen_at)))
    .returning({ key: idempotencyKeys.key }),
)

type Kept = Pick<KeyRow, "scope" | "key" | "response_status" | "response_location" | "sealed_body">

const keepAnswer = query((db, { scope, key, ...answer }: Given<Kept>) =>
  db.update(idempotencyKeys).set(answer).where(ofKey({ scope, key })),
)

/** Returns the scope of a caller's keys. An organization's API keys share one, so that rotation breaks no retry. */
function scopeOf(caller: Caller): string {
  return caller.kind === "api_key"
    ? `organization:${caller.organization_id}`
    : `${caller.kind}:${caller.credential_id}`
}

/**
 * Checks for visible ASCII without commas, which would join two headers, and drops one pair of quotes around it. Throws
 * `validation.failed`.
 */
function parseKey(header: string): string {
  const key = header.match(/^"(.*)"$/)?.[1] ?? header
  if (/^[!-+\--~]{1,255}$/.test(key)) return key
  throw formError("Idempotency-Key takes 1 to 255 visible ASCII characters without spaces and commas, once.")
}
