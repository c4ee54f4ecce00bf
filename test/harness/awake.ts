// Long enough that what a busy machine adds to each step hardly counts.
const stepMilliseconds = 100

/**
 * How many milliseconds pass until a promise settles. A pause of the whole process, as on a busy machine, counts as one
 * step, however long it lasts.
 */
export async function awakeUntilSettled(promise: Promise<unknown>): Promise<number> {
  let isSettled = false
  const settled = promise.then(
    () => {},
    () => {},
  )
  void settled.then(() => {
    isSettled = true
  })
  let steps = 0
  for (; !isSettled; steps++) await Promise.race([settled, Bun.sleep(stepMilliseconds)])
  return steps * stepMilliseconds
}
