import type { Exchange } from "./clients.ts"
import { type Fault, lastsUntil } from "./faults.ts"

/** Reports responses to clients that contradict other responses. */
export function findFaultsInAnswers(
  exchanges: readonly Exchange[],
  faults: readonly Fault[],
  strangers: readonly (string | null)[],
): string[] {
  return [
    ...brokenAnswers(exchanges, faults),
    ...answeredTwice(exchanges),
    ...acceptedTwice(exchanges),
    ...forgotten(exchanges.filter(({ token }) => !strangers.includes(token))),
    ...movedBackwards(exchanges),
  ]
}

/**
 * The service may return a 5xx only if its disk fails, if it has to query the chain first, and to wallets while the
 * chain does not accept what it signs.
 */
function brokenAnswers(exchanges: readonly Exchange[], faults: readonly Fault[]): string[] {
  if (faults.some(({ kind }) => kind === "disk")) return []
  const ruling = faults.filter(({ kind }) => kind === "authorizer" || kind === "pause")
  const from = Math.min(...ruling.map(({ at }) => at * 1_000))
  const until = lastsUntil(faults) + resumingMilliseconds
  const mayWait = (exchange: Exchange) =>
    (isForWallet(exchange) && exchange.answered_at > from && exchange.asked_at < until) ||
    (faults.length > 0 && exchange.path.endsWith("/metadata-refreshes"))
  return exchanges
    .filter((exchange) => exchange.status >= 500 && !(exchange.status === 503 && mayWait(exchange)))
    .map(
      ({ method, path, status, body }) => `${method} ${path} was answered ${status}: ${JSON.stringify(body)}`,
    )
}

/** Within this time a block contains the transaction that lets the service continue. */
const resumingMilliseconds = 10_000

function isForWallet({ path, asked }: Exchange): boolean {
  if (path.endsWith("/transfers")) return true
  return (
    path.endsWith("/claims") && (asked as { execution?: string } | null)?.execution === "client_broadcast"
  )
}

/** One idempotency key of one caller has one success. */
function answeredTwice(exchanges: readonly Exchange[]): string[] {
  const answers = new Map<string, string>()
  const found: string[] = []
  for (const { idempotency_key, status, body, method, path, token } of exchanges) {
    if (idempotency_key === null || method === "GET" || status >= 300) continue
    const answer = `${status} ${JSON.stringify(body)}`
    const key = `${idempotency_key} of ${token}`
    const first = answers.get(key)
    answers.set(key, first ?? answer)
    if (first !== undefined && first !== answer)
      found.push(`${method} ${path} with one idempotency key was answered ${first} and ${answer}`)
  }
  return found
}

/** One value of a chip is accepted once. */
function acceptedTwice(exchanges: readonly Exchange[]): string[] {
  const keys = new Map<string, Set<string | number>>()
  for (const [index, { method, path, status, asked, idempotency_key }] of exchanges.entries()) {
    if (method !== "POST" || path !== "/v1/taps" || status !== 201) continue
    const { e } = asked as { e: string }
    keys.set(e, (keys.get(e) ?? new Set()).add(idempotency_key ?? index))
  }
  return [...keys].flatMap(([e, taken]) =>
    taken.size > 1 ? [`the value ${e} was taken ${taken.size} times`] : [],
  )
}

/** What was created stays: no client is told later that it does not exist. */
function forgotten(exchanges: readonly Exchange[]): string[] {
  const made = new Map<string, number>()
  const found: string[] = []
  for (const { method, path, status, body, answered_at, asked_at } of exchanges) {
    const { id } = (body ?? {}) as { id?: string }
    if (method === "POST" && status === 201 && typeof id === "string") made.set(`${path}/${id}`, answered_at)
    const since = made.get(path)
    if (method === "GET" && since !== undefined && since < asked_at && (status === 404 || status === 410))
      found.push(`${path} was made and is answered ${status}`)
  }
  return found
}

const ranks: Record<string, number> = {
  deploying: 0,
  pending: 0,
  claiming: 0,
  prepared: 0,
  submitted: 1,
  active: 2,
  claimed: 2,
  confirmed: 2,
  expired: 2,
  failed: 2,
}

/** Later responses never show an earlier status, nor another final one. */
function movedBackwards(exchanges: readonly Exchange[]): string[] {
  const told = new Map<string, { status: string; answered_at: number }[]>()
  const found: string[] = []
  for (const exchange of exchanges) {
    if (exchange.status >= 300) continue
    const { id, status } = statusIn(exchange.body)
    if (id === null || status === null) continue
    const earlier = told.get(id) ?? []
    told.set(id, earlier)
    if (exchange.idempotency_key === null)
      for (const before of earlier) {
        if (before.answered_at >= exchange.asked_at || isAtOrAfter(status, before.status)) continue
        found.push(`${exchange.path} was ${before.status} and is ${status}`)
      }
    earlier.push({ status, answered_at: exchange.answered_at })
  }
  return found
}

function isAtOrAfter(status: string, before: string): boolean {
  const [rank = 0, least = 0] = [ranks[status], ranks[before]]
  return rank > least || (rank === least && (rank < 2 || status === before))
}

type Body = {
  id?: string
  status?: string
  contract?: { status: string }
  collection?: { token?: { status: string } } | null
}

function statusIn(body: unknown): { id: string | null; status: string | null } {
  const { id, status, contract, collection } = (body ?? {}) as Body
  return {
    id: typeof id === "string" ? id : null,
    status: status ?? contract?.status ?? collection?.token?.status ?? null,
  }
}
