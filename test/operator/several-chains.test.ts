import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import { effects, lanes, transactions } from "../../src/db/schema.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { newId } from "../../src/platform/ids.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { activeCollection, anotherUnit } from "../harness/engine.ts"
import { first, openTwoChains, second, type TwoChains } from "../harness/two-chains.ts"

// What operators learn about one chain does not depend on another.

setDefaultTimeout(60_000)

let both: TwoChains
beforeAll(async () => {
  both = await openTwoChains()
})
afterAll(() => both.close())

test("collections are compared with their chain while another does not respond, which still exits with 1", async () => {
  const { running, anvil } = both
  const there = [await activeCollection(running, second.id), await activeCollection(running, second.id)]
  const here = await activeCollection(running, first.id)
  await anotherUnit(running, here.id)
  anvil.signal("SIGSTOP")
  const compared = await operator("both", "chain", "compare")
  const unanswered = there.map(({ id }) =>
    expect.objectContaining({ collection_id: id, chain_id: second.id, because: expect.any(String) }),
  )
  expect(compared).toMatchObject({ code: 1, document: { compared: 1, not_connected: 0, collections: [] } })
  expect(compared.document.unanswered).toEqual(unanswered)
  anvil.signal("SIGCONT")
  expect(await operator("both", "chain", "compare")).toMatchObject({
    document: { compared: 3, unanswered: [] },
  })
})

test("work for a chain that is no longer in CHAINS is reported as waiting for that", async () => {
  const { running } = both
  const { context, caller, turn, workers } = running
  const { id: collection_id, lane_id } = await activeCollection(running, second.id)
  await workers.stop()
  const { id } = await turn((t) => createUnit(t, caller, { collection_id }))
  const secret = context.config.service_secret
  await turn((t) => pairChip(t, secret, caller, { unit_id: id, is_test: true }))

  const { document: story } = await operator("first", "explain", id)
  expect(story.waits_for).toStartWith(
    "chain 31338 is not in CHAINS: its work waits until it is there again; ",
  )
  const { document: elsewhere } = await operator("both", "explain", id)
  expect(elsewhere.waits_for).toStartWith(
    `no worker holds lane ${lane_id}: is one running, with its chain in CHAINS`,
  )
  const absent = "but chain 31338 is not in CHAINS: its work waits until it is there again"
  const { document: due } = await operator("first", "retry", id)
  expect(due.done).toBe(`1 open effect is due now, ${absent}`)
  await turn(({ tx }) => tx.update(lanes).set({ status: "halted" }).where(eq(lanes.id, lane_id)))
  const { document: reopened } = await operator("first", "retry", lane_id)
  expect(reopened.done).toBe(`lane ${lane_id} is open again, ${absent}`)
  expect((await operator("both", "retry", id)).document.done).toBe("1 open effect is due now")

  const named = await operator("first", "chain", "compare", "--collection", collection_id)
  const { code, message } = named.document.error ?? {}
  expect([named.code, code]).toEqual([1, "chain.not_configured"])
  expect(message).toBe(`chain 31338 of collection ${collection_id} is not in CHAINS, so it was not compared`)

  const { document } = await operator("first", "stuck")
  expect(document.stuck).toContainEqual(
    expect.objectContaining({ id, reason: expect.stringContaining("with its chain in CHAINS and its key") }),
  )

  const transaction_id = newId()
  await turn(async ({ tx, at }) => {
    await tx.insert(transactions).values({
      ...{
        id: transaction_id,
        lane_id,
        chain_id: second.id,
        kind: "issueUnit",
        nonce: 99,
        to: "0x",
        call: "0x",
      },
      ...{
        gas: 1,
        max_fee_per_gas: "1",
        max_priority_fee_per_gas: "1",
        status: "sent",
        created_at: at,
        updated_at: at,
      },
    })
    await tx.update(effects).set({ transaction_id }).where(eq(effects.actor_id, id))
  })
  const { document: given } = await operator("first", "cancel", id)
  expect(given.done).toStartWith(`lane ${lane_id} gives up nonce 99 once its chain is in CHAINS again: `)
})

async function operator(chains: "both" | "first", ...words: string[]) {
  const printed: string[] = []
  const terminal = { print: (text: string) => void printed.push(text), complain: () => {} }
  const code = await runOperator(() => both.environment(chains), terminal, [...words, "--json"])
  return { code, document: JSON.parse(printed.join("")) }
}
