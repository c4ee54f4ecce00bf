import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from "bun:test"
import { createSign, generateKeyPairSync } from "node:crypto"
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose"
import { newId } from "../../src/platform/ids.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { alice } from "../harness/ownership.ts"

// Real-world sign-ins: unusable keys, keys without an ID, and JWKS URLs that do not respond.

const [issuer, audience] = ["https://sign-in.brand.test", "chips"]
const inAnHour = Math.floor(Date.now() / 1000) + 3600
const closers: (() => unknown)[] = []

let service: HttpService
beforeAll(async () => {
  service = await startService()
})
afterEach(() => {
  setSystemTime()
  for (const close of closers.splice(0)) close()
})
afterAll(() => service.close())

describe("an identity token with a known key is accepted", () => {
  test("while other keys cannot be fetched from the JWKS URL", async () => {
    const { maker, published, sign } = await brand()
    expect(await claim(maker, await sign("one"))).toEqual([201, null])
    published.keys = null
    // Keys are fetched again after 30 seconds at the earliest.
    setSystemTime(Date.now() + 31_000)
    expect(await claim(maker, await sign("unknown"))).toEqual([503, "internal.error"])
    expect(await claim(maker, await sign("one"))).toEqual([201, null])
  })

  test("after another token named an unusable key of the same sign-in", async () => {
    const { maker, sign } = await brand({ kty: "RSA", kid: "broken", alg: "RS256" })
    expect(await claim(maker, await sign("one"))).toEqual([201, null])
    const unusable = unsigned({ alg: "RS256", kid: "broken" })
    expect(await claim(maker, unusable)).toEqual([400, "validation.failed"])
    expect(await claim(maker, await sign("one"))).toEqual([201, null])
  })
})

test("a token without a key ID is verified with each published key, as during a key rotation", async () => {
  const { maker, published, sign } = await brand()
  const next = await generateKeyPair("ES256", { extractable: true })
  published.keys?.push({ ...(await exportJWK(next.publicKey)), kid: "two", alg: "ES256" })
  const signNext = (claims: object) =>
    new SignJWT({ ...payload(), ...claims }).setProtectedHeader({ alg: "ES256" }).sign(next.privateKey)
  expect(await claim(maker, await sign(undefined))).toEqual([201, null])
  expect(await claim(maker, await signNext({}))).toEqual([201, null])
  expect(await claim(maker, await signNext({ aud: "shop" }))).toEqual([400, "validation.failed"])
  expect(await claim(maker, unsigned({ alg: "ES256" }))).toEqual([400, "validation.failed"])
})

test.each([
  ["no key ID", undefined],
  ["the same key ID", "one"],
])(
  "a new key with %s that replaced another is accepted once the JWKS URL may be requested again",
  async (_name, kid) => {
    const { maker, published, sign } = await brand()
    expect(await claim(maker, await sign(kid))).toEqual([201, null])
    const next = await generateKeyPair("ES256", { extractable: true })
    published.keys = [{ ...(await exportJWK(next.publicKey)), kid: "one", alg: "ES256" }]
    setSystemTime(Date.now() + 31_000)
    const header = { alg: "ES256", ...(kid && { kid }) }
    const token = await new SignJWT(payload()).setProtectedHeader(header).sign(next.privateKey)
    expect(await claim(maker, token)).toEqual([201, null])
    expect(await claim(maker, await sign(kid))).toEqual([400, "validation.failed"])
  },
)

test("a JWKS that is longer than 256 KiB is not read: each token would cost time with all of it", async () => {
  const filler = { kty: "oct", k: "A".repeat(256 * 1_024) }
  const { maker, sign } = await brand(filler)
  expect(await claim(maker, await sign("one"))).toEqual([503, "internal.error"])
})

