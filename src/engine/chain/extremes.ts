/** Returns the lesser of two heights or amounts; `Math.min` does not accept bigint. */
export function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** Returns the greater of two heights or amounts. */
export function most(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
