/** The lesser of two heights or amounts, which JavaScript's `Math` does not take. */
export function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** The greater of two heights or amounts. */
export function most(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
