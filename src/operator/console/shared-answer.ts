/**
 * Reads for all viewers, once at a time. An answer stays good for a time that may depend on how long it took; a failure
 * is not kept.
 */
export function shareAnswer<T>(
  read: () => Promise<T>,
  freshMilliseconds: (took: number) => number,
): () => Promise<T> {
  let known: Promise<T> | undefined
  let freshUntil = 0
  return () => {
    const begin = performance.now()
    if (known && begin < freshUntil) return known
    freshUntil = Number.POSITIVE_INFINITY
    known = read()
    known.then(
      () => {
        const end = performance.now()
        freshUntil = end + freshMilliseconds(end - begin)
      },
      () => {
        freshUntil = 0
      },
    )
    return known
  }
}
