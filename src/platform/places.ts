import { within } from "./deadline.ts"

/**
 * Places for what is under way at the same time. Nobody takes one who has as many already as are free: so the next one
 * finds some, and those who want as many as they can come to have equally many. One who is part of another, as an endpoint
 * of an organization, takes none once it has as many as that other one could still take.
 */
export type Places = {
  /** Takes a place for the last of `holders`, who is part of those before; answers how to leave it, or null without room. */
  take(holders: string[]): Leave | null
  /** The same as soon as there is room. Throws what `tooLate` makes after so many milliseconds. */
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
 * How much of what Bun lets a process fetch at once is for whom; the rest is for all else. What is more waits inside Bun,
 * behind everybody's, while its time runs.
 */
export const shares = { chains: 1 / 2, webhooks: 3 / 8 }
