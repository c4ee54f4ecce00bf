import { beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import fc from "fast-check"
import { exportSPKI, generateKeyPair, SignJWT } from "jose"
import { getAddress } from "viem"
import { actorEvents, identityTokenUses } from "../../src/db/schema.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { newId } from "../../src/platform/ids.ts"
import { Unavailable } from "../../src/platform/unavailable.ts"
import type { CreateClaimBody } from "../../src/resources/claims/model.ts"
import { presentClaim } from "../../src/resources/claims/present.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { getUnit } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  alice,
  bob,
  claim,
  claimedUnit,
  issuedUnit,
  openEffect,
  replaceChip,
  sessionOf,
  unpairedUnit,
  useOwnership,
} from "../harness/ownership.ts"
import { createCaller, pairedTestChip, refusal, setOrganization, settle } from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  const service = useOwnership(engine)
  const { read, says } = service
  const codeOf = (who: Caller, unitId: string, body: CreateClaimBody) =>
    refusal(prepareClaim(service.context, who, unitId, body))

  describe("a claim that the service relays", () => {
    test("is claiming at once and is queued in the ownership lane", async () => {
      const { unit, session } = await issuedUnit(service)
      const row = await claim(service, session, unit.id, { recipient: alice })
      expect(presentClaim(row)).toEqual({
        id: row.id,
        unit_id: unit.id,
        status: "claiming",
        execution: "service_relay",
        recipient: alice,
        customer_id: null,
        transaction: null,
        transaction_hash: null,
        failure: null,
        expires_at: null,
        created_at: "2026-03-31T23:59:00.000Z",
        updated_at: "2026-03-31T23:59:00.000Z",
      })
      expect(await openEffect(service, row.id)).toMatchObject({
        src: "relayClaim",
        queue: "lane:issuance",
        input: { lane_id: "issuance", unit_id: unit.id, recipient: alice },
      })
    })

    test("makes the unit claimed once the chain confirms it", async () => {
      const { unit, session, id } = await claimedUnit(service)
      expect(await getClaim(read(), session, unit.id, id)).toMatchObject({
        status: "claimed",
        transaction_hash: `0x${"ab".repeat(32)}`,
        failure: null,
      })
      expect((await getUnit(read(), service.caller, unit.id)).claimed).toBe(true)
    })
  })

  describe("a claim that the recipient's wallet submits", () => {
    test("includes a transaction that is valid for 30 minutes and is watched on the chain", async () => {
      const { unit, session } = await issuedUnit(service)
      const body = { recipient: alice, execution: "client_broadcast" as const }
      const row = await claim(service, session, unit.id, body)
      const contract_address = unit.collection?.address
      expect(presentClaim(row)).toMatchObject({
        execution: "client_broadcast",
        transaction: { from: alice, to: contract_address, value: "0x0" },
        expires_at: "2026-04-01T00:29:00.000Z",
      })
      expect(await openEffect(service, row.id)).toMatchObject({
        src: "watchAuthorization",
        input: {
          chain_id: 31337,
          contract_address,
          serial: 1,
          authorization_digest: row.authorization_digest,
          authorization_nonce: 0,
          deadline_at: "2026-04-01T00:29:00.000Z",
        },
      })
    })

    test("is not issued if the contract stops trusting the authorizer's key even a second before the deadline", async () => {
      const { unit, session } = await issuedUnit(service)
      const text = "AUTHORIZER_KEY is the key of somebody else"
      says.authorizer_end = { at: new Date("2026-04-01T00:28:59.000Z"), text }
      const body = { recipient: alice, execution: "client_broadcast" as const }
      const asked = () => prepareClaim(service.context, session, unit.id, body)
      await expect(asked()).rejects.toEqual(new Unavailable(text))
      says.authorizer_end.at = new Date("2026-04-01T00:29:00.000Z")
      expect((await asked()).authorization?.deadline_at).toEqual(says.authorizer_end.at)
    })

    test("is not issued if the unit has another chip on the chain, which it would lock in forever", async () => {
      const { unit, session } = await issuedUnit(service)
      const body = { recipient: alice, execution: "client_broadcast" as const }
      says.chip_id = "0BADBADBAD"
      const asked = () => prepareClaim(service.context, session, unit.id, body)
      await expect(asked()).rejects.toMatchObject({ code: "claim.owner_unknown" })
    })

    test("is expired once the chain has passed the deadline without it, and the unit can be claimed again", async () => {
      const { unit, session } = await issuedUnit(service)
      const body = { recipient: alice, execution: "client_broadcast" as const }
      const { id } = await claim(service, session, unit.id, body)
      await settle(service, id, { outcome: "expired" })
      expect((await getClaim(read(), service.caller, unit.id, id)).status).toBe("expired")
      expect(await claim(service, session, unit.id, { recipient: bob })).toMatchObject({
        status: "claiming",
        recipient: bob,
      })
    })
  })

  describe("a recipient", () => {
    test("is stored with its checksum, whether it was sent in upper or lower case", async () => {
      for (const recipient of [alice.toLowerCase(), `0x${alice.slice(2).toUpperCase()}`]) {
        const { unit, session } = await issuedUnit(service)
        expect((await claim(service, session, unit.id, { recipient })).recipient).toBe(alice)
      }
    })

    test("with a wrong checksum is rejected", async () => {
      const { unit, session } = await issuedUnit(service)
      const recipient = alice.replace("C5", "c5")
      expect(await codeOf(session, unit.id, { recipient })).toEqual({ fields: ["recipient"] })
    })

    test("is rejected if it is the zero address or the collection's contract", async () => {
      const { unit, session } = await issuedUnit(service)
      for (const recipient of [`0x${"0".repeat(40)}`, unit.collection?.address ?? ""])
        expect(await codeOf(session, unit.id, { recipient })).toEqual({ fields: ["recipient"] })
    })

    test("is rejected if it is not an address", async () => {
      const { unit, session } = await issuedUnit(service)
      await fc.assert(
        fc.asyncProperty(fc.string(), async (recipient) => {
          expect(await codeOf(session, unit.id, { recipient })).toEqual({ fields: ["recipient"] })
        }),
      )
    })

    test("is accepted for every address with a correct checksum", async () => {
      const { unit, session } = await issuedUnit(service)
      const hexDigits = fc.array(fc.constantFrom(..."0123456789abcdef"), { minLength: 40, maxLength: 40 })
      await fc.assert(
        fc.asyncProperty(hexDigits, async (digits) => {
          const recipient = getAddress(`0x${digits.join("")}`)
          fc.pre(!/^0x0+$/.test(recipient))
          await prepareClaim(service.context, session, unit.id, { recipient })
        }),
      )
    })
  })

  describe("a claim is rejected", () => {
    test("for another organization's unit, with the same error as for an unknown unit", async () => {
      const { unit } = await issuedUnit(service)
      const stranger = await createCaller(service)
      for (const id of [unit.id, newId(), "no-uuid"])
        expect(await codeOf(stranger, id, { recipient: alice })).toBe("unit.not_found")
    })

    test("with a session of another unit's chip", async () => {
      const { unit } = await issuedUnit(service)
      const { session } = await issuedUnit(service)
      expect(await codeOf(session, unit.id, { recipient: alice })).toBe("session_token.wrong_chip")
    })

    test("with a session of a chip that the unit no longer has", async () => {
      const { unit, session } = await issuedUnit(service)
      const { id } = await replaceChip(service, unit.id, { is_test: true })
      await settle(service, id, { transaction_hash: "0x03" })
      expect(await codeOf(session, unit.id, { recipient: alice })).toBe("session_token.wrong_chip")
    })

    test("before a chip is paired, and during issuance", async () => {
      const unpaired = await unpairedUnit(service)
      expect(await codeOf(service.caller, unpaired.id, { recipient: alice })).toBe("unit.not_minted")
      const chip = await pairedTestChip(service, service.caller)
      const session = sessionOf(service.caller, chip.chip_id, chip.unit?.id ?? "")
      expect(await codeOf(session, chip.unit?.id ?? "", { recipient: alice })).toBe("unit.issuance_pending")
    })

    test("while another claim is open", async () => {
      const { unit, session } = await issuedUnit(service)
      await claim(service, session, unit.id, { recipient: alice })
      expect(await codeOf(session, unit.id, { recipient: bob })).toBe("claim.in_progress")
    })

    test("while a chip replacement is open", async () => {
      const { unit, session } = await issuedUnit(service)
      await replaceChip(service, unit.id, { is_test: true })
      expect(await codeOf(session, unit.id, { recipient: alice })).toBe("chip_replacement.in_progress")
    })

    test("if the recipient already owns the unit, and if somebody else does", async () => {
      const { unit, session } = await claimedUnit(service)
      expect(await codeOf(session, unit.id, { recipient: alice })).toBe("claim.already_to_recipient")
      expect(await codeOf(session, unit.id, { recipient: bob })).toBe("claim.already_claimed")
    })

    test("if the chain does not respond or is not configured", async () => {
      const { unit, session } = await issuedUnit(service)
      says.isReachable = false
      const body = { recipient: alice }
      expect(await codeOf(session, unit.id, body)).toBe("claim.owner_unknown")
      const nowhere = { ...service.context, chains: new Map() }
      expect(await refusal(prepareClaim(nowhere, session, unit.id, body))).toBe("claim.owner_unknown")
    })

    test("if the chain still shows a claimed unit in custody", async () => {
      const { unit, session } = await claimedUnit(service)
      says.owner = null
      expect(await codeOf(session, unit.id, { recipient: bob })).toBe("claim.owner_unknown")
    })
  })

  describe("between the read from the chain and the write to the database", () => {
    test("of many claims that were prepared at once exactly one is recorded", async () => {
      const { unit, session } = await issuedUnit(service)
      const body = { recipient: alice }
      const prepared = await Promise.all(
        Array.from({ length: 10 }, () => prepareClaim(service.context, session, unit.id, body)),
      )
      const outcomes = await Promise.allSettled(
        prepared.map((each) =>
          service.turn((turn) => createClaim(turn, session, { unit_id: unit.id, body, prepared: each })),
        ),
      )
      const refusals = outcomes.filter(({ status }) => status === "rejected")
      expect(refusals).toHaveLength(9)
      for (const each of refusals)
        expect((each as PromiseRejectedResult).reason).toMatchObject({ code: "claim.in_progress" })
    })

    test("a claim that was confirmed meanwhile causes the later one to be rejected", async () => {
      const { unit, session } = await issuedUnit(service)
      const late = await prepareClaim(service.context, session, unit.id, { recipient: bob })
      const { id } = await claim(service, session, unit.id, { recipient: alice })
      await settle(service, id, { transaction_hash: "0x04" })
      const recorded = service.turn((turn) =>
        createClaim(turn, session, { unit_id: unit.id, body: { recipient: bob }, prepared: late }),
      )
      expect(await refusal(recorded)).toBe("claim.owner_unknown")
    })

    test("a rejected claim leaves no history and no effect", async () => {
      const { unit, session } = await issuedUnit(service)
      const late = await prepareClaim(service.context, session, unit.id, { recipient: bob })
      await claim(service, session, unit.id, { recipient: alice })
      const before = (await read().select().from(actorEvents)).length
      await refusal(
        service.turn((turn) =>
          createClaim(turn, session, { unit_id: unit.id, body: { recipient: bob }, prepared: late }),
        ),
      )
      expect((await read().select().from(actorEvents)).length).toBe(before)
    })
  })

  describe("a claim", () => {
    test("can be read with the organization's API key and the unit's session only", async () => {
      const { unit, session } = await issuedUnit(service)
      const other = await issuedUnit(service)
      const stranger = await createCaller(service)
      const { id } = await claim(service, session, unit.id, { recipient: alice })
      expect((await getClaim(read(), service.caller, unit.id, id)).id).toBe(id)
      expect((await getClaim(read(), session, unit.id.toUpperCase(), id.toUpperCase())).id).toBe(id)
      expect(await refusal(getClaim(read(), other.session, unit.id, id))).toBe("session_token.wrong_chip")
      expect(await refusal(getClaim(read(), stranger, unit.id, id))).toBe("unit.not_found")
      expect(await refusal(getClaim(read(), service.caller, other.unit.id, id))).toBe("claim.not_found")
      for (const unknown of [newId(), "no-uuid"])
        expect(await refusal(getClaim(read(), service.caller, unit.id, unknown))).toBe("claim.not_found")
    })
  })

  describe("an identity token", () => {
    const issuer = "https://sign-in.example"
    const audience = "service"
    const nowSeconds = Date.parse("2026-03-31T23:59:00.000Z") / 1000
    let keys: Awaited<ReturnType<typeof generateKeyPair>>
    let holder: Caller

    beforeAll(async () => {
      keys = await generateKeyPair("ES256", { extractable: true })
      holder = await createCaller(service)
      const public_key = await exportSPKI(keys.publicKey)
      await setOrganization(service, holder, { identity: { issuer, audience, public_key } })
    })

    const sign = (claims: Record<string, unknown> = {}, key = keys.privateKey) =>
      new SignJWT({ iss: issuer, aud: audience, sub: "ann", jti: newId(), exp: nowSeconds + 300, ...claims })
        .setProtectedHeader({ alg: "ES256" })
        .sign(key)
    const claimWith = async (identity_token: string) => {
      const { unit, session } = await issuedUnit(service, holder)
      return await claim(service, session, unit.id, { recipient: alice, identity_token })
    }

    test("sets the customer of the claim", async () => {
      expect((await claimWith(await sign())).customer_id).toBe("ann")
    })

    test("may expire up to ten minutes from now", async () => {
      expect((await claimWith(await sign({ exp: nowSeconds + 600 }))).customer_id).toBe("ann")
    })

    test("works once, and its use is stored until it expires", async () => {
      const jti = newId()
      const token = await sign({ jti })
      await claimWith(token)
      expect(await refusal(claimWith(token))).toEqual({ fields: ["identity_token"] })
      const [use] = await read().select().from(identityTokenUses).where(eq(identityTokenUses.jti, jti))
      expect(use?.expires_at.getTime()).toBeGreaterThanOrEqual((nowSeconds + 300) * 1000)
    })

    test("is not used up by a rejected claim", async () => {
      const { unit, session } = await issuedUnit(service, holder)
      const body = { recipient: alice, identity_token: await sign() }
      const late = await prepareClaim(service.context, session, unit.id, body)
      await claim(service, session, unit.id, { recipient: bob })
      await refusal(
        service.turn((turn) => createClaim(turn, session, { unit_id: unit.id, body, prepared: late })),
      )
      expect((await claimWith(body.identity_token)).customer_id).toBe("ann")
    })

    const wrong: Record<string, () => Promise<string>> = {
      "is not a JWT": async () => "abc",
      "is signed by another key": async () => sign({}, (await generateKeyPair("ES256")).privateKey),
      "is unsigned": async () => {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
        const claims = { iss: issuer, aud: audience, sub: "ann", jti: newId(), exp: nowSeconds + 300 }
        return `${part({ alg: "none" })}.${part(claims)}.`
      },
      "uses the public key as a shared secret": async () => {
        const secret = new TextEncoder().encode(await exportSPKI(keys.publicKey))
        return new SignJWT({ iss: issuer, aud: audience, sub: "ann", jti: newId(), exp: nowSeconds + 300 })
          .setProtectedHeader({ alg: "HS256" })
          .sign(secret)
      },
      "has another issuer": () => sign({ iss: "https://other.example" }),
      "has another audience": () => sign({ aud: "other" }),
      "has expired": () => sign({ exp: nowSeconds - 60 }),
      "expires more than ten minutes from now": () => sign({ exp: nowSeconds + 660 }),
      "never expires": () => sign({ exp: undefined }),
      "is not valid yet": () => sign({ nbf: nowSeconds + 60 }),
      "has no sub": () => sign({ sub: undefined }),
      "has an empty sub": () => sign({ sub: "" }),
      "has no jti": () => sign({ jti: undefined }),
      "has a jti that is not a string": () => sign({ jti: 7 }),
    }
    for (const [what, make] of Object.entries(wrong))
      test(`is rejected if it ${what}`, async () => {
        expect(await refusal(claimWith(await make()))).toEqual({ fields: ["identity_token"] })
      })

    test("is rejected if the organization has no sign-in configured", async () => {
      const { unit, session } = await issuedUnit(service)
      const body = { recipient: alice, identity_token: await sign() }
      expect(await codeOf(session, unit.id, body)).toEqual({ fields: ["identity_token"] })
    })
  })

  describe("an identity token of a sign-in with a JWKS URL", () => {
    const issuer = "https://sign-in.example"
    const exp = Date.parse("2026-03-31T23:59:00.000Z") / 1000 + 300

    test("is verified with the published keys; after a failed request the URL is not requested for ten seconds", async () => {
      const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true })
      const jwk = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "one", alg: "RS256" }
      let isUp = false
      let asked = 0
      const signIn = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch() {
          asked += 1
          return isUp ? Response.json({ keys: [jwk] }) : new Response("down", { status: 503 })
        },
      })
      try {
        const holder = await createCaller(service, {
          identity: { issuer, audience: "service", jwks_url: `http://127.0.0.1:${signIn.port}/jwks` },
        })
        const { unit, session } = await issuedUnit(service, holder)
        const identity_token = await new SignJWT({
          iss: issuer,
          aud: "service",
          sub: "ann",
          jti: newId(),
          exp,
        })
          .setProtectedHeader({ alg: "RS256", kid: "one" })
          .sign(privateKey)
        const body = { recipient: alice, identity_token }
        for (let attempt = 1; attempt <= 3; attempt++)
          await expect(claim(service, session, unit.id, body)).rejects.toThrow(
            `the keys at http://127.0.0.1:${signIn.port} cannot be fetched`,
          )
        expect(asked).toBe(1)
        isUp = true
        service.setTime(new Date(service.context.clock().getTime() + 10_000))
        expect((await claim(service, session, unit.id, body)).customer_id).toBe("ann")
      } finally {
        await signIn.stop(true)
      }
    })
  })
})
