/** Yields parts of at most `size` elements, in order, taking them from `all` one at a time. */
export function* partsOf<T>(all: Iterable<T>, size: number): Generator<T[]> {
  let part: T[] = []
  for (const each of all) {
    part.push(each)
    if (part.length < size) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}
