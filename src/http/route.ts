import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox"
import type { Isolation } from "../db/database.ts"
import type { Turn } from "../db/turn.ts"
import type { Caller, CredentialKind } from "../platform/caller.ts"
import type { Context } from "../platform/context.ts"
import type { ApiError, ErrorCode } from "../platform/errors.ts"
import type { TextStream } from "./envelope.ts"
import { type Check, checkOf } from "./validate.ts"

/**
 * One operation of the API as data. The router, its checks, the OpenAPI document and the table of credentials all read
 * this declaration.
 */
export type Route = {
  /** The operation's stable name, never changed. */
  operation: string
  summary: string
  /** What a caller needs to know beyond the summary. */
  description: string
  method: Method
  /** With `{name}` for each path parameter. */
  path: string
  /** A string per path parameter. `x-case` is the case in which it is compared: `upper`, otherwise lower. */
  params: TObject
  /** The accepted kinds; empty if no credential is needed. */
  credentials: readonly CredentialKind[]
  /** Whether `Idempotency-Key` is supported. */
  idempotent: boolean
  /** Whether the request changes nothing with this body. Then an `Idempotency-Key` is neither claimed nor stored. */
  moves_nothing: (body: unknown) => boolean
  query: TObject
  body: TSchema | null
  /** The status of a success; `alsoStatus` is another one that an outcome may have. */
  status: SuccessStatus
  alsoStatus: SuccessStatus | null
  response: TSchema
  /** The response schema of `alsoStatus`, if it differs. */
  alsoResponse: TSchema | null
  /** Error codes of this operation, besides those that any operation can return. */
  errors: readonly ErrorCode[]
  counts_refusals: CountedRefusals | null
  /** Whether it changes the allowed CORS origins, so that the cached lists must be reloaded. */
  changes_origins: boolean
  /** Whether pages of any origin may read it, since it is the same for everybody. */
  is_readable_from_anywhere: boolean
  /** Whether it needs the database. */
  needs_database: boolean
  checkParams: Check
  checkQuery: Check
  checkBody: BodyCheck | null
  checkResponse: Check
  checkAlsoResponse: Check
  run: Run
}

/** A body check can depend on the caller. */
type BodyCheck = (body: unknown, caller: Caller) => ReturnType<Check>

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE"
type SuccessStatus = 200 | 201 | 204

/** Rejected guesses count against their target, so that whoever keeps guessing has to wait. */
export type CountedRefusals = {
  /** Returns what was guessed at, or null for any other rejection. */
  against(refusal: ApiError): string | null
  /** Records the rejection. Not called for a body that changes nothing. */
  note(context: Context, refusal: ApiError, requestId: string): Promise<void>
}

/** A request's content, validated against the declaration. */
type Input<Params extends TProperties, Query extends TObject, Body extends TSchema> = {
  params: Static<TObject<Params>>
  query: Static<Query>
  body: Static<Body>
}

/** The result of a success. `location` is the URL of a created resource; `status` overrides the declared one. */
export type Outcome<Response> = { body: Response; location?: string; status?: SuccessStatus }

/** The result of an open operation; `headers`, in lower case, replace the usual ones. */
type OpenOutcome<Response> = { body: Response; headers?: Record<string, string> }

type Run = OpenRun | ReadRun | StreamRun | WriteRun

type OpenRun = {
  kind: "open"
  answer(context: Context, requestId: string): OpenOutcome<unknown> | Promise<OpenOutcome<unknown>>
}

export type ReadRun = {
  kind: "read"
  /** Creates what a read needs to exist, in a database transaction of its own. */
  ensure: Ensure | null
  read(context: Context, caller: Caller, input: AnyInput): Promise<Outcome<unknown>>
}

type StreamRun = {
  kind: "stream"
  /** Throws before the stream begins, if at all. */
  open(context: Context, caller: Caller, input: AnyInput, given: StreamGiven): Promise<TextStream>
}

export type WriteRun = {
  kind: "write"
  /** Does everything that needs the network or takes long, before the database transaction. */
  prepare(context: Context, caller: Caller, input: AnyInput): Promise<unknown>
  isolation: Isolation
  /** Runs in the request's only database transaction, which may be repeated. */
  write(turn: Turn, asked: Asked<AnyInput, unknown>): Promise<Outcome<unknown>>
}

/** The `Last-Event-ID` to resume after, and the signal that the process is stopping. */
type StreamGiven = { last_event_id: string | null; stopping: AbortSignal }

export type Ensure = (context: Context, caller: Caller, requestId: string) => Promise<void>

export type AnyInput = { params: Record<string, string>; query: Record<string, string>; body: unknown }

type Asked<Input, Prepared> = Input & { context: Context; caller: Caller; prepared: Prepared }

