import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { exportSPKI, generateKeyPair, SignJWT } from "jose"
import { actors, idempotencyKeys, identityTokenUses, sessionTokens } from "../../src/db/schema.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { answerOnce } from "../../src/http/idempotency.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  checkIdentityToken,
  type IdentityProof,
  useIdentityToken,
} from "../../src/resources/identity-tokens/service.ts"
import { reapExpired } from "../../workers/watches/reap-expired.ts"
import { engines } from "../harness/engines.ts"
import {
  createCaller,
  openService,
  pairedTestChip,
  recordedTap,
  refusal,
  type TestService,
} from "../harness/services.ts"

const start = new Date("2026-03-31T23:59:00.000Z")

describe.each(engines)("on $name", (engine) => {
  let service: TestService
  let caller: Caller
  let keys: Awaited<ReturnType<typeof generateKeyPair>>

  beforeAll(async () => {
    service = await openService(engine)
    keys = await generateKeyPair("ES256")
    const public_key = await exportSPKI(keys.publicKey)
    caller = await createCaller(service, { identity: { issuer: "i", audience: "a", public_key } })
  })
  beforeEach(() => service.setTime(start))
  afterAll(() => service.close())

  const read = () => service.context.db.read
  const waitUntil = (seconds: number) => service.setTime(new Date(start.getTime() + seconds * 1000))
  const reap = () => reapExpired(service.context)

  describe("a stored response", () => {
    const answer = { status: 201, body: "{}", location: null }
    const keep = (key: string) =>
      service.turn((turn) => {
        const asked = { scope: "organization:1", key, operation: "createUnit", fingerprint: "1" }
        return answerOnce(turn, service.secret, asked, async () => answer)
      })

    test("is deleted after a day, and not before", async () => {
      const [old, young] = [newId(), newId()]
      await keep(old)
      waitUntil(1)
      await keep(young)
      waitUntil(24 * 60 * 60)
      await reap()
      expect((await read().select().from(idempotencyKeys)).map(({ key }) => key)).toEqual([young])
    })
  })

  describe("an ended session", () => {
    test("is deleted a day later, and so is its stored actor, however many there are", async () => {
      const chip = await pairedTestChip(service, caller)
      const tapId = await recordedTap(service, caller, chip)
      const [one] = await read().select().from(sessionTokens).where(eq(sessionTokens.tap_id, tapId))
      if (!one) throw new Error("a tap has a session")
      const row = (seconds: number) => ({
        ...one,
        ...{ id: newId(), hash: newId(), expires_at: new Date(start.getTime() + seconds * 1_000) },
      })
      const ended = Array.from({ length: 620 }, (_, index) => row(index / 1_000))
      const last = row(1)
      await service.turn(({ tx }) => tx.insert(sessionTokens).values([...ended, last]))
      for (const { id } of [last, ended[0] ?? last])
        await service.turn((turn) => sendEvent(turn, id, { type: "REVOKE" }))
      waitUntil(24 * 60 * 60 + 0.7)
      expect(await reapExpired(service.context)).toBe(620)
      const left = (await read().select().from(sessionTokens)).map(({ id }) => id)
      expect(left.sort()).toEqual([one.id, last.id].sort())
      const stored = eq(actors.machine, "session-token")
      expect((await read().select().from(actors).where(stored)).map(({ id }) => id)).toEqual([last.id])
    })
  })

  describe("the use of an identity token that expires in 300 seconds", () => {
    const usedToken = async () => {
      const exp = start.getTime() / 1000 + 300
      const token = await new SignJWT({ iss: "i", aud: "a", sub: "ann", jti: newId(), exp })
        .setProtectedHeader({ alg: "ES256" })
        .sign(keys.privateKey)
      const proof = await check(token)
      await use(proof)
      return { token, proof }
    }
    const check = async (token: string) =>
      (await checkIdentityToken(service.context, caller, token)) as IdentityProof
    const use = (proof: IdentityProof) => service.turn((turn) => useIdentityToken(turn, caller, proof))
    const usesOf = async ({ jti }: IdentityProof) =>
      (await read().select().from(identityTokenUses)).filter((row) => row.jti === jti).length

    test("is kept for as long as the token is accepted, even by a clock that is behind", async () => {
      const { token } = await usedToken()
      waitUntil(304)
      const again = await check(token)
      waitUntil(304 + 9 * 60)
      await reap()
      expect(await refusal(use(again))).toEqual({ fields: ["identity_token"] })
    })

    test("is deleted ten minutes after the token can no longer be used", async () => {
      const { token, proof } = await usedToken()
      waitUntil(305 + 10 * 60)
      expect(await refusal(check(token))).toEqual({ fields: ["identity_token"] })
      expect(await usesOf(proof)).toBe(1)
      await reap()
      expect(await usesOf(proof)).toBe(0)
    })
  })
})
