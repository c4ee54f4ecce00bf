import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { byUrgency } from "../../src/engine/lanes/give-results.ts"
import type { Seen } from "../../src/engine/lanes/look.ts"
import { addShare, maxInFlight, nextTurn } from "../../src/engine/lanes/turns.ts"

type Waiting = Parameters<typeof nextTurn>[0][number]
const kinds = ["relayClaim", "replaceChip", "issueUnit", "deployCollection"] as const

function waiting(organization_id: string, src: (typeof kinds)[number], id: string): Waiting {
  return { organization_id, id, src } as Waiting
}

/** Fills a lane's window from waiting work, one transaction per effect. */
function fill(work: Waiting[], held: Record<string, number> = {}): Waiting[] {
  const shares = new Map(
    Object.entries(held).map(([organization, count]) => [`batch ${organization}`, count]),
  )
  const room = maxInFlight - [...shares.values()].reduce((sum, each) => sum + each, 0)
  const left = [...work]
  const taken: Waiting[] = []
  while (taken.length < room) {
    const turn = nextTurn(left, shares)
    if (!turn) break
    left.splice(left.indexOf(turn), 1)
    addShare(shares, turn)
    taken.push(turn)
  }
  return taken
}

const many = (organization: string, src: (typeof kinds)[number], count: number, from = 0) =>
  Array.from({ length: count }, (_, index) =>
    waiting(organization, src, String(from + index).padStart(6, "0")),
  )

const isAtCounter = ({ src }: Waiting) => src === "relayClaim" || src === "replaceChip"

describe("the order of work in a lane", () => {
  test("alternates between organizations, oldest first within each", () => {
    const work = [...many("a", "issueUnit", 400), ...many("b", "issueUnit", 2, 1_000)]
    expect(fill(work).map(({ organization_id, id }) => `${organization_id}${id}`)).toEqual([
      ...["a000000", "b001000", "a000001", "b001001", "a000002", "a000003"],
      // No other work is waiting any more.
      ...[4, 5, 6, 7, 8, 9, 10, 11].map((number) => `a0000${String(number).padStart(2, "0")}`),
    ])
  })

  test("leaves room for new organizations, however much one organization requests", () => {
    expect(fill(many("a", "deployCollection", 400))).toHaveLength(maxInFlight - maxInFlight / 4)
    const work = [...many("a", "deployCollection", 400), ...many("b", "issueUnit", 1, 1_000)]
    expect(fill(work, { a: 12 }).map(({ organization_id }) => organization_id)).toEqual(["b"])
  })

  test("puts a claim first, however many batches of the same organization are in flight", () => {
    const work = [...many("a", "issueUnit", 400), waiting("a", "relayClaim", "9")]
    expect(fill(work, { a: 12 })).toEqual([work.at(-1) as Waiting])
    const beside = [...work, ...many("b", "issueUnit", 2, 1_000)]
    expect(fill(beside, { a: 4, b: 4 })).toEqual([work.at(-1) as Waiting])
  })

  test("puts claims before replacements before issuances before deployments", () => {
    const work = kinds.toReversed().map((src, index) => waiting("a", src, String(index)))
    expect(fill(work).map(({ src }) => src)).toEqual([...kinds])
  })

  test("gives no organization more than a quarter of the window while another waits", () => {
    const anyWork = fc.array(
      fc.record({
        organization: fc.constantFrom("a", "b", "c", "d", "e", "f"),
        kind: fc.constantFrom(...kinds),
      }),
      { maxLength: 80 },
    )
    fc.assert(
      fc.property(anyWork, (asked) => {
        const work = asked.map(({ organization, kind }, index) =>
          waiting(organization, kind, String(index).padStart(6, "0")),
        )
        const taken = fill(work)
        for (const [index, turn] of taken.entries()) {
          const { organization_id } = turn
          const before = taken.slice(0, index)
          const others = work.filter(
            (each) => each.organization_id !== organization_id && !before.includes(each),
          )
          const held = before.filter(
            (each) => each.organization_id === organization_id && isAtCounter(each) === isAtCounter(turn),
          ).length
          if (others.length > 0) expect(held).toBeLessThan(maxInFlight / 4)
        }
      }),
    )
  })
})

test("results go to interactive work first, and last to work that nobody is waiting for", () => {
  const seen = ["refreshMetadata", ...kinds.toReversed()].map((kind) => ({
    transaction: { kind } as Seen["transaction"],
    mined: null,
  }))
  const [soon, later] = byUrgency(seen)
  const kindsOf = (each: Seen[]) => each.map(({ transaction }) => transaction.kind)
  expect(kindsOf(soon)).toEqual(["relayClaim", "replaceChip", "issueUnit"])
  expect(kindsOf(later)).toEqual(["deployCollection", "refreshMetadata"])
})
