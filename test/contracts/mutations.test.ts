import { expect, test } from "bun:test"
import { outdated } from "../harness/project-copy.ts"
import { mutations } from "./mutations.ts"

// Each costs a compilation, so they are run separately: bun test/contracts/mutations.ts.
test("the contracts still have what the mutations break", () => {
  expect(outdated(mutations)).toEqual([])
})
