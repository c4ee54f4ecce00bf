import type { Turn } from "../db/turn.ts"
import { createOpenWorkLimit, type WithinOpenWork } from "../engine/actors/open-work.ts"
import type { Caller, CredentialKind } from "../platform/caller.ts"
import { type Context, inTurn } from "../platform/context.ts"
import { ApiError, TooSoon } from "../platform/errors.ts"
import { readBody } from "./body.ts"
import type { Bucket } from "./buckets.ts"
import type { ClientOf } from "./client-address.ts"
import type { CorsOrigins } from "./cors.ts"
import type { Answer, StreamAnswer, TextStream } from "./envelope.ts"
import {
  answerOnce,
  findKeptAnswer,
  holdingKey,
  type KeptAnswer,
  type KeyedRequest,
  keyedRequest,
  type Running,
} from "./idempotency.ts"
import { holdToOwnOrigins } from "./origin.ts"
import { readQuery } from "./query.ts"
import { headersOf, type RateLimits } from "./rate-limits.ts"
import type { AnyInput, Outcome, ReadRun, Route, WriteRun } from "./route.ts"
import { refuse } from "./validate.ts"

/** One request in progress: what its log line says and what every response to it carries. */
export type Visit = {
  request_id: string
  operation: string | null
  caller: Caller | null
  /** Headers of the response, whatever the outcome. */
  headers: Record<string, string | number>
  /** The origin of the page that may read the response, or null. */
  readable_from: string | null
  /** Returns the IP address that the connection came from. */
  peer(): string
}

/** Returns the response to a request for a route, or throws. `params` are the path parameters as sent. */
type AnswerRequest = (
  route: Route,
  request: Request,
  params: Record<string, string>,
  visit: Visit,
) => Promise<Answer | StreamAnswer>

/**
 * Identifies the caller, or throws, before anything else in the request is examined. For an unknown credential,
 * `onUnknown` is called first and may throw an error of its own.
 */
export type Authenticate = (
  request: Request,
  requestId: string,
  accepted: readonly CredentialKind[],
  onUnknown: () => Promise<void>,
) => Promise<FoundCaller>

/** A caller with a valid credential, even if its organization is suspended. */
export type FoundCaller = Caller & { is_suspended: boolean }

/** What requests are checked against, and the signal that ends them. */
type Checks = {
  limits: RateLimits
  clientOf: ClientOf
  authenticate: Authenticate
  origins: CorsOrigins
  /** Ends the open streams. */
  stopping: AbortSignal
}

/**
 * Returns the function that checks and runs every request. The order is part of the API: credential, origin, body,
 * stored response, schema, idempotency key, and only then the operation itself.
 */
export function createAnswerRequest(
  context: Context,
  { limits, clientOf, authenticate, origins, stopping }: Checks,
): AnswerRequest {
  const running: Running = new Map()
  const withinOpenWork = createOpenWorkLimit(context.config.open_work_limit)

  /** Sets the rate limit headers from the bucket. Throws `rate_limit.exceeded` if it is exhausted. */
  function holdTo(bucket: Bucket, visit: Visit): void {
    Object.assign(visit.headers, headersOf(bucket, context.clock()))
    if (bucket.is_exhausted) throw new ApiError("rate_limit.exceeded")
  }

  /** Counts a guess, and shows its bucket if that is tighter than `requests`, where the request itself was counted. */
  async function countGuess(name: string, requests: Bucket, visit: Visit): Promise<void> {
    const bucket = await limits.countRefusedValue(name)
    if (bucket.is_exhausted || bucket.remaining < requests.remaining) holdTo(bucket, visit)
  }

  /** Shows the bucket only if it is exhausted, since the request itself was counted in another one. */
  async function holdToKeptAnswers({ organization_id }: Caller, visit: Visit): Promise<void> {
    const bucket = await limits.keptAnswers(organization_id)
    if (bucket.is_exhausted) holdTo(bucket, visit)
  }

  /** Shows an exhausted bucket for a limit without one, such as refreshes of a collection or pending on-chain work. */
  function showExhausted(refusal: ApiError, requests: Bucket, visit: Visit): void {
    // With too much on-chain work or too many streams, some of it ends within seconds.
    const left = refusal instanceof TooSoon ? refusal.milliseconds_left : 5_000
    const times = { milliseconds_until_reset: left, milliseconds_until_next: left }
    const exhausted = { ...requests, ...times, remaining: 0, is_exhausted: true }
    Object.assign(visit.headers, headersOf(exhausted, context.clock()))
  }

  /** Identifies the caller, counts the request and checks its origin. Throws if any of these rejects it. */
  async function admit(
    route: Route,
    request: Request,
    visit: Visit,
  ): Promise<{ caller: Caller; requests: Bucket }> {
    const client = () => clientOf(request, visit.peer())
    const { is_suspended, ...caller } = await authenticate(
      request,
      visit.request_id,
      route.credentials,
      async () => {
        const bucket = await limits.countFailedCredential(client())
        if (bucket.is_exhausted) holdTo(bucket, visit)
      },
    )
    visit.caller = caller
    const requests = await limits.countRequest(caller, client)
    holdTo(requests, visit)
    if (is_suspended) throw new ApiError("auth.forbidden", suspended)
    holdToOwnOrigins(origins, caller, request, visit)
    return { caller, requests }
  }

  /** Handles a rejection by the operation: says when to retry, and counts a guess if it was one. */
  async function noteRefusal(
    error: unknown,
    { route, body, requests }: { route: Route; body: unknown; requests: Bucket },
    visit: Visit,
  ): Promise<void> {
    if (error instanceof ApiError && error.code === "rate_limit.exceeded")
      showExhausted(error, requests, visit)
    const { counts_refusals } = route
    if (!counts_refusals || !(error instanceof ApiError)) return
    const guessed = counts_refusals.against(error)
    if (guessed === null) return
    await countGuess(guessed, requests, visit)
    if (!route.moves_nothing(body)) await counts_refusals.note(context, error, visit.request_id)
  }

  return async (route, request, params, visit) => {
    const { run } = route
    visit.operation = route.operation
    if (run.kind === "open") {
      const { body, headers } = await run.answer(context, visit.request_id)
      const answer = success(route, { body })
      return { ...answer, headers: { ...answer.headers, ...headers } }
    }

    const { caller, requests } = await admit(route, request, visit)
    const body = route.body ? await readBody(request) : undefined
    const given = canonicalParams(route, params)
    const asked = { operation: route.operation, params: given, body }
    const sent = route.idempotent ? keyedRequest(request, caller, asked) : null
    const keyed = route.moves_nothing(body) ? null : sent
    const kept = keyed && (await findKeptAnswer(context, keyed))
    if (kept && kept !== "conflict") return replay(kept)

    const input = { params: given, query: readQuery(request.url), body }
    checkForm(route, input, caller)
    if (kept === "conflict") throw new ApiError("idempotency.key_conflict")
    if (keyed) await holdToKeptAnswers(caller, visit)
    try {
      if (run.kind === "stream") {
        const last_event_id = request.headers.get("last-event-id")
        return streamed(await run.open(context, caller, input, { last_event_id, stopping }))
      }
      const passed = { route, caller, input, keyed, request_id: visit.request_id }
      const ask = () =>
        run.kind === "read"
          ? answerRead(context, run, passed)
          : answerWrite(context, withinOpenWork, run, passed)
      const answer = keyed ? await holdingKey(running, keyed, ask) : await ask()
      if (keyed && !("idempotent-replayed" in answer.headers))
        await limits.countKeptAnswer(caller.organization_id, Buffer.byteLength(answer.body ?? ""))
      if (route.changes_origins) origins.forget()
      return answer
    } catch (error) {
      await noteRefusal(error, { route, body, requests }, visit)
      throw error
    }
  }
}

