/**
 * Returns the milliseconds until an interval's next beat. All intervals of a process beat at the same moments, so that
 * it can sleep in between: waking up costs more than the work.
 */
export function untilNextBeat(everyMilliseconds: number): number {
  return Math.ceil(everyMilliseconds - (performance.now() % everyMilliseconds))
}
