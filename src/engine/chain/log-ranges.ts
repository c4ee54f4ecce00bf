import type { ChainConfig } from "../../platform/chain-settings.ts"
import { saysTooMuch } from "./endpoint.ts"
import { createLearntSize } from "./learnt-size.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Both ends are part of it. */
export type BlockRange = { first: bigint; last: bigint }

/** How many blocks of logs a chain's providers answer at once; they say so only by refusing more. */
export type LogRanges = {
  /** How many blocks to ask for next, never more than `log_range_blocks`. */
  size(): bigint
  /**
   * Asks about a range of blocks. Null where providers do not answer that much or that late, and `size` is smaller
   * then. Throws `ChainUnreachable`, also where a single block is too much, or a smaller range is too slow, too.
   */
  ask<T>(range: BlockRange, question: (range: BlockRange) => Promise<T>): Promise<T | null>
}

/** Words of the client and of nodes, and statuses of proxies, that say that reading so many blocks took too long. */
const tooSlow = /time(d )?-?out|took too long|http (504|524)/

/** Begins with `log_range_blocks`. */
export function createLogRanges({ log_range_blocks }: Pick<ChainConfig, "log_range_blocks">): LogRanges {
  const size = createLearntSize(log_range_blocks)
  /** Whether nothing was answered since something took too long. */
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
        // Of ranges asked at the same time, the first has found that out.
        const isSilent = isSlow && wasSlow && asked === size.now()
        wasSlow = isSlow
        size.wasRefused(asked)
        if (isSilent) throw error
        return null
      }
    },
  }
}
