/** Runs works one at a time, in the order in which they came; one that fails lets the next one in. */
export type Turnstile = <T>(work: () => Promise<T>) => Promise<T>

export function createTurnstile(): Turnstile {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}
