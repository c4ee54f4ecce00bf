import { expect, test } from "bun:test"
import { join } from "node:path"
import { Webhook } from "standardwebhooks"
import { exampleOf } from "../../src/api/docs/event-types.ts"
import { guidesFor } from "../../src/api/docs/guides.ts"
import { openApiDocument } from "../../src/api/openapi/document.ts"
import { api } from "../../src/api/routes.ts"
import { eventTypes } from "../../src/engine/events/types.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { validatorOf } from "../harness/openapi.ts"

const path = join(import.meta.dir, "../../src/api/docs/receiver.js")
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1nT8qPzq3Vc="

test("the receiver in the documentation has fifteen lines and works as printed", async () => {
  const text = await Bun.file(path).text()
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(15)
  const port = await freePort()
  const child = Bun.spawn([process.execPath, path], {
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
    stdout: "pipe",
    stderr: "pipe",
  })
  try {
    const event = exampleOf("claim.claimed")
    const body = JSON.stringify(event)
    const at = new Date()
    const headers = {
      "webhook-id": event.id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
      "webhook-signature": new Webhook(secret).sign(event.id, at, body),
    }
    const send = (sent: string) => fetch(`http://localhost:${port}/`, { method: "POST", body: sent, headers })
    let answer = await send(body).catch(() => null)
    for (let tries = 0; !answer && tries < 200; tries++) {
      await Bun.sleep(50)
      answer = await send(body).catch(() => null)
    }
    expect(answer?.status).toBe(204)
    expect((await send(`${body} `)).status).toBe(400)
    const said = async (stream: ReadableStream<Uint8Array>) =>
      new TextDecoder().decode((await stream.getReader().read()).value)
    expect(await said(child.stdout)).toBe(`${event.id} claim.claimed ${event.unit_id}\n`)
    expect(await said(child.stderr)).toBe("rejected: No matching signature found\n")
  } finally {
    child.kill()
    await child.exited
  }
}, 30_000)

test("the events page shows the receiver, and a schema-conforming example of every event type", () => {
  const guides = guidesFor({ api_base_url: "https://api.brand.test" })
  const page = guides.find(({ name }) => name === "events")?.markdown ?? ""
  const base = { api_base_url: "https://api.brand.test", docs_url: "https://api.brand.test/docs" }
  const check = validatorOf(openApiDocument(api, base), { $ref: "#/components/schemas/Event" })
  for (const type of eventTypes) {
    expect(page).toContain(`### ${type}`)
    expect(check(exampleOf(type))).toEqual([])
  }
  expect(page).toContain("webhook.verify(body, request.headers)")
})
