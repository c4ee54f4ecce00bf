import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Address, Hex } from "viem"
import type { Log } from "../../src/platform/log.ts"
import type { FinishedSpan } from "../../src/platform/tracing.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { accountAt } from "../faults/stage.ts"
import { issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"

// What workers log and trace about their steps while they issue a unit that a wallet then claims.

const spans: FinishedSpan[] = []
const lines: Record<string, unknown>[] = []
let running: RunningWorkers

beforeAll(async () => {
  const note = (fields: Record<string, unknown>, message: string) => lines.push({ ...fields, message })
  const log: Log = { debug() {}, info: note, warn: note, error: note }
  running = await openEngine({ log, tracing: { record: (span) => spans.push(span), close: async () => {} } })
  const { unit_id } = await issuedUnit(running, "req_issue")
  await claimByWallet(unit_id, "req_claim")
  await running.workers.stop()
}, 60_000)
afterAll(() => running.close())

describe.each(["deployCollection", "issueUnit"])("a transaction of %s", (kind) => {
  const stepsOf = () => spans.filter(({ name }) => name.startsWith(`${kind}.`))

  test("has a span for each of its steps, in order", () => {
    // If blocks overtake the lane, the same bytes are sent once more.
    const steps = new Set(stepsOf().map(({ name }) => name))
    expect([...steps]).toEqual([`${kind}.allocate`, `${kind}.send`, `${kind}.confirm`])
  })

  test("is identified in all of them alike, with their outcome", () => {
    const { lane_id, transaction_id, nonce } = attributesOf(`${kind}.allocate`)
    expect(transaction_id).toBeString()
    const same = { lane_id, transaction_id, kind, nonce }
    for (const [step, outcome] of Object.entries({
      allocate: "allocated",
      send: "known",
      confirm: "confirmed",
    }))
      expect(attributesOf(`${kind}.${step}`)).toMatchObject({ ...same, outcome })
  })

  test("has the ID of the originating request where its work is taken and given back", () => {
    for (const step of ["allocate", "confirm"])
      expect(attributesOf(`${kind}.${step}`).request_ids).toEqual(["req_issue"])
  })

  test("is logged when it is allocated and confirmed, with the request ID, and not when it is sent", () => {
    const { lane_id, transaction_id, nonce } = attributesOf(`${kind}.allocate`)
    const same = { lane_id, transaction_id, kind, nonce, request_ids: ["req_issue"] }
    expect(lines.filter((line) => line.transaction_id === transaction_id)).toEqual([
      { ...same, message: "the transaction is allocated" },
      { ...same, message: "the transaction is confirmed" },
    ])
  })
})

describe("an authorization that a wallet has used", () => {
  test("has a span when the chain has settled it, with the request ID of its creation", () => {
    expect(spans.filter(({ name }) => name === "watchAuthorization.settle")).toHaveLength(1)
    expect(attributesOf("watchAuthorization.settle")).toEqual({
      effect_id: expect.any(String),
      outcome: "used",
      request_ids: ["req_claim"],
    })
  })

  test("is logged with the same fields", () => {
    expect(lines).toContainEqual({
      ...attributesOf("watchAuthorization.settle"),
      message: "the chain has settled the authorization",
    })
  })
})

test("the spans are internal, and none has failed", () => {
  for (const span of spans) expect(span).toMatchObject({ kind: "internal", is_failed: false })
})

function attributesOf(name: string): FinishedSpan["attributes"] {
  return spans.find((span) => span.name === name)?.attributes ?? {}
}

async function claimByWallet(unitId: string, requestId: string): Promise<void> {
  const { stage, context, caller, turn } = running
  const account = accountAt(7)
  const body = { recipient: account.address, execution: "client_broadcast" as const }
  const prepared = await prepareClaim(context, caller, unitId, body)
  const { id, transaction } = await turn(
    (t) => createClaim(t, caller, { unit_id: unitId, body, prepared }),
    requestId,
  )
  if (!transaction) throw new Error("the claim has no transaction for the wallet")
  const call = { to: transaction.to as Address, data: transaction.data as Hex, gas: 300_000n }
  await stage.anvil.client.sendTransaction({ account, ...call })
  await until(async () => (await getClaim(context.db.read, caller, unitId, id)).status === "claimed")
}
