/**
 * The answer, if it comes in time; otherwise throws what `tooLate` says or makes. A late answer or failure is ignored.
 */
export async function within<T>(
  answer: Promise<T>,
  milliseconds: number,
  tooLate: string | (() => Error),
): Promise<T> {
  const { promise: silence, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(typeof tooLate === "string" ? new Error(tooLate) : tooLate()),
    milliseconds,
  )
  return await Promise.race([answer, silence]).finally(() => clearTimeout(timer))
}