/** Declares an operation that needs no credential. */
export function openRoute<Response extends TSchema>(
  declaration: Pick<Route, "operation" | "summary" | "path"> & {
    description?: string
    response: Response
    is_readable_from_anywhere?: true
    needs_database?: true
    answer(
      context: Context,
      requestId: string,
    ): OpenOutcome<Static<Response>> | Promise<OpenOutcome<Static<Response>>>
  },
): Route {
  const { answer, ...declared } = declaration
  const run = { kind: "open", answer } as const
  return complete({ needs_database: false, ...declared, method: "GET", credentials: [], run })
}

/** Declares an operation that reads committed rows and changes nothing except through `ensure`. */
export function readRoute<
  Response extends TSchema,
  Params extends TProperties = NoProperties,
  Query extends TObject = NoFields,
>(
  declaration: Described<Params, Response> & {
    query?: Query
    ensure?: Ensure
    read(
      context: Context,
      caller: Caller,
      input: Input<Params, Query, NoFields>,
    ): Promise<Outcome<Static<Response>>>
  },
): Route {
  const { read, ensure = null, ...declared } = declaration
  return complete({
    ...declared,
    method: "GET",
    run: { kind: "read", ensure, read: read as ReadRun["read"] },
  })
}

/** Declares an operation that streams server-sent events. */
export function streamRoute<Query extends TObject = NoFields>(
  declaration: Described<NoProperties, TSchema> & {
    query?: Query
    open(
      context: Context,
      caller: Caller,
      input: Input<NoProperties, Query, NoFields>,
      given: StreamGiven,
    ): Promise<TextStream>
  },
): Route {
  const { open, ...declared } = declaration
  return complete({ ...declared, method: "GET", run: { kind: "stream", open: open as StreamRun["open"] } })
}

/** Declares an operation that changes something, in one database transaction. */
export function writeRoute<
  Response extends TSchema,
  Params extends TProperties = NoProperties,
  Body extends TSchema = NoFields,
  Prepared = undefined,
  Also extends TSchema = Response,
>(
  declaration: Described<Params, Response> & {
    method: Exclude<Method, "GET">
    status: SuccessStatus
    alsoStatus?: SuccessStatus
    alsoResponse?: Also
    idempotent?: boolean
    body?: Body
    /** Replaces the schema's check where that would only report "Expected union value". */
    checkBody?: BodyCheck
    moves_nothing?: (body: unknown) => boolean
    counts_refusals?: CountedRefusals
    changes_origins?: boolean
    /** `read committed` if single statements decide everything; serializable by default. */
    isolation?: Isolation
    prepare?(context: Context, caller: Caller, input: Input<Params, NoFields, Body>): Promise<Prepared>
    write(
      turn: Turn,
      asked: Asked<Input<Params, NoFields, Body>, Prepared>,
    ): Promise<Outcome<Static<Response> | Static<Also>>>
  },
): Route {
  const { write, prepare, isolation = "serializable", ...declared } = declaration
  const run = {
    kind: "write",
    isolation,
    write: write as WriteRun["write"],
    prepare: (prepare ?? (async () => undefined)) as WriteRun["prepare"],
  } as const
  return complete({ ...declared, run })
}

/** A response without a body. */
export const NoContent = Type.Null()

type Described<Params, Response> = Pick<Route, "operation" | "summary" | "path" | "credentials"> & {
  description?: string
  params?: Params
  response: Response
  errors?: readonly ErrorCode[]
}

type NoProperties = Record<never, never>
type NoFields = TObject<NoProperties>

type Given = Pick<Route, "operation" | "summary" | "method" | "path" | "credentials" | "response" | "run"> &
  Partial<Omit<Route, "params" | "body" | "checkBody">> & {
    params?: TProperties
    body?: TSchema
    checkBody?: BodyCheck
  }

const noFields = Type.Object({}, { additionalProperties: false })

/** Fills in defaults. Throws if the path and `params` have different names. */
function complete(given: Given): Route {
  const named = [...given.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  if (`${named}` !== `${Object.keys(given.params ?? {})}`)
    throw new Error(`${given.operation} declares other parameters than ${given.path} has`)
  const params = given.params ? Type.Object(given.params, { additionalProperties: false }) : noFields
  const query = given.query ?? noFields
  const body = given.body ?? null
  const checkResponse = checkOf(given.response)
  return {
    description: "",
    idempotent: false,
    status: 200,
    alsoStatus: null,
    alsoResponse: null,
    errors: [],
    counts_refusals: null,
    changes_origins: false,
    is_readable_from_anywhere: false,
    needs_database: true,
    moves_nothing: () => false,
    ...given,
    params,
    query,
    body,
    checkParams: checkOf(params),
    checkQuery: checkOf(query),
    checkBody: given.checkBody ?? (body && checkOf(body)),
    checkResponse,
    checkAlsoResponse: given.alsoResponse ? checkOf(given.alsoResponse) : checkResponse,
  }
}
