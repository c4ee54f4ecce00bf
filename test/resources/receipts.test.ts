import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createPublicKey, verify } from "node:crypto"
import { createLocalJWKSet, createRemoteJWKSet, type JSONWebKeySet, jwtVerify } from "jose"
import { isOfChip, verifyReceipt } from "../../clients/verify-receipt/verify-receipt.ts"
import { examples } from "../../src/api/openapi/examples.ts"
import {
  currentKey,
  listReceiptKeys,
  publishedKeys,
  rotateReceiptKey,
  signingKey,
} from "../../src/resources/receipts/keys.ts"
import { createTestTap } from "../../src/resources/taps/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
  type Visitor,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { openService, pairedTestChip, type TestService } from "../harness/services.ts"

const joseOptions = { algorithms: ["ES256"], typ: "tap-receipt+jwt" }

describe("a tap receipt", () => {
  let service: HttpService
  let maker: Customer
  let visitor: Visitor

  beforeAll(async () => {
    service = await startService()
    maker = await createCustomer(service, { cors_origins: ["https://shop.test"] })
    visitor = await createVisitor(service, maker)
  })
  afterAll(() => service.close())

  const tap = async (body: Record<string, unknown> = {}, key = maker.key, headers = {}) => {
    const { e } = await service.behind.turn((turn) =>
      createTestTap(turn, service.behind.secret, maker.caller, { chip_id: visitor.chip_id }),
    )
    return await ask(service, "POST /v1/taps", {
      as: key,
      headers,
      body: { chip_id: visitor.chip_id, e, ...body },
    })
  }
  const keysOf = async () =>
    (await ask(service, "GET /.well-known/jwks.json")).body as unknown as JSONWebKeySet

  test("is returned with the tap if requested, and contains the token, the counter and a salted digest of the chip ID", async () => {
    const { status, body } = await tap({ receipt: true })
    expect(status).toBe(201)
    const receipt = String(body.receipt)
    const { payload } = await jwtVerify(receipt, createLocalJWKSet(await keysOf()), joseOptions)
    const { collection } = body.unit as { collection: { contract: Record<string, unknown> } }
    expect(payload).toEqual({
      iss: service.context.config.api_base_url,
      jti: String(body.id),
      iat: Math.floor(service.context.clock().getTime() / 1_000),
      chain_id: collection.contract.chain_id,
      contract: collection.contract.address,
      serial: 1,
      counter: 2,
      is_test: true,
      chip_salt: expect.stringMatching(/^[\w-]{22}$/),
      chip_digest: expect.stringMatching(/^[\w-]{43}$/),
    } as never)
    expect(await isOfChip(payload as never, visitor.chip_id)).toBe(true)
    expect(verifiesWithNode(receipt, await keysOf())).toBe(true)
    expect(await verifyReceipt(receipt, (await keysOf()) as never)).toEqual(payload as never)
  })

  test("is null if none is requested, and for a dry run, which records nothing", async () => {
    expect((await tap()).body.receipt).toBeNull()
    expect((await tap({ receipt: false })).body.receipt).toBeNull()
    expect((await tap({ receipt: true, dry_run: true })).body.receipt).toBeNull()
  })

  test("is available to publishable keys, too, and is the same when the tap is replayed", async () => {
    const key = await publishableKeyOf(service, maker)
    const headers = { origin: "https://shop.test", "idempotency-key": "once" }
    const { e } = await service.behind.turn((turn) =>
      createTestTap(turn, service.behind.secret, maker.caller, { chip_id: visitor.chip_id }),
    )
    const question = { as: key, headers, body: { chip_id: visitor.chip_id, e, receipt: true } }
    const first = await ask(service, "POST /v1/taps", question)
    const again = await ask(service, "POST /v1/taps", question)
    expect([first.status, again.status, again.headers.get("idempotent-replayed")]).toEqual([201, 201, "true"])
    expect(again.body).toEqual(first.body)
    expect(verifiesWithNode(String(again.body.receipt), await keysOf())).toBe(true)
  })

  test("can be created later with an API key of the same organization, and by no one else", async () => {
    const { body } = await tap()
    const address = `GET /v1/taps/${body.id}/receipt`
    const later = await ask(service, address, { as: maker.key })
    expect(later.status).toBe(200)
    const claims = await verifyReceipt(String(later.body.receipt), (await keysOf()) as never)
    expect(claims).toMatchObject({ jti: String(body.id), serial: 1 })

    const stranger = await createCustomer(service)
    for (const refused of [
      await ask(service, address, { as: stranger.key }),
      await ask(service, "GET /v1/taps/no-uuid/receipt", { as: maker.key }),
      await ask(service, `GET /v1/taps/${visitor.unit_id}/receipt`, { as: maker.key }),
    ])
      expect([refused.status, refused.code]).toEqual([404, "tap.not_found"])
    expect((await ask(service, address, { as: visitor.token })).status).toBe(401)
    expect((await ask(service, address)).status).toBe(401)
  })

  test("has no token before its unit is issued", async () => {
    const chip = await pairedTestChip(service.behind, maker.caller)
    const { chip_id } = chip
    const { e } = await service.behind.turn((turn) =>
      createTestTap(turn, service.behind.secret, maker.caller, { chip_id }),
    )
    const { body } = await ask(service, "POST /v1/taps", {
      as: maker.key,
      body: { chip_id, e, receipt: true },
    })
    const claims = await verifyReceipt(String(body.receipt), (await keysOf()) as never)
    expect(claims).toMatchObject({ chain_id: null, contract: null, serial: null })
  })

  test("names no owner, customer or chip", async () => {
    const { body } = await tap({ receipt: true })
    const [, payload = ""] = String(body.receipt).split(".")
    const text = Buffer.from(payload, "base64url").toString()
    expect(text).not.toContain(visitor.chip_id)
    expect(Object.keys(JSON.parse(text)).sort()).toEqual([
      "chain_id",
      "chip_digest",
      "chip_salt",
      "contract",
      "counter",
      "iat",
      "is_test",
      "iss",
      "jti",
      "serial",
    ])
  })

  test("stays valid across rotations and while the service is down, and any flipped bit invalidates it", async () => {
    const own = await startService()
    const customer = await createCustomer(own)
    const { chip_id } = await createVisitor(own, customer)
    const receipts: string[] = []
    for (let rotation = 0; rotation < 3; rotation++) {
      const { e } = await own.behind.turn((turn) =>
        createTestTap(turn, own.behind.secret, customer.caller, { chip_id }),
      )
      const body = { chip_id, e, receipt: true }
      receipts.push(String((await ask(own, "POST /v1/taps", { as: customer.key, body })).body.receipt))
      await rotateKey(own.behind)
    }
    const remote = createRemoteJWKSet(new URL(`${own.base_url}/.well-known/jwks.json`))
    for (const receipt of receipts) await jwtVerify(receipt, remote, joseOptions)
    const kept = (await ask(own, "GET /.well-known/jwks.json")).body as unknown as JSONWebKeySet
    expect(kept.keys).toHaveLength(4)
    await own.close()

    const keys = createLocalJWKSet(kept)
    for (const receipt of receipts) {
      expect((await jwtVerify(receipt, keys, joseOptions)).payload.is_test).toBe(true)
      expect(verifiesWithNode(receipt, kept)).toBe(true)
    }
    expect(new Set(receipts.map((receipt) => receipt.split(".")[0])).size).toBe(3)
    const parts = String(receipts[0]).split(".")
    for (const [index, part] of parts.entries()) {
      const bytes = Buffer.from(part, "base64url")
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = parts.with(index, flipped(bytes, bit)).join(".")
        expect(verifiesWithNode(changed, kept)).toBe(false)
        await expect(jwtVerify(changed, keys, joseOptions)).rejects.toThrow()
      }
    }
  })

  test("has public keys that any page may read and cache for a minute, and that contain nothing secret", async () => {
    const { status, headers, body } = await ask(service, "GET /.well-known/jwks.json", {
      headers: { origin: "https://anybody.test" },
    })
    expect([status, headers.get("access-control-allow-origin"), headers.get("cache-control")]).toEqual([
      200,
      "https://anybody.test",
      "public, max-age=60",
    ])
    for (const key of (body as unknown as JSONWebKeySet).keys)
      expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"])
  })

  test("in the documentation is valid, and is about the chip of its story", async () => {
    const { receipt } = examples.getTapReceipt.response
    const claims = await verifyReceipt(receipt, examples.getReceiptKeys.response)
    expect(await isOfChip(claims, examples.getChip.response.chip_id)).toBe(true)
    expect(claims.jti).toBe(examples.createTap.response.id)
  })
})

