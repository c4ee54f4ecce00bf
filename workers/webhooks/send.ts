import { Webhook } from "standardwebhooks"
import { readBounded } from "../../src/platform/bounded-body.ts"
import { AddressRefused, checkedAddresses, type Resolve } from "../../src/platform/public-address.ts"

/** What is sent where, and the secrets that sign it, newest first. */
type Message = { url: string; event_id: string; body: string; secrets: string[]; at: Date }

/** The outcome of one attempt. `error` is for people; null if the endpoint accepted the event. */
export type Answer = { response_status: number | null; error: string | null; milliseconds: number }

/** How addresses are resolved and checked. */
type Reach = { allowLoopback: boolean; resolve: Resolve; patience_milliseconds: number }

/**
 * Sends one event as Standard Webhooks specifies. The host is resolved and checked now, and the connection goes to the
 * very address that was checked, so that the name cannot change in between. Follows no redirects. Never throws.
 */
export async function sendWebhook(message: Message, reach: Reach): Promise<Answer> {
  const begin = performance.now()
  const answer = (response_status: number | null, error: string | null): Answer => ({
    response_status,
    error,
    milliseconds: Math.round(performance.now() - begin),
  })
  const patience = AbortSignal.timeout(reach.patience_milliseconds)
  try {
    const response = await post(message, reach, patience)
    const answered = answer(response.status, refusalOf(response.status))
    await readALittle(response)
    return answered
  } catch (error) {
    if (patience.aborted)
      return answer(null, `no response within ${reach.patience_milliseconds / 1_000} seconds`)
    return answer(null, wordsOf(error))
  }
}

/** Returns why an event must be sent again; null if it was accepted. */
function refusalOf(status: number): string | null {
  if (status >= 200 && status <= 299) return null
  return status >= 300 && status <= 399 ? "redirects are not followed" : `responded with status ${status}`
}

/**
 * Tries the name's first address and, if no connection to it is possible, as without IPv4, the first one of the other
 * family. An address that never responds cannot be told from a slow endpoint.
 */
async function post(message: Message, reach: Reach, patience: AbortSignal): Promise<Response> {
  const { hostname } = new URL(message.url)
  const addresses = await withPatience(checkedAddresses(hostname, reach), patience)
  const families = Map.groupBy(addresses, (address) => address.includes(":"))
  let failure: unknown
  for (const [address = ""] of families.values())
    try {
      return await postTo(address, message, patience)
    } catch (error) {
      if (!isUnsent(error)) throw error
      failure ??= error
    }
  throw failure
}

/** Returns whether there was no connection, so that the endpoint cannot have received the event. */
function isUnsent(error: unknown): boolean {
  return ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL"].includes(codeOf(error))
}

async function postTo(address: string, message: Message, patience: AbortSignal): Promise<Response> {
  const url = new URL(message.url)
  const isName = address !== url.hostname.replace(/^\[|\]$/g, "")
  const direct = new URL(url)
  direct.hostname = address.includes(":") ? `[${address}]` : address
  return await fetch(direct, {
    method: "POST",
    body: message.body,
    redirect: "manual",
    // A connection made for one name is reused only for that name.
    keepalive: true,
    ...(isName && url.protocol === "https:" && { tls: { serverName: url.hostname } }),
    decompress: false,
    signal: patience,
    headers: {
      host: url.host,
      "content-type": "application/json",
      "user-agent": "service-api webhooks",
      "accept-encoding": "identity",
      ...signatures(message),
    },
  })
}

/** Returns the headers; `webhook-signature` has one signature per secret, newest first. */
function signatures({ event_id, body, secrets, at }: Message): Record<string, string> {
  const signed = secrets.map((secret) => new Webhook(secret).sign(event_id, at, body))
  return {
    "webhook-id": event_id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": signed.join(" "),
  }
}

const mostAnswerBytes = 64 * 1_024

/**
 * Reads a little of the response body, so that the connection can be reused; the status decides. A body that is long,
 * endless, broken or late is discarded.
 */
async function readALittle(response: Response): Promise<void> {
  await readBounded(response, mostAnswerBytes).catch(() => {})
}

/** Applies the timeout to DNS resolution, too. */
async function withPatience<T>(work: Promise<T>, patience: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(new Error("no response in time"))
  patience.addEventListener("abort", giveUp)
  try {
    return await Promise.race([work, promise])
  } finally {
    patience.removeEventListener("abort", giveUp)
  }
}

/** Describes an error in one line, without the address that was tried, because names inside a network stay private. */
function wordsOf(error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  const code = codeOf(error)
  if (/^(ENOTFOUND|EAI_|DNS)/.test(code)) return "its host name cannot be resolved"
  if (/CERT|TLS|SSL|SIGNED/.test(code)) return `its certificate is not accepted (${code})`
  return code === "" ? "the connection failed" : `the connection failed (${code})`
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : ""
}
