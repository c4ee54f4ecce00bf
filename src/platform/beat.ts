/**
 * Milliseconds until the next beat of an interval. All intervals of a process beat together, so that it can sleep
 * between: waking costs more than the work.
 */
export function untilNextBeat(everyMilliseconds: number): number {
  return Math.ceil(everyMilliseconds - (performance.now() % everyMilliseconds))
}