describe.each(engines)("on $name the receipt keys", (engine) => {
  let service: TestService
  beforeAll(async () => {
    service = await openService(engine)
  })
  afterAll(() => service.close())

  const keys = () => listReceiptKeys(service.context.db.read)

  test("start with one, however many requests need it at once", async () => {
    const asked = Array.from({ length: 8 }, (_, index) =>
      index % 2 === 0
        ? service.turn((turn) => signingKey(turn, service.secret)).then(({ public_jwk }) => public_jwk)
        : publishedKeys(service.context).then(([newest]) => newest),
    )
    const first = await Promise.all(asked)
    expect(await keys()).toHaveLength(1)
    expect(new Set(first.map((jwk) => jwk?.kid)).size).toBe(1)
  })

  test("are rotated once if several operators rotate the same key, and the others are told the new one", async () => {
    const before = await keys()
    const rotations = await Promise.all(Array.from({ length: 6 }, () => rotateKey(service)))
    const after = await keys()
    expect(after).toHaveLength(before.length + rotations.filter(({ is_mine }) => is_mine).length)
    const known = new Set(after.map(({ kid }) => kid))
    expect(rotations.every(({ key }) => known.has(key.kid))).toBe(true)
    expect(after.map(({ number }) => number)).toEqual(after.map((_, index) => after.length - index))
  })

  test("sign with the newest, and lose the private half of the others", async () => {
    const { key } = await rotateKey(service)
    const all = await keys()
    expect(all.map(({ sealed_key }) => sealed_key !== null)).toEqual(all.map((_, index) => index === 0))
    const { public_jwk } = await currentKey(service.context.db.read, service.secret)
    expect(public_jwk.kid).toBe(key.kid)
    expect(JSON.stringify(all)).not.toContain((await currentKey(service.context.db.read, service.secret)).d)
  })
})

/** Uses no JWT library: parses the parts of RFC 7515 and verifies the signature with `node:crypto`. */
function verifiesWithNode(receipt: string, { keys }: JSONWebKeySet): boolean {
  const [header = "", payload = "", signature = ""] = receipt.split(".")
  const { kid } = documentIn(header)
  const jwk = keys.find((each) => each.kid === kid)
  if (!jwk) return false
  return verify(
    "sha256",
    Buffer.from(`${header}.${payload}`),
    { key: createPublicKey({ key: jwk as never, format: "jwk" }), dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  )
}

function documentIn(part: string): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString())
  } catch {
    return {}
  }
}

function flipped(bytes: Buffer, bit: number): string {
  const changed = Buffer.from(bytes)
  changed[bit >> 3] = bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7))
  return changed.toString("base64url")
}

async function rotateKey({ context, turn, secret }: TestService) {
  const [current] = await listReceiptKeys(context.db.read)
  return await turn((t) => rotateReceiptKey(t, secret, current))
}
