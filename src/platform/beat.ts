/**
 * Milliseconds until what is done every so often is done next. All that a process does so often falls together: it
 * sleeps in between, and each time it awakes costs more than what it awakes for.
 */
export function untilNextBeat(everyMilliseconds: number): number {
  return Math.ceil(everyMilliseconds - (performance.now() % everyMilliseconds))
}
