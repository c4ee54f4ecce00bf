import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { activeCollection, anotherUnit } from "../harness/engine.ts"
import { first, openTwoChains, second, type TwoChains } from "../harness/two-chains.ts"

// What operators are told of one chain does not hang on another one.

setDefaultTimeout(60_000)

let both: TwoChains
beforeAll(async () => {
  both = await openTwoChains()
})
afterAll(() => both.close())

test("collections are compared with their chain while another one is silent, which ends with 1 all the same", async () => {
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

async function operator(chains: "both" | "first", ...words: string[]) {
  const printed: string[] = []
  const terminal = { print: (text: string) => void printed.push(text), complain: () => {} }
  const code = await runOperator(() => both.environment(chains), terminal, [...words, "--json"])
  return { code, document: JSON.parse(printed.join("")) }
}
