import { beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Mutation, mutations, playMutation } from "../faults/mutations.ts"
import { outdated, undeclared } from "../harness/project-copy.ts"
import { seedOf } from "../harness/seed.ts"

// Rules of workers and chain are broken one at a time, each in a copy of the tree: a test that still passes there
// proves nothing. A fifth of them run each day. bun test/faults/mutations.ts runs all, including those that only a
// whole scenario detects, which takes a minute each.
const byTest = mutations
  .filter(({ noticed_by }) => "test" in noticed_by)
  .filter((_each, index) => index % 5 === seedOf("MUTATIONS_SEED") % 5)
const outcomes = new Map(byTest.map(({ name }) => [name, Promise.withResolvers<string[]>()]))

async function settle(mutation: Mutation): Promise<void> {
  const outcome = outcomes.get(mutation.name)
  // Its own test awaits it later; until then a failure would be blamed on the test that runs.
  outcome?.promise.catch(() => {})
  await playMutation(mutation).then(outcome?.resolve, outcome?.reject)
}

test("every line that a mutation breaks is still there", () => {
  expect(outdated(mutations)).toEqual([])
})

test("no mutation fails for want of a name", () => {
  expect(undeclared(mutations)).toEqual([])
})

test("every test that must detect a mutation is still there", () => {
  const gone = mutations.filter(({ noticed_by }) => {
    if (!("test" in noticed_by)) return false
    return !readFileSync(join(import.meta.dir, "../..", noticed_by.file), "utf8").includes(noticed_by.test)
  })
  expect(gone).toEqual([])
})

describe("a mutation is detected:", () => {
  beforeAll(() => {
    const waiting = [...byTest]
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await settle(next)
    }
    void work()
    void work()
  })

  test.each(byTest)(
    "$name",
    async ({ name }) => {
      expect(await outcomes.get(name)?.promise).not.toEqual([])
    },
    120_000,
  )
})
