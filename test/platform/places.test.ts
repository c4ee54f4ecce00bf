import { expect, test } from "bun:test"
import fc from "fast-check"
import { createPlaces } from "../../src/platform/places.ts"

/** Takes slots for one holder until there are none; returns functions that release each. */
function takeAll(places: ReturnType<typeof createPlaces>, ...holders: string[]): (() => void)[] {
  const left: (() => void)[] = []
  for (let leave = places.take(holders); leave; leave = places.take(holders)) left.push(leave)
  return left
}

test("a new holder finds slots, however many the previous one wants", () => {
  const places = createPlaces(12)
  expect(takeAll(places, "greedy")).toHaveLength(6)
  expect(takeAll(places, "next")).toHaveLength(3)
})

test("holders that want as many as possible end up with equally many", () => {
  const places = createPlaces(12)
  const taken = ["greedy", "next", "third"].map((holder) => ({ holder, leaves: takeAll(places, holder) }))
  for (let turn = 0; turn < 12; turn++)
    for (const { holder, leaves } of taken) {
      leaves.shift()?.()
      leaves.push(...takeAll(places, holder))
    }
  expect(taken.map(({ leaves }) => leaves.length)).toEqual([3, 3, 3])
})

test("one part of a group leaves slots to the other parts, and all of them leave some to another group", () => {
  const places = createPlaces(12)
  expect(takeAll(places, "brand", "its one")).toHaveLength(4)
  expect(takeAll(places, "brand", "its other")).toHaveLength(2)
  expect(takeAll(places, "next brand", "the one of that")).toHaveLength(2)
})

test("however slots are taken and released, no more are taken than exist, and all come back", () => {
  const step = fc.record({ holder: fc.constantFrom("a", "b", "c", "d"), isLeft: fc.nat() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 200 }), (all, steps) => {
      const places = createPlaces(all)
      const taken: (() => void)[] = []
      for (const { holder, isLeft } of steps) {
        const leave = places.take([holder])
        if (leave) taken.push(leave)
        else taken.splice(isLeft % Math.max(taken.length, 1), 1)[0]?.()
        expect(taken.length).toBeLessThanOrEqual(all)
      }
      for (const leave of taken) leave()
      expect(takeAll(places, "anybody")).toHaveLength(Math.ceil(all / 2))
    }),
  )
})

test("a released slot goes to the holder that has waited longest", async () => {
  const places = createPlaces(2)
  const [leave] = takeAll(places, "holder")
  const entered: string[] = []
  const waiting = ["first", "second"].map((name) =>
    places.enter(["holder"], 60_000, Error).then((leaveAgain) => {
      entered.push(name)
      leaveAgain()
    }),
  )
  leave?.()
  await Promise.all(waiting)
  expect(entered).toEqual(["first", "second"])
})

test("a holder that waits in vain is told in time, and takes no slot afterwards", async () => {
  const places = createPlaces(2)
  const [leave] = takeAll(places, "holder")
  await expect(places.enter(["holder"], 1, () => new Error("too late"))).rejects.toThrow("too late")
  leave?.()
  expect(takeAll(places, "holder")).toHaveLength(1)
})
