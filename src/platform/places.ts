import { within } from "./deadline.ts"

/**
 * Limits what is under way at the same time, fairly. Nobody takes a place who already has as many as are free: so the
 * next finds some, and greedy holders end up equal. A part of a holder, as an endpoint of an organization, takes none
 * once it has as many as the whole could still take.
 */
export type Places = {
  /**
   * Takes a place for the last of `holders`, which is part of those before. Returns how to leave it, or null without
   * room.
   */
  take(holders: string[]): Leave | null
  /** The same as soon as there is room. Throws what `tooLate` makes after the time. */
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
 * The shares of the fetches that Bun allows a process at once; the rest is for all else. More would wait inside Bun,
 * behind everybody's, while its time runs.
 */
export const shares = { chains: 1 / 2, webhooks: 3 / 8 }
