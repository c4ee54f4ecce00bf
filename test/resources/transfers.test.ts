import { describe, expect, test } from "bun:test"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import type { Caller } from "../../src/platform/caller.ts"
import type { Chain } from "../../src/platform/chain.ts"
import { LastingRefusal } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import { Unavailable } from "../../src/platform/unavailable.ts"
import { presentTransfer } from "../../src/resources/transfers/present.ts"
import { getTransfer, prepareTransfer } from "../../src/resources/transfers/service.ts"
import { engines } from "../harness/engines.ts"
import {
  alice,
  bob,
  claim,
  claimedUnit,
  issuedUnit,
  openEffect,
  sessionOf,
  transfer,
  unpairedUnit,
  useOwnership,
} from "../harness/ownership.ts"
import { createCaller, pairedTestChip, refusal, setOrganization, settle } from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  const service = useOwnership(engine)
  const { read, says } = service

  const codeOf = (session: Caller, unitId: string, recipient: string = bob) =>
    refusal(prepareTransfer(service.context, session, unitId, { recipient }))

  describe("a transfer", () => {
    test("is prepared for the owner according to the chain, for 30 minutes", async () => {
      const { unit, session } = await claimedUnit(service)
      const row = await transfer(service, session, unit.id, { recipient: bob.toLowerCase() })
      expect(presentTransfer(row)).toEqual({
        id: row.id,
        unit_id: unit.id,
        status: "prepared",
        sender: alice,
        recipient: bob,
        customer_id: null,
        transaction: {
          chain_id: 31337,
          from: alice,
          to: unit.collection?.address ?? "",
          data: "0x12",
          value: "0x0",
        },
        transaction_hash: null,
        failure: null,
        expires_at: "2026-04-01T00:29:00.000Z",
        created_at: "2026-03-31T23:59:00.000Z",
        updated_at: "2026-03-31T23:59:00.000Z",
      })
    })

    test("is not issued if the contract does not trust the authorizer's key", async () => {
      const { unit, session } = await claimedUnit(service)
      const text = "AUTHORIZER_KEY is the key of somebody else"
      says.authorizer_end = { at: new Date(0), text }
      const prepared = prepareTransfer(service.context, session, unit.id, { recipient: bob })
      await expect(prepared).rejects.toEqual(new Unavailable(text))
    })

    test("is watched on the chain by contract, serial, digest and nonce", async () => {
      const { unit, session } = await claimedUnit(service)
      const row = await transfer(service, session, unit.id, { recipient: bob })
      expect(await openEffect(service, row.id)).toMatchObject({
        src: "watchAuthorization",
        queue: "chain:31337",
        input: {
          chain_id: 31337,
          contract_address: unit.collection?.address,
          serial: 1,
          authorization_digest: row.authorization_digest,
          authorization_nonce: 1,
          deadline_at: "2026-04-01T00:29:00.000Z",
        },
      })
    })

    test("is confirmed when its authorization is used", async () => {
      const { unit, session } = await claimedUnit(service)
      const { id } = await transfer(service, session, unit.id, { recipient: bob })
      await settle(service, id, { outcome: "used", transaction_hash: "0x05" })
      expect(await getTransfer(read(), session, unit.id, id)).toMatchObject({
        status: "confirmed",
        transaction_hash: "0x05",
      })
    })

    test("fails with transfer.superseded if ownership changed another way", async () => {
      const { unit, session } = await claimedUnit(service)
      const { id } = await transfer(service, session, unit.id, { recipient: bob })
      await settle(service, id, { outcome: "superseded", transaction_hash: "0x06" })
      expect(await getTransfer(read(), session, unit.id, id)).toMatchObject({
        status: "failed",
        failure: { code: "transfer.superseded" },
      })
    })

    test("that has expired allows another one", async () => {
      const { unit, session } = await claimedUnit(service)
      const { id } = await transfer(service, session, unit.id, { recipient: bob })
      await settle(service, id, { outcome: "expired" })
      expect((await getTransfer(read(), session, unit.id, id)).status).toBe("expired")
      expect((await transfer(service, session, unit.id, { recipient: bob })).status).toBe("prepared")
    })

    test("stores the customer of an identity token that is verified with a JWK", async () => {
      const { privateKey, publicKey } = await generateKeyPair("EdDSA", { extractable: true })
      const holder = await createCaller(service)
      const public_key = JSON.stringify(await exportJWK(publicKey))
      await setOrganization(service, holder, { identity: { issuer: "i", audience: "a", public_key } })
      const { unit, session } = await claimedUnit(service, holder)
      const exp = service.context.clock().getTime() / 1000 + 60
      const identity_token = await new SignJWT({ iss: "i", aud: "a", sub: "ann", jti: newId(), exp })
        .setProtectedHeader({ alg: "EdDSA" })
        .sign(privateKey)
      const row = await transfer(service, session, unit.id, { recipient: bob, identity_token })
      expect(row.customer_id).toBe("ann")
    })
  })

  describe("a transfer is rejected", () => {
    test("to the current owner", async () => {
      const { unit, session } = await claimedUnit(service)
      expect(await codeOf(session, unit.id, alice)).toBe("transfer.already_to_recipient")
    })

    test("to the zero address, to the collection's contract and to a malformed address", async () => {
      const { unit, session } = await claimedUnit(service)
      for (const recipient of [`0x${"0".repeat(40)}`, unit.collection?.address ?? "", "bob.eth"])
        expect(await codeOf(session, unit.id, recipient)).toEqual({ fields: ["recipient"] })
    })

    test("before the unit is claimed", async () => {
      const { unit, session } = await issuedUnit(service)
      expect(await codeOf(session, unit.id)).toBe("transfer.owner_unknown")
    })

    test("temporarily if the unit is claimed but the chain shows no owner, permanently if it was never claimed", async () => {
      const whyNot = async (session: Caller, unitId: string) =>
        await prepareTransfer(service.context, session, unitId, { recipient: bob }).catch((error) => error)
      const claimed = await claimedUnit(service)
      says.owner = null
      const refused = await whyNot(claimed.session, claimed.unit.id)
      expect(refused).toMatchObject({ code: "transfer.owner_unknown" })
      expect(refused).not.toBeInstanceOf(LastingRefusal)
      const issued = await issuedUnit(service)
      expect(await whyNot(issued.session, issued.unit.id)).toBeInstanceOf(LastingRefusal)
    })

    test("if the chain does not respond", async () => {
      const { unit, session } = await claimedUnit(service)
      says.isReachable = false
      expect(await codeOf(session, unit.id)).toBe("transfer.owner_unknown")
    })

    test("if the chain does not respond within three seconds, with a message about it", async () => {
      const { unit, session } = await claimedUnit(service)
      const chain = service.context.chains.get(31_337) as Chain
      const silent: Chain = { ...chain, ownershipOf: () => new Promise(() => {}) }
      const context = { ...service.context, chains: new Map([[31_337, silent]]) }
      const asked = prepareTransfer(context, session, unit.id, { recipient: bob })
      await expect(asked).rejects.toMatchObject({
        code: "transfer.owner_unknown",
        message: "The chain did not answer in time: try again.",
      })
    })

    test("before a chip is paired, and during issuance", async () => {
      const unpaired = await unpairedUnit(service)
      expect(await codeOf(service.caller, unpaired.id)).toBe("unit.not_minted")
      const { chip_id, unit } = await pairedTestChip(service, service.caller)
      const unitId = unit?.id ?? ""
      expect(await codeOf(sessionOf(service.caller, chip_id, unitId), unitId)).toBe("unit.issuance_pending")
    })

    test("while the service is relaying a claim of the unit", async () => {
      const other = await issuedUnit(service)
      says.owner = null
      await claim(service, other.session, other.unit.id, { recipient: alice })
      expect(await codeOf(other.session, other.unit.id)).toBe("transfer.owner_unknown")
    })

    test("with a session of another chip, and for another organization's unit", async () => {
      const { unit, session } = await claimedUnit(service)
      const other = await issuedUnit(service)
      const stranger = await createCaller(service)
      expect(await codeOf(other.session, unit.id)).toBe("session_token.wrong_chip")
      expect(await codeOf({ ...session, organization_id: stranger.organization_id }, unit.id)).toBe(
        "unit.not_found",
      )
    })
  })

  test("a transfer can be read with the organization's API key and the unit's session only", async () => {
    const { unit, session } = await claimedUnit(service)
    const { id } = await transfer(service, session, unit.id, { recipient: bob })
    says.owner = null
    const other = await issuedUnit(service)
    const stranger = await createCaller(service)
    expect((await getTransfer(read(), service.caller, unit.id, id)).id).toBe(id)
    expect((await getTransfer(read(), session, unit.id, id)).id).toBe(id)
    expect(await refusal(getTransfer(read(), other.session, unit.id, id))).toBe("session_token.wrong_chip")
    expect(await refusal(getTransfer(read(), stranger, unit.id, id))).toBe("unit.not_found")
    for (const unknown of [newId(), "no-uuid"])
      expect(await refusal(getTransfer(read(), service.caller, unit.id, unknown))).toBe("transfer.not_found")
  })
})
