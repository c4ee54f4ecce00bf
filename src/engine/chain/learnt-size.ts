/** How much providers accept in one request. They reveal it only by refusing more. */
type LearntSize = {
  now(): number
  /**
   * Lets the size grow after a full-sized request: of concurrent ones only after the first, and not after a refusal.
   */
  wasAnswered(asked: number): void
  wasRefused(asked: number): void
}

/** A response to a full-sized request lets the size grow by one part in so many, at least by one. */
const growth = 8

/** Starts with the most that is ever asked for. What it learns is kept until the process ends. */
export function createLearntSize(most: number): LearntSize {
  let size = most
  return {
    now: () => size,
    wasAnswered(asked) {
      if (asked === size) size = Math.min(size + Math.max(Math.floor(size / growth), 1), most)
    },
    wasRefused(asked) {
      size = Math.min(size, Math.floor(asked / 2))
    },
  }
}
