import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Caller } from "../../src/platform/caller.ts"
import { createTap, createTestTap } from "../../src/resources/taps/service.ts"
import { createUnit, updateUnit } from "../../src/resources/units/service.ts"
import { engines } from "../harness/engines.ts"
import {
  activeCollection,
  createCaller,
  newUnit,
  openService,
  pairedTestChip,
  refusal,
  type TestService,
} from "../harness/services.ts"

describe.each(engines)("on $name, concurrently,", (engine) => {
  let service: TestService
  let caller: Caller
  beforeAll(async () => {
    service = await openService(engine)
    caller = await createCaller(service)
  })
  afterAll(() => service.close())

  test("requests for one external ID, by POST and PATCH, succeed once and are otherwise rejected", async () => {
    const collection = await activeCollection(service, caller)
    for (let round = 0; round < 20; round++) {
      const external_id = `wanted ${round}`
      const units = await Promise.all([1, 2, 3, 4].map(() => newUnit(service, caller, collection)))
      const answers = await Promise.all([
        ...units.map(({ id }) =>
          outcome(service.turn((turn) => updateUnit(turn, caller, id, { external_id }))),
        ),
        ...units.map(() =>
          outcome(
            service.turn((turn) => createUnit(turn, caller, { collection_id: collection.id, external_id })),
          ),
        ),
      ])
      expect(answers.sort()).toEqual(["done", ...Array(7).fill("unit.already_exists")])
    }
  })

  test("a hundred taps with one value of e are recorded once and otherwise rejected", async () => {
    const { chip_id } = await pairedTestChip(service, caller)
    const { e } = await service.turn((turn) => createTestTap(turn, service.secret, caller, { chip_id }))
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        outcome(service.turn((turn) => createTap(turn, service.secret, caller, { chip_id, e }))),
      ),
    )
    expect(answers.sort()).toEqual([...Array(99).fill("chip.already_scanned"), "done"])
  }, 20_000)

  test("a hundred test taps of one chip get consecutive counters", async () => {
    const { chip_id } = await pairedTestChip(service, caller)
    const emitted = await Promise.all(
      Array.from({ length: 100 }, () =>
        service.turn((turn) => createTestTap(turn, service.secret, caller, { chip_id })),
      ),
    )
    const counts = emitted.map(({ count }) => count).sort((one, other) => one - other)
    expect(counts).toEqual(counts.map((_count, index) => index + 1))
  }, 20_000)
})

/** Returns `done` or the code of the error. */
async function outcome(work: Promise<unknown>): Promise<string> {
  const [{ status }] = await Promise.allSettled([work])
  return status === "fulfilled" ? "done" : String(await refusal(work))
}
