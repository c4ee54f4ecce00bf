import type { Authenticate, FoundCaller } from "../../http/answer.ts"
import type { Caller, CredentialKind } from "../../platform/caller.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { hashOf, isWellFormed, kindOf } from "../../platform/credentials.ts"
import { ApiError } from "../../platform/errors.ts"
import { expireSessionToken, findSessionToken, isLive } from "../session-tokens/service.ts"
import { findActiveApiKey, findActivePublishableKey, type HeldKey } from "./held-key.ts"

/**
 * Returns a function that authenticates against the database. Keys are cached for 3 seconds; sessions are looked up
 * every time. The function throws `auth.unauthorized` or `session_token.invalid_or_expired`.
 */
export function createAuthenticate(context: Context): Authenticate {
  const known = new Map<string, { caller: FoundCaller; until: number }>()

  async function rememberedKey(token: string, look: Look): Promise<FoundCaller | null> {
    const now = context.steadyClock()
    const hash = hashOf(token)
    const remembered = known.get(hash)
    if (remembered && now < remembered.until) return remembered.caller
    known.delete(hash)
    const caller = isWellFormed(token) ? await look(context, token) : null
    if (!caller) return null
    if (known.size >= rememberedKeys) known.clear()
    known.set(hash, { caller, until: now + rememberedMilliseconds })
    return caller
  }

  return async (request, requestId, accepted, onUnknown) => {
    const token = bearerToken(request)
    const kind = kindOf(token)
    if (!kind) await onUnknown()
    if (!kind || !accepted.includes(kind)) throw wrongKind(kind, accepted)
    const caller =
      kind === "session_token"
        ? await findSession(context, requestId, token)
        : await rememberedKey(token, kind === "api_key" ? findApiKey : findPublishableKey)
    if (caller) return caller
    await onUnknown()
    throw kind === "session_token"
      ? new ApiError("session_token.invalid_or_expired")
      : new ApiError("auth.unauthorized", "The key is unknown, revoked or expired.")
  }
}

type Look = (context: Context, token: string) => Promise<FoundCaller | null>

const rememberedMilliseconds = 3_000
const rememberedKeys = 10_000

/**
 * Returns the bearer token of the only `Authorization` header: two would be joined by a comma, which no token contains.
 * The scheme is case-insensitive (RFC 9110, section 11.1). Throws `auth.unauthorized`.
 */
function bearerToken(request: Request): string {
  const header = request.headers.get("authorization")
  const token = header?.match(/^bearer ([^\s,]+)$/i)?.[1]
  if (!token)
    throw new ApiError("auth.unauthorized", "Send one header of the form Authorization: Bearer <token>.")
  return token
}

function wrongKind(kind: CredentialKind | null, accepted: readonly CredentialKind[]): ApiError {
  const needed = accepted.map((each) => named[each]).join(" or ")
  const sent = kind ? named[kind].replace(/ \(.*/, "") : "something else"
  return new ApiError("auth.unauthorized", `This operation needs ${needed}; you sent ${sent}.`)
}

const named = {
  api_key: "an API key (end_sk_…)",
  session_token: "a session token (end_sess_…)",
  publishable_key: "a publishable key (end_pk_live_…)",
} as const satisfies Record<CredentialKind, string>

async function findApiKey(context: Context, token: string): Promise<FoundCaller | null> {
  const key = await findActiveApiKey(context.db.read, hashOf(token), context.clock())
  return key && holderOf("api_key", key)
}

async function findPublishableKey(context: Context, token: string): Promise<FoundCaller | null> {
  const key = await findActivePublishableKey(context.db.read, token, context.clock())
  return key && holderOf("publishable_key", key)
}

function holderOf(
  kind: "api_key" | "publishable_key",
  { id, organization_id, suspended_at }: HeldKey,
): FoundCaller {
  const caller: Caller = { organization_id, kind, credential_id: id, session: null }
  return { ...caller, is_suspended: suspended_at !== null }
}

/** Returns null if there never was such a session. Throws `session_token.invalid_or_expired` if it has ended. */
async function findSession(context: Context, requestId: string, token: string): Promise<FoundCaller | null> {
  const session = isWellFormed(token) ? await findSessionToken(context.db.read, hashOf(token)) : null
  if (!session) return null
  const { id, organization_id, status, chip_id, unit_id, expires_at, suspended_at } = session
  if (!isLive(session, context.clock())) {
    if (status === "valid") await inTurn(context, requestId, (turn) => expireSessionToken(turn, id))
    throw new ApiError("session_token.invalid_or_expired")
  }
  return {
    organization_id,
    kind: "session_token",
    credential_id: id,
    session: { chip_id, unit_id, expires_at },
    is_suspended: suspended_at !== null,
  }
}
