import { expect, test } from "bun:test"
import { outdated } from "../harness/project-copy.ts"
import { mutations } from "./mutations.ts"

// Each costs a compilation: bun test/contracts/mutations.ts plays them.
test("the contracts still have what the mutations break", () => {
  expect(outdated(mutations)).toEqual([])
})
