import type { ChainConfig } from "../../platform/chain-settings.ts"
import { saysTooMuch } from "./endpoint.ts"
import { least, most } from "./extremes.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Both ends are part of it. */
export type BlockRange = { first: bigint; last: bigint }

/** How many blocks of logs the providers of one chain answer at once: they say so only by refusing more. */
export type LogRanges = {
  /** For how many blocks to ask next, never more than `log_range_blocks`. */
  size(): bigint
  /**
   * What is asked of a range of blocks; null where that is more than providers answer, as fewer blocks than the setting
   * says, fewer logs than there are, or later than anybody waits: `size` is less then. Throws `ChainUnreachable`, also where
   * one block is too much, or fewer blocks take too long, too.
   */
  ask<T>(range: BlockRange, question: (range: BlockRange) => Promise<T>): Promise<T | null>
}

/** Each answer to as many blocks as are asked for lets that grow by so much of it, one block at least. */
export const growth = 8n

/** The client's words, those of nodes, and the statuses of who stands before them: so many blocks may take too long to read. */
const tooSlow = /time(d )?-?out|took too long|http (504|524)/

/** Begins with `log_range_blocks`; what is learnt of providers is kept while the process lives. */
export function createLogRanges({ log_range_blocks }: Pick<ChainConfig, "log_range_blocks">): LogRanges {
  const widest = BigInt(log_range_blocks)
  let size = widest
  /** Nothing was answered since something took too long. */
  let wasSlow = false

  return {
    size: () => size,
    async ask(range, question) {
      const asked = range.last - range.first + 1n
      try {
        const answer = await reach(() => question(range))
        wasSlow = false
        // Of those that were asked at the same time, one lets it grow, and none that a refusal has overtaken.
        if (asked === size) size = least(size + most(size / growth, 1n), widest)
        return answer
      } catch (error) {
        if (asked === 1n || !(error instanceof ChainUnreachable)) throw error
        const isTooMuch = saysTooMuch(error.message)
        const isSlow = !isTooMuch && tooSlow.test(error.message)
        if (!isTooMuch && !isSlow) throw error
        // Of those that were asked at the same time, the first has found that out.
        const isSilent = isSlow && wasSlow && asked === size
        wasSlow = isSlow
        size = least(size, asked / 2n)
        if (isSilent) throw error
        return null
      }
    },
  }
}
