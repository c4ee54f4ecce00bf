const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes

/** The waits after the first failed attempt, the second, and so on. */
const waitsMilliseconds = [
  5 * seconds,
  5 * minutes,
  30 * minutes,
  2 * hours,
  5 * hours,
  10 * hours,
  14 * hours,
  20 * hours,
  24 * hours,
]

/** Longer than any retry waits, even as seen by a worker whose clock is hours behind. */
export const beyondAnyWaitMilliseconds = 2 * Math.max(...waitsMilliseconds)

/**
 * Returns when an event is retried after this many failed attempts; null after the last. Adds up to a tenth, so that
 * events that failed together are not retried together. `random` is from 0 to 1.
 */
export function nextAttemptAt(at: Date, failedAttempts: number, random: number): Date | null {
  const wait = waitsMilliseconds[failedAttempts - 1]
  return wait === undefined ? null : new Date(at.getTime() + Math.round(wait * (1 + random / 10)))
}
