import { describe, expect, test } from "bun:test"
import type { IncomingHttpHeaders } from "node:http"
import { Webhook } from "standardwebhooks"
import { verifyWebhook, WebhookError } from "../../clients/typescript/webhooks.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1nT8qPzq3Vc="
const now = new Date()
const body = '{"id":"e1","type":"unit.created"}'
const signature = new Webhook(secret).sign("e1", now, body)
const headersWith = (signatures: string) => ({
  "webhook-id": "e1",
  "webhook-timestamp": `${Math.floor(now.getTime() / 1_000)}`,
  "webhook-signature": signatures,
})

describe("webhook verification in the TypeScript client", () => {
  test.each(["v1,abcde", "v1,A===", "v1,", "v1", "", "v1a,abcd"])(
    "throws WebhookError for a malformed signature: %j",
    async (forged) => {
      const refused = verifyWebhook(body, headersWith(forged), secret)
      expect(await refused.catch((error) => error)).toBeInstanceOf(WebhookError)
      const event = await verifyWebhook(body, headersWith(`${forged} ${signature}`), secret)
      expect<string>(event.id).toBe("e1")
    },
  )

  test.each(["", `"${secret}"`, "whsec_", secret.slice(0, -3), undefined as unknown as string])(
    "throws WebhookError that names the secret if it cannot be one: %j",
    async (wrong) => {
      const refused = verifyWebhook(body, headersWith(signature), wrong)
      await expect(refused).rejects.toThrow(
        new WebhookError(
          "the secret is missing or incomplete: it is whsec_ and base64, without quotation marks",
        ),
      )
    },
  )

  test.each([JSON.parse(body), undefined, null])(
    "throws WebhookError that asks for the raw body if it gets a parsed one: %j",
    async (parsed) => {
      const refused = verifyWebhook(parsed as string, headersWith(signature), secret)
      await expect(refused).rejects.toThrow(
        new WebhookError(
          "the raw body is needed, as text or bytes: it cannot be verified once it has been parsed",
        ),
      )
    },
  )

  test("accepts the body as bytes, as frameworks that parse nothing pass it", async () => {
    const bytes = new TextEncoder().encode(body)
    for (const raw of [bytes, Buffer.from(body), bytes.buffer])
      expect<string>((await verifyWebhook(raw, headersWith(signature), secret)).id).toBe("e1")
    const forged = new TextEncoder().encode(`${body} `)
    await expect(verifyWebhook(forged, headersWith(signature), secret)).rejects.toThrow("no signature")
  })

  test("accepts a secret that ends in a line break, as from a file", async () => {
    expect<string>((await verifyWebhook(body, headersWith(signature), `${secret}\r\n`)).id).toBe("e1")
  })

  test("accepts headers as frameworks pass them: in any case, with repeated headers as arrays", async () => {
    const upper = Object.entries(headersWith(signature)).map(([name, value]) => [name.toUpperCase(), value])
    const given: IncomingHttpHeaders = { ...Object.fromEntries(upper), "set-cookie": ["a=1", "b=2"] }
    expect<string>((await verifyWebhook(body, given, secret)).id).toBe("e1")
  })

  test("accepts headers of frameworks that bring a Headers of their own", async () => {
    const sent = new Headers(headersWith(signature))
    const own = { get: (name: string) => sent.get(name), forEach: sent.forEach.bind(sent) }
    expect<string>((await verifyWebhook(body, own, secret)).id).toBe("e1")
    const named = { ...headersWith(signature), get: "a header of this name" }
    expect<string>((await verifyWebhook(body, named, secret)).id).toBe("e1")
  })
})
