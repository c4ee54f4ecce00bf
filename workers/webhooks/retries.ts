const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes

/** The waits after the first failed attempt, the second and so on. */
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

/**
 * When an event is tried again after this many failed attempts, with up to a tenth added so that those who failed
 * together do not return together; null after the last. `random` is from 0 to 1.
 */
export function nextAttemptAt(at: Date, failedAttempts: number, random: number): Date | null {
  const wait = waitsMilliseconds[failedAttempts - 1]
  return wait === undefined ? null : new Date(at.getTime() + Math.round(wait * (1 + random / 10)))
}
