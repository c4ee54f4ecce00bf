import type { Schemas } from "./client.ts"

/** What was received is not what the service signed, or is too old. */
export class WebhookError extends Error {
  override name = "WebhookError"
}

/**
 * The event that a webhook brought, once its signature (Standard Webhooks, v1) is known to be right and younger than
 * five minutes. `body` is the body's text as it came. Throws `WebhookError`.
 */
export async function verifyWebhook(
  body: string,
  headers: Headers | Record<string, string | undefined>,
  secret: string,
  { now = new Date() }: { now?: Date } = {},
): Promise<Schemas["Event"]> {
  const header = (name: string) => (headers instanceof Headers ? headers.get(name) : headers[name]) ?? ""
  const [id, timestamp, signatures] = [
    header("webhook-id"),
    header("webhook-timestamp"),
    header("webhook-signature"),
  ]
  if (!/^\d+$/.test(timestamp)) throw new WebhookError("webhook-timestamp is missing")
  const seconds = now.getTime() / 1_000 - Number(timestamp)
  if (Math.abs(seconds) > toleranceSeconds)
    throw new WebhookError("the webhook is too old, or from the future")

  const keyBytes = bytesOf(secret.replace(/^whsec_/, ""))
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const key = await crypto.subtle.importKey("raw", keyBytes, algorithm, false, ["verify"])
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  for (const each of signatures.split(" ")) {
    const [version, signature = ""] = each.split(",")
    if (version !== "v1" || !/^[0-9A-Za-z+/]{43}=$/.test(signature)) continue
    if (await crypto.subtle.verify("HMAC", key, bytesOf(signature), signed)) return JSON.parse(body)
  }
  throw new WebhookError("no signature of the webhook is right")
}

const toleranceSeconds = 5 * 60

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}
