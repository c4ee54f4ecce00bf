import { routes } from "../../src/api/routes.ts"
import { type ErrorCode, errorCatalogue } from "../../src/platform/errors.ts"
import { apiNames, type Cast } from "./cast.ts"
import { inProcess, note, type Simulation, scheduleIn, sleep } from "./scheduler.ts"
import type { Stream } from "./streams.ts"

/** A request to the service and its response. Milliseconds since the beginning. */
export type Exchange = {
  method: string
  path: string
  token: string | null
  idempotency_key: string | null
  asked: unknown
  asked_at: number
  answered_at: number
  status: number
  body: unknown
  /** Whether the response has Retry-After. */
  has_retry_after: boolean
}

export type Asked = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  path: string
  token: string | null
  body?: unknown
  idempotency_key?: string
}

/** The clients of a service, which do not give up, and their connection to it. */
export type Clients = {
  mood: "well" | "twice" | "lost_request" | "lost_answer" | "slow"
  exchanges: Exchange[]
  /** Repeats a request until its response is not temporary. A create has the same key each time. */
  ask(asked: Asked): Promise<Exchange>
  /** Sends a request once; null if there is no response. */
  askOnce(asked: Asked): Promise<Exchange | null>
}

const patienceMilliseconds = 12_000

export function createClients(simulation: Simulation, cast: Cast, chance: Stream): Clients {
  let keys = 0
  const clients: Clients = { mood: "well", exchanges: [], ask, askOnce }

  async function ask(asked: Asked): Promise<Exchange> {
    const keyed = isIdempotent(asked) ? { ...asked, idempotency_key: `key-${keys++}` } : asked
    for (;;) {
      const tries = clients.mood === "twice" ? [askOnce(keyed), askOnce(keyed)] : [askOnce(keyed)]
      const lasting = (await Promise.all(tries)).filter((each) => each !== null && !isOfTheMoment(each))
      // What one of two equal requests did is done, whatever the other was told a moment before.
      const answer = lasting.find((each) => each && each.status < 300) ?? lasting[0]
      if (answer) return answer
      await sleep(simulation, chance.between(200, 2_000))
    }
  }

  async function askOnce(asked: Asked): Promise<Exchange | null> {
    const isSlow = clients.mood === "slow"
    await sleep(simulation, isSlow ? chance.between(500, 4_000) : chance.between(1, 30))
    const life = cast.alive.get(chance.pick(apiNames))
    const app = life?.app
    if (!app) return null
    const isLost = clients.mood === "lost_request" && chance.happens(0.5)
    const isUnheard = clients.mood === "lost_answer" && chance.happens(0.5)
    const back = chance.between(1, 30)
    const asked_at = simulation.now
    return await new Promise((resolve) => {
      const impatience = scheduleIn(simulation, patienceMilliseconds, null, () => resolve(null))
      if (isLost) return
      const answer = inProcess(life.process, async () => {
        const response = await app.handle(requestOf(asked))
        const text = await response.text()
        if (life.process.is_dead) return
        const { method, path, token, idempotency_key = null, body = null } = asked
        const { status } = response
        scheduleIn(simulation, back, null, () => {
          const has_retry_after = response.headers.has("retry-after")
          const said = {
            asked: body,
            status,
            has_retry_after,
            body: bodyOf(text),
            answered_at: simulation.now,
          }
          const exchange = { method, path, token, idempotency_key, asked_at, ...said }
          note(simulation, `${method} ${path} is answered ${status} ${Bun.hash(text)}`)
          // A response that was lost still counts as a promise.
          clients.exchanges.push(exchange)
          if (isUnheard) return
          impatience.is_off = true
          resolve(exchange)
        })
      })
      answer.catch(() => {})
    })
  }
  return clients
}

/** Whether the operation supports an idempotency key. */
function isIdempotent({ method, path }: Asked): boolean {
  const route = idempotent.find((each) => each.method === method && each.pattern.test(path))
  return route !== undefined
}

const idempotent = routes
  .filter((route) => route.idempotent)
  .map(({ method, path }) => ({ method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }))

/** Whether the same request may get another response a moment later. A lasting conflict has no Retry-After. */
function isOfTheMoment({ status, has_retry_after, body }: Exchange): boolean {
  const code = codeOf(body)
  if (status === 409 && !has_retry_after) return false
  return status >= 500 || (code !== undefined && errorCatalogue[code as ErrorCode]?.retryable === true)
}

/** The code of an error, or undefined. */
export function codeOf(body: unknown): string | undefined {
  return (body as { error?: { code?: string } } | null)?.error?.code
}

function requestOf({ method, path, token, body, idempotency_key }: Asked): Request {
  const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
  const headers = new Headers()
  if (token !== null) headers.set("authorization", `Bearer ${token}`)
  if (idempotency_key !== undefined) headers.set("idempotency-key", idempotency_key)
  if (text !== null) {
    headers.set("content-type", "application/json")
    headers.set("content-length", String(Buffer.byteLength(text)))
  }
  return new Request(`http://api.test${path}`, { method, headers, body: text })
}

function bodyOf(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text)
  } catch {
    return text
  }
}
