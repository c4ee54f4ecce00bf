import type { Caller } from "../caller.ts"
import { type Context, inTurn } from "../context.ts"
import { ApiError, fieldError } from "../errors.ts"
import { parseId } from "../ids.ts"
import { createAuthenticate } from "./authenticate.ts"
import { readBody } from "./body.ts"
import { clientAddress } from "./client-address.ts"
import { corsOriginsOf } from "./cors-origins.ts"
import type { Answer } from "./envelope.ts"
import {
  answerOnce,
  findKeptAnswer,
  holdingKey,
  type KeptAnswer,
  type KeyedRequest,
  keyedRequest,
  type Running,
} from "./idempotency.ts"
import type { JsonObject } from "./json.ts"
import { holdToOwnOrigins } from "./origin.ts"
import { readQuery } from "./query.ts"
import { type Bucket, headersOf, type RateLimits } from "./rate-limits.ts"
import type { AnyInput, Outcome, Route } from "./route.ts"
import { refuse } from "./validate.ts"

/** One request on its way: what its log line tells of it, and what every answer to it carries. */
export type Visit = {
  request_id: string
  operation: string | null
  caller: Caller | null
  /** The headers of the response, whatever it will be. */
  headers: Record<string, string | number>
  /** The IP address that the request came from. */
  peer(): string
}

/** Answers a request to a route, or throws why not. `params` are the path parameters as they came. */
export type AnswerRequest = (
  route: Route,
  request: Request,
  params: Record<string, string>,
  visit: Visit,
) => Promise<Answer>

/**
 * The checks that every request goes through, in the order that a caller can rely on: credential, origin, body,
 * a kept answer, the schema, the idempotency key, and only then the operation itself.
 */
export function createAnswerRequest(context: Context, limits: RateLimits): AnswerRequest {
  const authenticate = createAuthenticate(context)
  const origins = corsOriginsOf(context)
  const running: Running = new Map()

  /** Shows the bucket in the answer, and refuses what is too much. */
  function holdTo(bucket: Bucket, visit: Visit): void {
    Object.assign(visit.headers, headersOf(bucket, context.clock()))
    if (bucket.overfull) throw new ApiError("rate_limit.exceeded")
  }

  /** A value of `e` that is not from its chip counts against the chip: whoever guesses is told to wait. */
  async function countRefusal(error: unknown, body: JsonObject | undefined, visit: Visit): Promise<never> {
    if (!(error instanceof ApiError) || error.code !== "chip.invalid_e_value") throw error
    const buckets = await Promise.all(provenChips(body).map((chipId) => limits.countRefusedValue(chipId)))
    for (const bucket of buckets)
      if (bucket.remaining < Number(visit.headers["x-ratelimit-remaining"])) holdTo(bucket, visit)
    throw error
  }

  return async (route, request, params, visit) => {
    const { run } = route
    visit.operation = route.operation
    if (run.kind === "open") return success(route, run.answer(context, visit.request_id))

    const client = () => clientAddress(request, visit.peer(), context.config.trusted_proxies)
    const caller = await authenticate(request, visit.request_id, route.credentials, async () => {
      const bucket = await limits.countFailedCredential(client())
      if (bucket.overfull) holdTo(bucket, visit)
    })
    visit.caller = caller
    holdTo(await limits.countRequest(caller, client), visit)
    holdToOwnOrigins(origins, caller, request, visit.headers)

    const body = route.body ? await readBody(request) : undefined
    const given = canonicalParams(params)
    const keyed = route.idempotent
      ? keyedRequest(request, caller, { operation: route.operation, params: given, body })
      : null
    const kept = keyed && (await findKeptAnswer(context, keyed))
    if (kept && kept !== "conflict") return replay(kept)

    const query = checkForm(route, request, given, body)
    if (kept === "conflict") throw new ApiError("idempotency.key_conflict")
    const ask = () =>
      perform(context, route, caller, { params: given, query, body }, keyed, visit.request_id).catch(
        (error) => countRefusal(error, body, visit),
      )
    return keyed ? await holdingKey(running, keyed, ask) : await ask()
  }
}

/** UUIDs in lower case, chip ids in upper case; anything else as it came. */
function canonicalParams(params: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).map(([name, text]) => [
      name,
      name === "chip_id" ? text.toUpperCase() : (parseId(text) ?? text),
    ]),
  )
}

/** Throws `validation.failed` unless query, chip id and body have their form. Answers the query. */
function checkForm(route: Route, request: Request, params: Record<string, string>, body: unknown) {
  const query = readQuery(request.url)
  refuse(route.checkQuery(query))
  if (params.chip_id !== undefined && !/^[0-9A-F]{10}$/.test(params.chip_id))
    throw fieldError("chip_id", "must have 10 hexadecimal digits")
  if (route.checkBody) refuse(route.checkBody(body))
  return query
}

/** The chips that a body, or each entry of a bulk, gives an `e` of. */
function provenChips(body: JsonObject = {}): string[] {
  const entries = Array.isArray(body.chips) ? (body.chips as JsonObject[]) : [body]
  return entries.filter(({ e }) => e !== undefined).map(({ chip_id }) => String(chip_id).toUpperCase())
}

async function perform(
  context: Context,
  route: Route,
  caller: Caller,
  input: AnyInput,
  keyed: KeyedRequest | null,
  requestId: string,
): Promise<Answer> {
  const { run } = route
  if (run.kind === "read") return success(route, await run.read(context, caller, input))
  if (run.kind === "open") throw new Error("an open route has no caller")

  let prepared: unknown
  try {
    prepared = await run.prepare(context, caller, input)
  } catch (error) {
    // Another process may have done this very request meanwhile: then what is in the way is its own work.
    const kept = keyed && (await findKeptAnswer(context, keyed))
    if (kept && kept !== "conflict") return replay(kept)
    throw error
  }
  const secret = context.config.service_secret
  return await inTurn(context, requestId, async (turn) => {
    const write = async () => success(route, await run.write(turn, context, caller, input, prepared))
    if (!keyed) return await write()
    const once = await answerOnce(turn, secret, keyed, async () => toKeep(await write()))
    return once.replayed ? replay(once) : answerOf(once)
  })
}

/** Throws when the outcome is not what the route promises: that is our mistake, and nothing of it may stand. */
function success(route: Route, outcome: Outcome<unknown>): Answer {
  const problems = route.checkResponse(outcome.body)
  if (problems.length > 0)
    throw new Error(
      `${route.operation} would answer what its schema does not allow: ${problems.map(({ path, message }) => `${path} ${message}`).join("; ")}`,
    )
  const status = outcome.status ?? route.status
  return {
    ...answerOf({ status, body: JSON.stringify(outcome.body), location: outcome.location ?? null }),
    ...(status === 204 && { body: null }),
  }
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
