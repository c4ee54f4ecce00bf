const dayMilliseconds = 86_400_000

/**
 * The seed for a test's random values: the variable's, to repeat a run, or else the day's, which changes every day and
 * is
 * the same for everybody, so that what fails for one fails for all.
 */
export function seedOf(variable: string): number {
  return Number(process.env[variable] ?? seedOfDay(Date.now()))
}

function seedOfDay(at: number): number {
  return (Math.floor(at / dayMilliseconds) * 1_000_003) % 2 ** 31
}
