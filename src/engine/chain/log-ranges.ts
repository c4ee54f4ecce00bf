import type { ChainConfig } from "../../platform/chain-settings.ts"
import { saysTooMuch } from "./endpoint.ts"
import { least, most } from "./extremes.ts"
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

/** Each answer to as many blocks as are asked for lets that grow by so much of it, one block at least. */
export const growth = 8n

/** Words of the client and of nodes, and statuses of proxies, that say that reading so many blocks took too long. */
const tooSlow = /time(d )?-?out|took too long|http (504|524)/

/** Begins with `log_range_blocks`; what it learns is kept while the process lives. */
export function createLogRanges({ log_range_blocks }: Pick<ChainConfig, "log_range_blocks">): LogRanges {
  const widest = BigInt(log_range_blocks)
  let size = widest
  /** Whether nothing was answered since something took too long. */
  let wasSlow = false

  return {
    size: () => size,
    async ask(range, question) {
      const asked = range.last - range.first + 1n
      try {
        const answer = await reach(() => question(range))
        wasSlow = false
        // Of ranges asked at the same time, one lets it grow, and none after a refusal.
        if (asked === size) size = least(size + most(size / growth, 1n), widest)
        return answer
      } catch (error) {
        if (asked === 1n || !(error instanceof ChainUnreachable)) throw error
        const isTooMuch = saysTooMuch(error.message)
        const isSlow = !isTooMuch && tooSlow.test(error.message)
        if (!isTooMuch && !isSlow) throw error
        // Of ranges asked at the same time, the first has found that out.
        const isSilent = isSlow && wasSlow && asked === size
        wasSlow = isSlow
        size = least(size, asked / 2n)
        if (isSilent) throw error
        return null
      }
    },
  }
}
