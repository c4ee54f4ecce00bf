/**
 * Resolves or rejects like `answer`, or after the time rejects with `tooLate`, a message or a function that makes the
 * error. A late result or error is ignored.
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
