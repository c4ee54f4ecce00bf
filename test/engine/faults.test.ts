import { beforeAll, describe, expect, test } from "bun:test"
import { playAll } from "../faults/chaos.ts"
import { crashesInGate, faultsInGate, type Outcome, type Scenario } from "../faults/scenarios.ts"

// A few scenarios at once, each with its own chain, database and worker processes. `bun run test:chaos` runs all.
const scenarios = [...crashesInGate, ...faultsInGate]
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
  test.each(crashesInGate)("$name", expectFaultless, 120_000)
})

describe("the chain engine does everything exactly once", () => {
  test.each(faultsInGate)("with $name", expectFaultless, 120_000)
})
