import { createApp } from "../../src/api/app.ts"
import { routes } from "../../src/api/routes.ts"
import type { Route } from "../../src/http/route.ts"
import type { Caller } from "../../src/platform/caller.ts"
import type { Context } from "../../src/platform/context.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { ensurePublishableKey, listPublishableKeys } from "../../src/resources/publishable-keys/service.ts"
import { issueSessionToken } from "../../src/resources/session-tokens/service.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { type Engine, engines } from "./engines.ts"
import { type ChainSays, contextWithChain } from "./ownership.ts"
import { createCaller, type OpenService, openService, pairedTestChip, settle } from "./services.ts"

/** The API on a free port, with its own database and a stubbed chain. */
export type HttpService = {
  /** The services behind the API, for setting things up without HTTP. */
  behind: OpenService
  context: Context
  base_url: string
  chain: ChainSays
  /** What was logged so far, each line as JSON. */
  logged: string[]
  /** Moves the clock, which otherwise stands still. */
  advance: (milliseconds: number) => void
  close: () => Promise<void>
}

export async function startService(
  engine: Engine | undefined = engines[0],
  mounted: readonly Route[] = routes,
): Promise<HttpService> {
  if (!engine) throw new Error("there is no database engine")
  const behind = await openService(engine)
  const chain: ChainSays = { owner: null, isReachable: true }
  const logged: string[] = []
  const record = (fields: Record<string, unknown>, message: string) => {
    logged.push(JSON.stringify({ ...fields, message }))
  }
  const log = { debug: record, info: record, warn: record, error: record }
  const context = { ...contextWithChain(behind, chain), log }
  const app = createApp(context, mounted).listen({ hostname: "127.0.0.1", port: 0 })
  return {
    behind,
    context,
    base_url: `http://127.0.0.1:${app.server?.port}`,
    chain,
    logged,
    advance: (milliseconds) => behind.setTime(new Date(context.clock().getTime() + milliseconds)),
    async close() {
      await app.stop(true)
      await behind.close()
    },
  }
}

/** An organization, seen from outside: `key` is an API key of it. */
export type Customer = { key: string; key_id: string; caller: Caller }

export async function createCustomer(
  service: HttpService,
  settings: Parameters<typeof createCaller>[1] = {},
): Promise<Customer> {
  const caller = await createCaller(service.behind, settings)
  const { organization_id } = caller
  const { id, key } = await service.behind.turn((turn) => issueApiKey(turn, { organization_id, name: null }))
  return { key, key_id: id, caller: { ...caller, credential_id: id } }
}

export async function publishableKeyOf(service: HttpService, { caller }: Customer): Promise<string> {
  await service.behind.turn((turn) => ensurePublishableKey(turn, caller))
  const page = { limit: 1, after: null }
  const { rows } = await listPublishableKeys(service.context.db.read, caller, {
    page,
    at: service.context.clock(),
  })
  return String(rows[0]?.key)
}

/** A person who has tapped the test chip of an issued unit. */
export type Visitor = { token: string; unit_id: string; chip_id: string }

export async function createVisitor(
  service: HttpService,
  { caller }: Customer,
  ttl_seconds = 600,
): Promise<Visitor> {
  const { chip_id, unit } = await pairedTestChip(service.behind, caller)
  const unit_id = String(unit?.id)
  await settle(service.behind, unit_id, { serial: 1, transaction_hash: "0x02" })
  return { token: await tapAgain(service, caller, { chip_id, unit_id }, ttl_seconds), unit_id, chip_id }
}

/** Returns the session token for another tap of the visitor's chip. */
export async function tapAgain(
  { behind }: HttpService,
  caller: Caller,
  { chip_id, unit_id }: { chip_id: string; unit_id: string },
  ttl_seconds = 600,
): Promise<string> {
  return await behind.turn(async (turn) => {
    const { e } = await createTestTap(turn, behind.secret, caller, { chip_id })
    const { tap } = await createTap(turn, behind.secret, caller, { chip_id, e })
    const grant = { tap_id: String(tap?.id), chip_id, unit_id, ttl_seconds }
    const { token } = await issueSessionToken(turn, caller, grant)
    return token
  })
}

export type Question = {
  /** The bearer token. */
  as?: string
  /** Sent as JSON unless it is a string or bytes. */
  body?: unknown
  headers?: Record<string, string>
}

/** A response, read to its end. */
export type Answer = {
  status: number
  headers: Headers
  text: string
  /** The body as an object; empty if there is none. */
  body: Record<string, unknown>
  code: string | null
  /** The fields that `validation.failed` names. */
  fields: string[]
  /** Its messages about the request as a whole. */
  formErrors: string[]
}

/** Sends a request to the service. `question` is a method and a path. */
export async function ask(
  service: HttpService,
  question: string,
  { as, body, headers = {} }: Question = {},
): Promise<Answer> {
  const [method = "GET", path = "/"] = question.split(/ (.*)/s)
  const isPlain = body === undefined || typeof body === "string" || body instanceof Uint8Array
  const response = await fetch(`${service.base_url}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(as !== undefined && { authorization: `Bearer ${as}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: isPlain ? (body as string) : JSON.stringify(body) }),
  })
  return readAnswer(response.status, response.headers, await response.text())
}

type ErrorBody = {
  error?: { code?: string; details?: { formErrors?: string[]; fieldErrors?: Record<string, string[]> } }
}

function readAnswer(status: number, headers: Headers, text: string): Answer {
  const body = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>
  const { error } = body as ErrorBody
  return {
    status,
    headers,
    text,
    body,
    code: error?.code ?? null,
    fields: Object.keys(error?.details?.fieldErrors ?? {}),
    formErrors: error?.details?.formErrors ?? [],
  }
}

/** Sends raw bytes and returns what came back, until the response is complete or the connection closes. */
export async function sendRaw(service: HttpService, text: string | Uint8Array): Promise<string> {
  const { port } = new URL(service.base_url)
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ""
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: Number(port),
    socket: {
      data(_socket, chunk) {
        received += chunk.toString("latin1")
        if (isComplete(received)) resolve(received)
      },
      close: () => resolve(received),
      error: () => resolve(received),
    },
  })
  socket.write(text)
  const answer = await promise
  socket.end()
  return answer
}

/** Returns whether the last response received has its whole announced body. */
function isComplete(received: string): boolean {
  const last = received.slice(received.lastIndexOf("HTTP/1.1 "))
  const [head = "", body] = last.split("\r\n\r\n", 2)
  if (body === undefined || head.startsWith("HTTP/1.1 100")) return false
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  return length !== undefined && body.length >= Number(length)
}
