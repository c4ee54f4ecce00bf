import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { inTurn } from "../../src/platform/context.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { resumeOrganization, suspendOrganization } from "../../src/resources/organizations/service.ts"
import { revokePublishableKey, rotatePublishableKey } from "../../src/resources/publishable-keys/service.ts"
import {
  ask,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"

// Credentials that an operator revokes, or whose organization is suspended.

/** Longer than credentials are cached; the longest that a revocation may take. */
const promisedMilliseconds = 5_000

describe.each(engines)("on $name", (engine) => {
  let service: HttpService
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  const turn = <T>(work: Parameters<typeof inTurn<T>>[2]) => inTurn(service.context, null, work)
  const tapWith = (as: string) =>
    ask(service, "POST /v1/taps", { as, body: { chip_id: "0123456789", e: "A".repeat(32) } })

  test("every credential of a suspended organization is rejected with the same error until the organization is resumed", async () => {
    const customer = await createCustomer(service)
    const { organization_id } = customer.caller
    const visitor = await createVisitor(service, customer)
    const publishable = await publishableKeyOf(service, customer)
    const asked: [string, () => ReturnType<typeof ask>][] = [
      ["API key", () => ask(service, "GET /v1/units", { as: customer.key })],
      ["session", () => ask(service, "GET /v1/session-tokens/current", { as: visitor.token })],
      ["publishable key", () => tapWith(publishable)],
    ]
    for (const [, question] of asked) expect((await question()).code).not.toBe("auth.forbidden")

    await turn((t) => suspendOrganization(t, organization_id))
    service.advance(promisedMilliseconds)
    for (const [kind, question] of asked) {
      const { status, code, body } = await question()
      expect([kind, status, code]).toEqual([kind, 403, "auth.forbidden"])
      expect(JSON.stringify(body)).toContain("The organization is suspended")
    }
    const other = await createCustomer(service)
    expect((await ask(service, "GET /v1/units", { as: other.key })).status).toBe(200)

    await turn((t) => resumeOrganization(t, organization_id))
    service.advance(promisedMilliseconds)
    for (const [, question] of asked) expect((await question()).code).not.toBe("auth.forbidden")
  })

  test("a rotated publishable key and the new one both work until the overlap ends, then only the new one", async () => {
    const customer = await createCustomer(service)
    const old = await publishableKeyOf(service, customer)
    const [listed] = (await keysSeenBy(customer.key)) as [{ id: string }]
    const { issued } = await turn((t) => rotatePublishableKey(t, listed.id, 60))
    for (const key of [old, issued.key]) expect((await tapWith(key)).code).toBe("chip.not_found")
    expect(await keysSeenBy(customer.key)).toHaveLength(2)
    service.advance(60_000)
    service.advance(promisedMilliseconds)
    expect((await tapWith(old)).code).toBe("auth.unauthorized")
    expect((await tapWith(issued.key)).code).toBe("chip.not_found")
    expect(await keysSeenBy(customer.key)).toEqual([expect.objectContaining({ key: issued.key })])
  })

  test("a key rotated twice expires when the first rotation said, and an expired key cannot be rotated", async () => {
    const customer = await createCustomer(service)
    await publishableKeyOf(service, customer)
    const [listed] = (await keysSeenBy(customer.key)) as [{ id: string }]
    const first = await turn((t) => rotatePublishableKey(t, listed.id, 10))
    const second = await turn((t) => rotatePublishableKey(t, listed.id, 10_000))
    expect(second.rotated.expires_at).toEqual(first.rotated.expires_at)
    service.advance(10_000)
    await expect(turn((t) => rotatePublishableKey(t, listed.id, 10))).rejects.toThrow("is expired or revoked")
  })

  test("a revoked publishable key is rejected within 5 seconds", async () => {
    const customer = await createCustomer(service)
    const key = await publishableKeyOf(service, customer)
    expect((await tapWith(key)).code).toBe("chip.not_found")
    const [listed] = (await keysSeenBy(customer.key)) as [{ id: string }]
    await turn((t) => revokePublishableKey(t, listed.id))
    service.advance(promisedMilliseconds)
    expect((await tapWith(key)).code).toBe("auth.unauthorized")
  })

  test("an API key with an expiry works until then, and an expiry in the past is rejected", async () => {
    const { caller } = await createCustomer(service)
    const { organization_id } = caller
    const in_a_minute = new Date(service.context.clock().getTime() + 60_000)
    const { key } = await turn((t) =>
      issueApiKey(t, { organization_id, name: null, expires_at: in_a_minute }),
    )
    expect((await ask(service, "GET /v1/units", { as: key })).status).toBe(200)
    service.advance(60_000)
    expect((await ask(service, "GET /v1/units", { as: key })).code).toBe("auth.unauthorized")
    const late = turn((t) => issueApiKey(t, { organization_id, name: null, expires_at: in_a_minute }))
    await expect(late).rejects.toMatchObject({ details: { fieldErrors: { expires: [expect.any(String)] } } })
  })

  async function keysSeenBy(as: string): Promise<unknown[]> {
    const { body } = await ask(service, "GET /v1/publishable-keys", { as })
    return body.publishable_keys as unknown[]
  }
})
