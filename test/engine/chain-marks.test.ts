import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { chainMarks } from "../../src/db/chain-schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { markStretch, newestMark } from "../../workers/watches/chain-marks.ts"
import { engines } from "../harness/engines.ts"
import { seedOf } from "../harness/seed.ts"
import { openService, type TestService } from "../harness/services.ts"

const finalityDepth = 4
const seed = seedOf("FUZZ_SEED")

describe.each(engines)("the stored block hashes of a chain, on $name", (engine) => {
  let service: TestService
  beforeAll(async () => {
    service = await openService(engine)
  })
  afterAll(() => service.close())
  beforeEach(() => service.turn(({ tx }) => tx.delete(chainMarks)))

  test(`lead back little further than a fork is deep, and are few, seed ${seed}`, async () => {
    const stretches = fc.array(fc.integer({ min: 1, max: finalityDepth }), { minLength: 100, maxLength: 250 })
    await fc.assert(
      fc.asyncProperty(stretches, async (lengths) => {
        await service.turn(({ tx }) => tx.delete(chainMarks))
        const number = await readOn("one", 0, lengths)
        const marks = await service.context.db.read.select().from(chainMarks)
        expect(marks.length).toBeLessThanOrEqual(3 * Math.log2(number))
        for (let depth = 2 * finalityDepth; depth < number / 4; depth++) {
          const mark = await newestMark(service.context.db.read, chainOf("one"), BigInt(number - depth))
          expect(number - Number(mark?.number)).toBeLessThanOrEqual(4 * depth)
        }
      }),
      { numRuns: 3, seed },
    )
  }, 60_000)

  test("lead back to the newest block on the current fork", async () => {
    const parted = await readOn("one", 0, Array(10).fill(finalityDepth))
    await readOn("other", parted, Array(5).fill(finalityDepth))
    const back = await newestMark(service.context.db.read, chainOf("one", parted), 10_000n)
    expect(back?.number).toBe(BigInt(parted))
  })

  test("contain none of an abandoned fork, in case it comes back", async () => {
    const parted = await readOn("one", 0, Array(10).fill(finalityDepth))
    await readOn("one", parted, Array(5).fill(finalityDepth))
    await readOn("other", parted, [1])
    const back = await newestMark(service.context.db.read, chainOf("one"), 10_000n)
    expect(back?.number).toBe(BigInt(parted))
  })

  test("contain none of an abandoned fork between the ends of a range that was read on another", async () => {
    const parted = await readOn("one", 0, Array(10).fill(finalityDepth))
    await readOn("one", parted, Array(5).fill(finalityDepth))
    await readOn("other", parted, [6 * finalityDepth])
    const back = await newestMark(service.context.db.read, chainOf("one"), 10_000n)
    expect(back?.number).toBe(BigInt(parted))
  })

  /** Reads ranges of the given lengths on a fork; returns where the last one ends. */
  async function readOn(fork: string, from: number, lengths: readonly number[]): Promise<number> {
    return await service.turn(async (turn) => {
      let number = from
      for (const length of lengths) {
        const stretch = {
          from: BigInt(number),
          number: BigInt(number + length),
          hash: hashOn(fork, number + length),
        }
        await markStretch(turn, chainOf(fork), stretch)
        number += length
      }
      return number
    })
  }
})

/** A chain as seen on one fork, which split from the other above a block. */
function chainOf(fork: string, parted = Number.POSITIVE_INFINITY): ConnectedChain {
  const at = async (number: bigint) => ({ hash: hashOn(number <= parted ? "one" : fork, Number(number)) })
  return { chain_id: 31_337, config: { finality_depth: finalityDepth }, headers: { at } } as never
}

function hashOn(fork: string, number: number): string {
  return `${fork} ${number}`
}
