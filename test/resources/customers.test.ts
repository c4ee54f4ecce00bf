import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { newId } from "../../src/platform/ids.ts"
import { requireIdentitySettings } from "../../src/resources/identity-tokens/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { alice, bob } from "../harness/ownership.ts"
import { activeCollection, newUnit, settle } from "../harness/services.ts"

// Identity tokens of an integrator's own sign-in, and quotas, from the caller's point of view.

const issuer = "https://sign-in.brand.test"
const audience = "chips"

let service: HttpService
let maker: Customer
let privateKey: CryptoKey
let signIn: Bun.Server<undefined>
let asked = 0

beforeAll(async () => {
  const pair = await generateKeyPair("ES256")
  privateKey = pair.privateKey
  const keys = [{ ...(await exportJWK(pair.publicKey)), kid: "one", alg: "ES256" }]
  signIn = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      asked += 1
      return Response.json({ keys })
    },
  })
  service = await startService()
  maker = await createCustomer(service, {
    identity: { issuer, audience, jwks_url: `http://127.0.0.1:${signIn.port}/keys` },
  })
})
afterAll(async () => {
  await service.close()
  await signIn.stop(true)
})

describe("an identity token", () => {
  test("sets the customer of the claim and of the transfer", async () => {
    const visitor = await createVisitor(service, maker)
    const claim = await create("claims", visitor, { identity_token: await token({ sub: "customer-1" }) })
    expect([claim.status, claim.body.customer_id]).toEqual([201, "customer-1"])
    await settle(service.behind, String(claim.body.id), { transaction_hash: `0x${"03".repeat(32)}` })
    service.chain.owner = alice
    const body = { recipient: bob, identity_token: await token({ sub: "customer-2" }) }
    const transfer = await create("transfers", visitor, body)
    service.chain.owner = null
    expect([transfer.status, transfer.body.customer_id]).toEqual([201, "customer-2"])
    const shown = await ask(service, `GET /v1/units/${visitor.unit_id}/claims/${claim.body.id}`, {
      as: maker.key,
    })
    expect(shown.body.customer_id).toBe("customer-1")
  })

  test("is valid for one request", async () => {
    const identity_token = await token({})
    const first = await create("claims", await createVisitor(service, maker), { identity_token })
    const second = await create("claims", await createVisitor(service, maker), { identity_token })
    expect([first.status, second.status, second.fields]).toEqual([201, 400, ["identity_token"]])
  })

  test("sent again with the same idempotency key is not used twice", async () => {
    const visitor = await createVisitor(service, maker)
    const body = { identity_token: await token({}) }
    const headers = { "idempotency-key": newId() }
    const answers = [
      await create("claims", visitor, body, headers),
      await create("claims", visitor, body, headers),
    ]
    expect(answers[1]?.text).toBe(String(answers[0]?.text))
  })

  const wrong: [what: string, make: () => Promise<string>][] = [
    ["of another issuer", () => token({ iss: "https://evil.test" })],
    ["for another audience", () => token({ aud: "shop" })],
    ["that has expired", () => token({ exp: -60 })],
    ["that is valid for more than ten minutes", () => token({ exp: 3_600 })],
    ["without a subject", () => token({ sub: undefined })],
    ["without a token ID", () => token({ jti: undefined })],
    ["with a signature of another key", async () => token({}, (await generateKeyPair("ES256")).privateKey)],
    ["that is not a JWT", async () => "not.a.token"],
  ]
  for (const [what, make] of wrong)
    test(`${what} is rejected on its field, and nothing is recorded`, async () => {
      const visitor = await createVisitor(service, maker)
      const identity_token = await make()
      const answer = await create("claims", visitor, { identity_token })
      expect([answer.status, answer.code, answer.fields]).toEqual([
        400,
        "validation.failed",
        ["identity_token"],
      ])
      expect(answer.text).not.toContain(identity_token)
      expect((await create("claims", visitor, {})).status).toBe(201)
    })

  test("is rejected if the organization has no sign-in", async () => {
    const visitor = await createVisitor(service, await createCustomer(service))
    expect((await create("claims", visitor, { identity_token: await token({}) })).fields).toEqual([
      "identity_token",
    ])
  })

  test("does not make the service fetch the sign-in's keys each time", () => {
    expect(asked).toBeLessThanOrEqual(2)
  })
})

