const dayMilliseconds = 86_400_000

/**
 * The seed of what a test draws: the variable's, which repeats a run, else the day's. It is fresh each day and the same
 * for all who run the tests on that day, so that what fails for one fails for the others too.
 */
export function seedOf(variable: string): number {
  return Number(process.env[variable] ?? seedOfDay(Date.now()))
}

function seedOfDay(at: number): number {
  return (Math.floor(at / dayMilliseconds) * 1_000_003) % 2 ** 31
}