const suspended = "The organization is suspended: ask the operator of the service to resume it."

function canonicalParams(route: Route, params: Record<string, string>): Record<string, string> {
  const caseOf = (name: string) => route.params.properties[name]?.["x-case"]
  return Object.fromEntries(
    Object.entries(params).map(([name, text]) => [
      name,
      // ASCII letters only: some other letters fold to ASCII and would make an invalid id valid.
      text.replace(/[A-Za-z]+/g, (letters) =>
        caseOf(name) === "upper" ? letters.toUpperCase() : letters.toLowerCase(),
      ),
    ]),
  )
}

/** Throws `validation.failed` unless query, path parameters and body match their schemas. */
function checkForm(route: Route, { params, query, body }: AnyInput, caller: Caller): void {
  refuse(route.checkQuery(query))
  refuse(route.checkParams(params))
  if (route.checkBody) refuse(route.checkBody(body, caller))
}

/** A request that has passed all checks. */
type Passed = {
  route: Route
  caller: Caller
  input: AnyInput
  keyed: KeyedRequest | null
  request_id: string
}

async function answerRead(
  context: Context,
  run: ReadRun,
  { route, caller, input, request_id }: Passed,
): Promise<Answer> {
  await run.ensure?.(context, caller, request_id)
  return success(route, await run.read(context, caller, input))
}

async function answerWrite(
  context: Context,
  withinOpenWork: WithinOpenWork,
  run: WriteRun,
  { route, caller, input, keyed, request_id }: Passed,
): Promise<Answer> {
  let prepared: unknown
  try {
    prepared = await run.prepare(context, caller, input)
  } catch (error) {
    // Another process may have completed the same request meanwhile, and its result may be what made this one fail.
    const kept = keyed && (await findKeptAnswer(context, keyed))
    if (kept && kept !== "conflict") return replay(kept)
    throw error
  }
  const { service_secret: secret } = context.config
  const { organization_id } = caller
  const written = async (turn: Turn) =>
    success(route, await run.write(turn, { ...input, context, caller, prepared }))
  const work = async (turn: Turn) => {
    const limited = () => withinOpenWork(turn, organization_id, written)
    if (!keyed) return await limited()
    const once = await answerOnce(turn, secret, keyed, async () => toKeep(await limited()))
    return once.replayed ? replay(once) : answerOf(once)
  }
  return await inTurn(context, request_id, work, run.isolation)
}

/** Throws if the outcome does not match the route's schema. That is a bug here, and nothing of it may be committed. */
function success(route: Route, outcome: Outcome<unknown>): Answer {
  const status = outcome.status ?? route.status
  const check = status === route.alsoStatus ? route.checkAlsoResponse : route.checkResponse
  const problems = check(outcome.body)
  if (problems.length > 0)
    throw new Error(
      `${route.operation} would answer what its schema does not allow: ${problems.map(({ path, message }) => `${path} ${message}`).join("; ")}`,
    )
  return {
    ...answerOf({ status, body: JSON.stringify(outcome.body), location: outcome.location ?? null }),
    ...(status === 204 && { body: null }),
  }
}

function streamed(body: TextStream): StreamAnswer {
  // A buffering proxy would delay events.
  const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" }
  return { status: 200, body, code: null, headers }
}

function answerOf({ status, body, location }: KeptAnswer): Answer {
  return { status, body, code: null, headers: location === null ? {} : { location } }
}

function replay(kept: KeptAnswer): Answer {
  const answer = answerOf(kept)
  return { ...answer, headers: { ...answer.headers, "idempotent-replayed": "true" } }
}

function toKeep({ status, body, headers }: Answer): KeptAnswer {
  return { status, body: body ?? "", location: headers.location ?? null }
}
