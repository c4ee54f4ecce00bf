import type { ChainConfig } from "../../platform/chain-settings.ts"
import { saysTooMuch } from "./endpoint.ts"
import { createLearntSize } from "./learnt-size.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Both ends inclusive. */
export type BlockRange = { first: bigint; last: bigint }

/** How many blocks of logs a chain's providers return at once. They reveal it only by refusing more. */
export type LogRanges = {
  /** Returns how many blocks to ask for next, never more than `log_range_blocks`. */
  size(): bigint
  /**
   * Asks about a range of blocks. Returns null if the range was too large or took too long, with a smaller `size` then.
   * Throws `ChainUnreachable`, also if a single block is too much, or a smaller range took too long again.
   */
  ask<T>(range: BlockRange, question: (range: BlockRange) => Promise<T>): Promise<T | null>
}

/**
 * Messages of the client and of nodes, and HTTP statuses of proxies, that say that
 * reading so many blocks took too long.
 */
const tooSlow = /time(d )?-?out|took too long|http (504|524)/

/** Starts with `log_range_blocks`. */
export function createLogRanges({ log_range_blocks }: Pick<ChainConfig, "log_range_blocks">): LogRanges {
  const size = createLearntSize(log_range_blocks)
  /** Whether the last range took too long. */
  let wasSlow = false

  return {
    size: () => BigInt(size.now()),
    async ask(range, question) {
      const asked = Number(range.last - range.first + 1n)
      try {
        const answer = await reach(() => question(range))
        wasSlow = false
        size.wasAnswered(asked)
        return answer
      } catch (error) {
        if (asked === 1 || !(error instanceof ChainUnreachable)) throw error
        const isTooMuch = saysTooMuch(error.message)
        const isSlow = !isTooMuch && tooSlow.test(error.message)
        if (!isTooMuch && !isSlow) throw error
        // Of concurrent ranges only the first still has the present size: its refusal reduces that.
        const isFirstOfItsSize = asked === size.now()
        const isSlowAgain = isSlow && wasSlow && isFirstOfItsSize
        wasSlow = isSlow
        size.wasRefused(asked)
        if (isSlowAgain) throw error
        return null
      }
    },
  }
}
