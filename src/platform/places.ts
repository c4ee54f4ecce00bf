import { within } from "./deadline.ts"

/**
 * Limits concurrency fairly. A holder gets a place only while more places are free than it has: others always find
 * some, and greedy holders end up equal. A holder within another, such as an endpoint of an organization, gets one only
 * while it has fewer than the outer one could still take.
 */
export type Places = {
  /**
   * Takes a place for the last of `holders`, each of which is part of the one before. Returns a function that gives the
   * place back, or null if there is no room.
   */
  take(holders: string[]): Leave | null
  /** Takes a place as soon as there is room. Throws `tooLate()` after the time. */
  enter(holders: string[], milliseconds: number, tooLate: () => Error): Promise<Leave>
}

type Leave = () => void

export function createPlaces(all: number): Places {
  const taken = new Map<string, number>()
  let free = Math.floor(all)
  let oneLeft = Promise.withResolvers<void>()

  function count(holders: string[], more: 1 | -1): void {
    free -= more
    for (const holder of holders) {
      const now = (taken.get(holder) ?? 0) + more
      if (now > 0) taken.set(holder, now)
      else taken.delete(holder)
    }
  }

  function take(holders: string[]): Leave | null {
    const room = holders.reduce((rest, holder) => rest - (taken.get(holder) ?? 0), free)
    if (room <= 0) return null
    count(holders, 1)
    return () => {
      count(holders, -1)
      oneLeft.resolve()
      oneLeft = Promise.withResolvers()
    }
  }

  return {
    take,
    async enter(holders, milliseconds, tooLate) {
      const deadline = performance.now() + milliseconds
      for (;;) {
        const leave = take(holders)
        if (leave) return leave
        await within(oneLeft.promise, deadline - performance.now(), tooLate)
      }
    },
  }
}

/**
 * The shares of the concurrent fetches that Bun allows a process; the remainder is for everything else. Fetches beyond
 * the limit would queue inside Bun, behind all others, while their timeouts run.
 */
export const shares = { chains: 1 / 2, webhooks: 3 / 8 }
