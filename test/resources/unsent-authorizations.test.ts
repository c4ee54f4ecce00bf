import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { claims, transfers } from "../../src/db/schema.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { getClaim } from "../../src/resources/claims/service.ts"
import { createTransfer, prepareTransfer } from "../../src/resources/transfers/service.ts"
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
  transfer,
  useOwnership,
} from "../harness/ownership.ts"
import { createCaller, refusal, settle } from "../harness/services.ts"

// An authorization that was never sent blocks nobody: a tap must not let a stranger delay what others do with the unit.

const byWallet = "client_broadcast"
const attempts = 12
const room = 5

describe.each(engines)("on $name a stranger with a tap", (engine) => {
  const service = useOwnership(engine)

  /** Another session of the same chip. */
  const anotherTap = ({ session }: Caller) =>
    sessionOf(service.caller, session?.chip_id ?? "", session?.unit_id ?? "")

  /** Creates as many as are accepted; returns their number and the code of the first error. */
  async function fill(make: () => Promise<unknown>): Promise<[number, unknown]> {
    for (let made = 0; made < attempts; made++) {
      const [outcome] = await Promise.allSettled([make()])
      if (outcome.status === "rejected") return [made, await refusal(Promise.reject(outcome.reason))]
    }
    return [attempts, null]
  }

  test("cannot delay a buyer's claim, whether relayed by the service or sent by the buyer's wallet", async () => {
    for (const execution of ["service_relay", byWallet] as const) {
      const { unit, session } = await issuedUnit(service)
      const stranger = anotherTap(session)
      const unsent = () => claim(service, stranger, unit.id, { recipient: bob, execution: byWallet })
      expect(await fill(unsent)).toEqual([room, "claim.in_progress"])
      const bought = await claim(service, session, unit.id, { recipient: alice, execution })
      expect(bought.status).toBe("claiming")
    }
  })

  test("cannot delay the brand's chip replacement", async () => {
    const { unit, session } = await issuedUnit(service)
    await fill(() => claim(service, anotherTap(session), unit.id, { recipient: bob, execution: byWallet }))
    expect((await replaceChip(service, unit.id, { is_test: true })).status).toBe("prepared")
  })

  test("cannot delay an owner's transfer", async () => {
    const { unit, session } = await claimedUnit(service)
    const stranger = anotherTap(session)
    const unsent = () => transfer(service, stranger, unit.id, { recipient: bob })
    expect(await fill(unsent)).toEqual([room, "transfer.in_progress"])
    expect((await transfer(service, session, unit.id, { recipient: bob })).status).toBe("prepared")
  })

  test("gets no more than five transfers, even by requesting them at once", async () => {
    const { unit, session } = await claimedUnit(service)
    const body = { recipient: bob }
    const prepared = await Promise.all(
      Array.from({ length: attempts }, () => prepareTransfer(service.context, session, unit.id, body)),
    )
    const outcomes = await Promise.allSettled(
      prepared.map((each) =>
        service.turn((turn) => createTransfer(turn, session, { unit_id: unit.id, body, prepared: each })),
      ),
    )
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(room)
    for (const each of outcomes)
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "transfer.in_progress" })
    const rows = await service.read().select().from(transfers).where(eq(transfers.unit_id, unit.id))
    expect(rows).toHaveLength(room)
  })

  test("cannot claim while a relayed claim is open", async () => {
    const { unit, session } = await issuedUnit(service)
    await claim(service, session, unit.id, { recipient: alice })
    for (const execution of ["service_relay", byWallet] as const)
      expect(await refusal(claim(service, anotherTap(session), unit.id, { recipient: bob, execution }))).toBe(
        "claim.in_progress",
      )
  })

  test("has a claim superseded if the contract accepted another one", async () => {
    const { unit, session } = await issuedUnit(service)
    const unsent = await claim(service, session, unit.id, { recipient: bob, execution: byWallet })
    const sent = await claim(service, session, unit.id, { recipient: alice, execution: byWallet })
    await settle(service, sent.id, { outcome: "used", transaction_hash: `0x${"aa".repeat(32)}` })
    await settle(service, unsent.id, { outcome: "superseded", transaction_hash: `0x${"aa".repeat(32)}` })
    const rows = await service.read().select().from(claims).where(eq(claims.unit_id, unit.id))
    expect(rows.map(({ status }) => status).sort()).toEqual(["claimed", "failed"])
    expect((await getClaim(service.read(), session, unit.id, unsent.id)).failure?.code).toBe(
      "claim.superseded",
    )
  })

  test("gets a different authorization each time, each valid for half an hour", async () => {
    const { unit, session } = await issuedUnit(service)
    const unsent = () => claim(service, session, unit.id, { recipient: bob, execution: byWallet })
    const made = [await unsent(), await unsent(), await unsent()]
    expect(new Set(made.map(({ authorization_digest }) => authorization_digest)).size).toBe(3)
    for (const { expires_at, created_at } of made)
      expect((expires_at?.getTime() ?? 0) - created_at.getTime()).toBeGreaterThanOrEqual(1_800_000)
  })

  test("gets one that is valid for half an hour by the chain's clock if that is ahead", async () => {
    const { unit, session } = await issuedUnit(service)
    service.says.is_ahead_by_milliseconds = 3_600_000
    const { expires_at } = await claim(service, session, unit.id, { recipient: bob, execution: byWallet })
    expect(expires_at).toEqual(new Date(service.context.clock().getTime() + 3_600_000 + 1_800_000))
  })

  test("can get another authorization when an earlier one expires", async () => {
    const { unit, session } = await issuedUnit(service)
    const unsent = () => claim(service, session, unit.id, { recipient: bob, execution: byWallet })
    const first = await unsent()
    await fill(unsent)
    await settle(service, first.id, { outcome: "expired" })
    expect((await unsent()).status).toBe("claiming")
  })
})

describe.each(engines)("on $name a chip replacement", (engine) => {
  const service = useOwnership(engine)

  test("counts toward the chip quota, even while it is open", async () => {
    const maker = await createCaller(service, { quota_chips: 3 })
    const [one, other] = [await issuedUnit(service, maker), await issuedUnit(service, maker)]
    const replace = ({ unit }: typeof one) => replaceChip(service, unit.id, { is_test: true }, maker)
    const open = await replace(one)
    expect(open.status).toBe("prepared")
    expect(await refusal(replace(other))).toBe("quota.exceeded")
    await settle(service, open.id, { transaction_hash: `0x${"bb".repeat(32)}` })
    expect(await refusal(replace(other))).toBe("quota.exceeded")
  })

  test("counts once, and not at all if it fails", async () => {
    const maker = await createCaller(service, { quota_chips: 4 })
    const [one, other] = [await issuedUnit(service, maker), await issuedUnit(service, maker)]
    const replace = ({ unit }: typeof one) => replaceChip(service, unit.id, { is_test: true }, maker)
    await settle(service, (await replace(one)).id, { transaction_hash: `0x${"bb".repeat(32)}` })
    for (let time = 0; time < 3; time++) {
      const { id } = await replace(other)
      const effect = await openEffect(service, id)
      const error = { code: "chip_replacement.reverted", message: "It reverted." } as const
      await service.turn((turn) => settleEffect(turn, String(effect?.id), { error }))
    }
    expect((await replace(other)).status).toBe("prepared")
    expect(await refusal(replace(one))).toBe("quota.exceeded")
  })
})