describe("a sign-in whose keys cannot be fetched", () => {
  test("returns 503 with Retry-After instead of an error of the caller", async () => {
    const jwks_url = "http://127.0.0.1:1/keys"
    const customer = await createCustomer(service, { identity: { issuer, audience, jwks_url } })
    const visitor = await createVisitor(service, customer)
    const answer = await create("claims", visitor, { identity_token: await token({}) })
    expect([answer.status, answer.code]).toEqual([503, "internal.error"])
    expect(answer.headers.get("retry-after")).toBe("5")
  })
})

describe("the JWKS URL of a sign-in", () => {
  const refused = [
    "http://localhost:1@evil.test/keys",
    "https://user:secret@sign-in.test/keys",
    "http://sign-in.test/keys",
    "ftp://localhost/keys",
    "localhost/keys",
  ]
  for (const jwks_url of refused)
    test(`cannot be ${jwks_url}`, () => {
      expect(() => requireIdentitySettings({ issuer, audience, jwks_url })).toThrow(
        "The request is not valid.",
      )
    })
})

test("a sign-in's public key that is JSON but not a key is rejected by name", () => {
  for (const public_key of ['"x"', "1", "true", "null", "[1]", "{}"])
    expect(() => requireIdentitySettings({ issuer, audience, public_key })).toThrow(
      "The request is not valid.",
    )
})

describe("a quota", () => {
  test("of units, collections, chips or taps rejects what exceeds it, without Retry-After", async () => {
    const customer = await createCustomer(service, {
      quota_collections: 1,
      quota_units: 2,
      quota_chips: 1,
      quota_taps_per_month: 1,
    })
    const collection = await activeCollection(service.behind, customer.caller)
    const units = [1, 2].map(() => newUnit(service.behind, customer.caller, collection))
    const [one, two] = await Promise.all(units)
    const post = (path: string, body: object) =>
      ask(service, `POST ${path}` as "POST /", { as: customer.key, body })
    const paired = await post("/v1/chips", { unit_id: one?.id, is_test: true })
    const tap = async () => {
      const { chip_id } = paired.body
      const { body } = await post("/v1/test-helpers/taps", { chip_id })
      return await post("/v1/taps", { chip_id, e: body.e })
    }
    expect([paired.status, (await tap()).status]).toEqual([201, 201])
    const refusals = [
      await post("/v1/collections", { name: "More" }),
      await post("/v1/units", { collection_id: collection.id }),
      await post("/v1/chips", { unit_id: two?.id, is_test: true }),
      await tap(),
    ]
    for (const { status, code, headers } of refusals)
      expect([status, code, headers.has("retry-after")]).toEqual([403, "quota.exceeded", false])
  })

  test("of taps starts over each month", async () => {
    const customer = await createCustomer(service, { quota_taps_per_month: 1 })
    const { chip_id } = await createVisitor(service, customer)
    const tap = async () => {
      const { body } = await ask(service, "POST /v1/test-helpers/taps", {
        as: customer.key,
        body: { chip_id },
      })
      return (await ask(service, "POST /v1/taps", { as: customer.key, body: { chip_id, e: body.e } })).status
    }
    expect(await tap()).toBe(403)
    // The clock stands at one minute before April.
    service.advance(60_000)
    expect([await tap(), await tap()]).toEqual([201, 403])
  })
})

function create(
  what: "claims" | "transfers",
  visitor: { unit_id: string; token: string },
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
) {
  return ask(service, `POST /v1/units/${visitor.unit_id}/${what}`, {
    as: visitor.token,
    body: { recipient: alice, ...body },
    headers,
  })
}

/** Signs an identity token; `exp` is in seconds from now. */
async function token(claims: Record<string, unknown>, key = privateKey): Promise<string> {
  const now = Math.floor(service.context.clock().getTime() / 1000)
  const { exp = 300, ...others } = claims
  const payload = { iss: issuer, aud: audience, sub: "customer", jti: newId(), iat: now, ...others }
  return await new SignJWT({ ...payload, exp: now + Number(exp) })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .sign(key)
}
