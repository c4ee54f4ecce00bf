import type { Asking, Stage } from "./asking.ts"
import { unlessForgotten } from "./errands.ts"
import type { Fault } from "./faults.ts"
import { handOn, walletsOfHolder } from "./holders.ts"
import { crowdIn, mostBursts } from "./neighbours.ts"
import { askForRefresh } from "./refreshes.ts"
import { mostReplaced, replaceOften } from "./replacements.ts"
import { comeBetween } from "./rivals.ts"
import { type Met, somebody } from "./somebody.ts"
import { streamOf } from "./streams.ts"
import { rivalCount, walletCount } from "./wallets.ts"

/** A person with a request in addition to the story. */
type Coming = Extract<Fault, { kind: "refresh" | "rival" | "replace" | "hand_on" | "burst" }>

export type PassersBy = {
  come(fault: Coming): void
  /** Resolves when everyone is done or has given up. */
  gone(): Promise<void>
}

/** `neighbour`: an API key of another brand, once there is one. A rejected request is a breach. */
export function createPassersBy(stage: Stage, asking: Asking, neighbour: () => string | null): PassersBy {
  const comings: Promise<void>[] = []
  const count = { wallets: 0, replaced: 0, bursts: 0 }

  /** The first of this many unused wallets; null if there are fewer. */
  function takeWallets(wanted: number): number | null {
    if (count.wallets + wanted > rivalCount) return null
    count.wallets += wanted
    return walletCount + count.wallets - wanted
  }

  function meet(salt: number, name: string): Promise<Met | null> {
    return somebody(stage, streamOf(BigInt(salt), name), asking)
  }

  async function act({ kind, salt }: Coming): Promise<void> {
    switch (kind) {
      case "refresh":
        return await askForRefresh(stage, salt, asking)
      case "rival": {
        const wallet = takeWallets(1)
        if (wallet === null) return
        const met = await meet(salt, "rival")
        if (met) await comeBetween(met, wallet)
        return
      }
      case "hand_on": {
        const wallet = takeWallets(walletsOfHolder)
        if (wallet === null) return
        const met = await meet(salt, "holders")
        if (met) await handOn(met, wallet)
        return
      }
      case "replace": {
        if (count.replaced === mostReplaced) return
        count.replaced += 1
        const met = await meet(salt, "replacements")
        if (met) await replaceOften(met)
        return
      }
      case "burst": {
        const key = neighbour()
        // What was lost in a restore is requested again by one brand only.
        if (key === null || stage.chest || count.bursts === mostBursts) return
        count.bursts += 1
        return await crowdIn(stage, key, salt, asking)
      }
    }
  }

  return {
    come(fault) {
      const coming = unlessForgotten(act(fault))
      comings.push(coming.catch((error) => void asking.breaches.push((error as Error).message)))
    },
    async gone() {
      await Promise.all(comings)
    },
  }
}
