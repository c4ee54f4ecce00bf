import type { Schemas } from "./client.ts"

/** The webhook is not what the service signed, or is too old. */
export class WebhookError extends Error {
  override name = "WebhookError"
}

/**
 * Verifies a webhook's signature (Standard Webhooks, v1), at most five minutes old, and returns its event. `body` is
 * the raw body, as text or bytes. Throws `WebhookError`.
 */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: GivenHeaders,
  secret: string,
  { now = new Date() }: { now?: Date } = {},
): Promise<Schemas["Event"]> {
  const text = textOf(body)
  const id = headerOf(headers, "webhook-id")
  const timestamp = headerOf(headers, "webhook-timestamp")
  const signatures = headerOf(headers, "webhook-signature")
  if (!/^\d+$/.test(timestamp)) throw new WebhookError("webhook-timestamp is missing")
  const seconds = now.getTime() / 1_000 - Number(timestamp)
  if (Math.abs(seconds) > toleranceSeconds)
    throw new WebhookError("the webhook is too old, or from the future")

  const keyBytes = keyOf(secret)
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const key = await crypto.subtle.importKey("raw", keyBytes, algorithm, false, ["verify"])
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`)
  for (const each of signatures.split(" ")) {
    const [version, signature = ""] = each.split(",")
    if (version !== "v1" || !/^[0-9A-Za-z+/]{43}=$/.test(signature)) continue
    if (await crypto.subtle.verify("HMAC", key, bytesOf(signature), signed)) return JSON.parse(text)
  }
  throw new WebhookError("no signature of the webhook is right")
}

/** What was parsed cannot be verified: written again, it may differ from what was signed. */
function textOf(body: string | Uint8Array | ArrayBuffer): string {
  if (typeof body === "string") return body
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return new TextDecoder().decode(body)
  throw new WebhookError(
    "the raw body is needed, as text or bytes: it cannot be verified once it has been parsed",
  )
}

/** As frameworks pass them: the `Headers` of a `Request`, or an object by name, in any case. */
type GivenHeaders = Pick<Headers, "get"> | Record<string, string | string[] | undefined>

function headerOf(headers: GivenHeaders, name: string): string {
  if (areHeaders(headers)) return headers.get(name) ?? ""
  const [, value] = Object.entries(headers).find(([each]) => each.toLowerCase() === name) ?? []
  return String(value ?? "")
}

/** Not by its class: Azure Functions and GraphQL Yoga, for example, have a `Headers` of their own. */
function areHeaders(headers: GivenHeaders): headers is Pick<Headers, "get"> {
  return typeof headers.get === "function"
}

const toleranceSeconds = 5 * 60

/** The secret comes from an environment, which may lack it or keep its quotation marks. */
function keyOf(secret: string | undefined): Uint8Array<ArrayBuffer> {
  const base64 = secret?.trim().replace(/^whsec_/, "")
  if (base64 && /^(?:[0-9A-Za-z+/]{4})+(?:[0-9A-Za-z+/]{2,3}={0,2})?$/.test(base64)) return bytesOf(base64)
  throw new WebhookError(
    "the secret is missing or incomplete: it is whsec_ and base64, without quotation marks",
  )
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}
