import { beforeAll, describe, expect, test } from "bun:test"
import { playAll } from "./faults/chaos.ts"
import { crashes, type Outcome, otherFaults, type Scenario } from "./faults/scenarios.ts"

// A few runs at once, each with a chain, a database and worker processes of its own.
const scenarios = [...crashes, ...otherFaults]
const outcomes = new Map(scenarios.map(({ name }) => [name, Promise.withResolvers<Outcome>()]))

beforeAll(() => {
  void playAll(scenarios, 3, (outcome) => outcomes.get(outcome.name)?.resolve(outcome))
})

async function expectFaultless({ name }: Scenario): Promise<void> {
  const outcome = await outcomes.get(name)?.promise
  expect(outcome?.faults).toEqual([])
  expect(outcome).toMatchObject({ duplicates: 0, missing: 0 })
}

describe("a worker that dies loses nothing and repeats nothing", () => {
  test.each(crashes)("$name", expectFaultless, 120_000)
})

describe("the chain engine gets everything done once", () => {
  test.each(otherFaults)("with $name", expectFaultless, 120_000)
})
