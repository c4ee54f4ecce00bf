import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox"
import type { Caller, CredentialKind } from "../caller.ts"
import type { Context } from "../context.ts"
import type { Turn } from "../db/turn.ts"
import type { ErrorCode } from "../errors.ts"
import { type Check, checkOf } from "./validate.ts"

/**
 * One operation of the API as data. The router, the checks before it, the OpenAPI document and the table of
 * credentials all read the same declaration.
 */
export type Route = {
  /** The operation's stable name, never renamed in place. */
  operation: string
  summary: string
  /** What a caller has to know beyond the summary, in sentences. */
  description: string
  method: Method
  /** With `{name}` for each path parameter: `chip_id`, or the id of a resource, which is a UUID or leads to nothing. */
  path: string
  /** The kinds that are accepted; none when no credential is asked for. */
  credentials: readonly CredentialKind[]
  /** Whether an `Idempotency-Key` is heeded. */
  idempotent: boolean
  query: TObject
  body: TSchema | null
  /** The status of a success; `alsoStatus` is another one that an outcome may carry. */
  status: SuccessStatus
  alsoStatus: SuccessStatus | null
  response: TSchema
  /** The codes of its own, beside those that any operation can answer. */
  errors: readonly ErrorCode[]
  example: Example | null
  checkQuery: Check
  checkBody: Check | null
  checkResponse: Check
  run: Run
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE"
export type SuccessStatus = 200 | 201 | 204

/** What is sent and answered; `also` is an exchange that ends with the route's other status. */
export type Example = {
  request?: unknown
  response?: unknown
  also?: { request: unknown; response: unknown }
}

/** What was asked, checked against the declaration: UUIDs in lower case, chip ids in upper case. */
export type Input<Path extends string, Query extends TObject, Body extends TSchema> = {
  params: { [Name in ParametersOf<Path>]: string }
  query: Static<Query>
  body: Static<Body>
}

/** What a success answers. `location` is the address of what was made; `status` differs from the declared one. */
export type Outcome<Response> = { body: Response; location?: string; status?: SuccessStatus }

export type Run =
  | { kind: "open"; answer(context: Context, requestId: string): Outcome<unknown> }
  | { kind: "read"; read(context: Context, caller: Caller, input: AnyInput): Promise<Outcome<unknown>> }
  | {
      kind: "write"
      /** Everything that needs the network or takes its time, before the database transaction. */
      prepare(context: Context, caller: Caller, input: AnyInput): Promise<unknown>
      /** Runs inside the one database transaction of the request, more than once if need be. */
      write(
        turn: Turn,
        context: Context,
        caller: Caller,
        input: AnyInput,
        prepared: unknown,
      ): Promise<Outcome<unknown>>
    }

export type AnyInput = { params: Record<string, string>; query: Record<string, string>; body: unknown }

/** An operation that anybody may ask. */
export function openRoute<Response extends TSchema>(
  declaration: Pick<Route, "operation" | "summary" | "path"> & {
    description?: string
    response: Response
    example?: Example
    answer(context: Context, requestId: string): Outcome<Static<Response>>
  },
): Route {
  const { answer, ...declared } = declaration
  return complete({ ...declared, method: "GET", credentials: [], run: { kind: "open", answer } })
}

/** An operation that changes nothing and reads committed rows. */
export function readRoute<Path extends string, Response extends TSchema, Query extends TObject = NoFields>(
  declaration: Described<Path, Response> & {
    query?: Query
    read(
      context: Context,
      caller: Caller,
      input: Input<Path, Query, NoFields>,
    ): Promise<Outcome<Static<Response>>>
  },
): Route {
  const { read, ...declared } = declaration
  return complete({ ...declared, method: "GET", run: { kind: "read", read: read as ReadOf } })
}

/** An operation that changes something, in one database transaction. */
export function writeRoute<
  Path extends string,
  Response extends TSchema,
  Body extends TSchema = NoFields,
  Prepared = undefined,
>(
  declaration: Described<Path, Response> & {
    method: Exclude<Method, "GET">
    status: SuccessStatus
    alsoStatus?: SuccessStatus
    idempotent?: boolean
    body?: Body
    /** Where one schema would say too little, such as "Expected union value", this finds the problems instead. */
    checkBody?: Check
    prepare?(context: Context, caller: Caller, input: Input<Path, NoFields, Body>): Promise<Prepared>
    write(
      turn: Turn,
      context: Context,
      caller: Caller,
      input: Input<Path, NoFields, Body>,
      prepared: Prepared,
    ): Promise<Outcome<Static<Response>>>
  },
): Route {
  const { write, prepare, ...declared } = declaration
  const run = {
    kind: "write",
    write: write as WriteOf,
    prepare: (prepare ?? (async () => undefined)) as PrepareOf,
  } as const
  return complete({ ...declared, run })
}

/** A response without a body. */
export const NoContent = Type.Null()

type Described<Path, Response> = Pick<Route, "operation" | "summary" | "credentials"> & {
  description?: string
  path: Path
  response: Response
  errors?: readonly ErrorCode[]
  example?: Example
}

type NoFields = TObject<Record<never, never>>

type ParametersOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParametersOf<Rest>
  : never

type ReadOf = Extract<Run, { kind: "read" }>["read"]
type WriteOf = Extract<Run, { kind: "write" }>["write"]
type PrepareOf = Extract<Run, { kind: "write" }>["prepare"]

type Given = Pick<Route, "operation" | "summary" | "method" | "path" | "credentials" | "response" | "run"> &
  Partial<Omit<Route, "body" | "checkBody">> & { body?: TSchema; checkBody?: Check }

const noFields = Type.Object({}, { additionalProperties: false })

function complete(given: Given): Route {
  const query = given.query ?? noFields
  const body = given.body ?? null
  return {
    description: "",
    idempotent: false,
    status: 200,
    alsoStatus: null,
    errors: [],
    example: null,
    ...given,
    query,
    body,
    checkQuery: checkOf(query),
    checkBody: given.checkBody ?? (body && checkOf(body)),
    checkResponse: checkOf(given.response),
  }
}