test("a token that fits more than 20 keys must name one of them", async () => {
  const { maker, published, sign } = await brand()
  const { publicKey } = await generateKeyPair("ES256", { extractable: true })
  const strange = await exportJWK(publicKey)
  published.keys?.unshift(...Array.from({ length: 19 }, () => strange))
  expect(await claim(maker, await sign(undefined))).toEqual([201, null])
  published.keys?.unshift(strange)
  setSystemTime(Date.now() + 31_000)
  // The keys are fetched again for a token that names an unknown one.
  expect(await claim(maker, await sign("unknown"))).toEqual([400, "validation.failed"])
  expect(await claim(maker, await sign("one"))).toEqual([201, null])
  expect(await refusalOf(maker, await sign(undefined))).toEqual([
    "is not accepted: it must have the kid of one key: more than 20 of the organization's sign-in fit it",
  ])
})

test("a token of an RSA key that is too short is rejected on its field", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 })
  const { maker } = await brand({ ...publicKey.export({ format: "jwk" }), kid: "short", alg: "RS256" })
  const content = unsigned({ alg: "RS256", kid: "short" }).split(".").slice(0, 2).join(".")
  const signature = createSign("RSA-SHA256").update(content).sign(privateKey, "base64url")
  expect(await claim(maker, `${content}.${signature}`)).toEqual([400, "validation.failed"])
})

test("a token of a key whose private half the sign-in publishes is rejected on its field", async () => {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true })
  const leaked = { ...(await exportJWK(privateKey)), kid: "leaked", alg: "ES256" }
  const { maker, sign } = await brand(leaked)
  const token = await new SignJWT(payload())
    .setProtectedHeader({ alg: "ES256", kid: "leaked" })
    .sign(privateKey)
  expect(await claim(maker, token)).toEqual([400, "validation.failed"])
  expect(await claim(maker, await sign("one"))).toEqual([201, null])
})

test.each([
  ["its exp is missing", { exp: undefined }],
  ["its exp must be a number of seconds", { exp: "2026-01-31T12:00:00Z" }],
  ["its nbf lies in the future: compare the clock of the sign-in", { nbf: inAnHour }],
  ["its iss is not the registered one", { iss: `${issuer}/` }],
  ["its aud is not the registered one", { aud: "shop" }],
])("a token whose claim is wrong is rejected because %s", async (reason, claims) => {
  const { maker, sign } = await brand()
  expect(await refusalOf(maker, await sign("one", claims))).toEqual([`is not accepted: ${reason}`])
})

/**
 * Creates a brand whose sign-in publishes a key and optionally another. Once `published.keys` is null the JWKS URL
 * returns 500.
 */
async function brand(other?: JWK) {
  const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true })
  const own: JWK = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" }
  const published: { keys: JWK[] | null } = { keys: other ? [own, other] : [own] }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => (published.keys ? Response.json(published) : new Response(null, { status: 500 })),
  })
  closers.push(() => server.stop(true))
  const jwks_url = `http://127.0.0.1:${server.port}/keys`
  const maker = await createCustomer(service, { identity: { issuer, audience, jwks_url } })
  const sign = (kid: string | undefined, claims: object = {}) =>
    new SignJWT({ ...payload(), ...claims })
      .setProtectedHeader({ alg: "ES256", ...(kid && { kid }) })
      .sign(privateKey)
  return { maker, published, sign }
}

async function claim(maker: Customer, identity_token: string) {
  const { status, code } = await askForClaim(maker, identity_token)
  return [status, code]
}

async function refusalOf(maker: Customer, identity_token: string) {
  const { body } = await askForClaim(maker, identity_token)
  const { error } = body as { error: { details: { fieldErrors: Record<string, string[]> } } }
  return error.details.fieldErrors.identity_token
}

async function askForClaim(maker: Customer, identity_token: string) {
  const visitor = await createVisitor(service, maker)
  return await ask(service, `POST /v1/units/${visitor.unit_id}/claims`, {
    as: visitor.token,
    body: { recipient: alice, identity_token },
  })
}

function payload() {
  const exp = Math.floor(service.context.clock().getTime() / 1000) + 300
  return { iss: issuer, aud: audience, sub: "customer", jti: newId(), exp }
}

function unsigned(header: object): string {
  const [head, body] = [header, payload()].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  )
  return `${head}.${body}.AAAA`
}
