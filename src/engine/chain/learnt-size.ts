/** How much providers answer for at once: they say so only by refusing more. */
type LearntSize = {
  now(): number
  /** Of questions asked at the same time, one lets it grow, and none after a refusal. */
  wasAnswered(asked: number): void
  wasRefused(asked: number): void
}

/** Each answer to as much as is asked for lets that grow by so much of it, by one at least. */
const growth = 8

/** Begins with the most that is ever asked for; what it learns is kept while the process lives. */
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
