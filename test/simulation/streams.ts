/** A random stream that follows from a seed and a name alone: a draw from one does not affect another. */
export type Stream = {
  /** 32 bits. */
  word(): number
  /** From 0 to 1, excluding 1. */
  fraction(): number
  /** An integer from 0 to `count`, excluding `count`. */
  below(count: number): number
  between(least: number, most: number): number
  happens(probability: number): boolean
  pick<T>(choices: readonly T[]): T
}

/** The sfc32 generator of PractRand (Chris Doty-Humphrey), with its state derived from the seed and the name. */
export function streamOf(seed: bigint, name: string): Stream {
  let one = Number(seed & 0xffff_ffffn) | 0
  let two = Number((seed >> 32n) & 0xffff_ffffn) | 0
  let three = fnv(name)
  let counter = 1
  const word = () => {
    const sum = (((one + two) | 0) + counter) | 0
    counter = (counter + 1) | 0
    one = two ^ (two >>> 9)
    two = (three + (three << 3)) | 0
    three = (((three << 21) | (three >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let round = 0; round < 15; round++) word()
  const fraction = () => word() / 2 ** 32
  const below = (count: number) => Math.floor(fraction() * count)
  return {
    word,
    fraction,
    below,
    between: (least, most) => least + fraction() * (most - least),
    happens: (probability) => fraction() < probability,
    pick: (choices) => choices[below(choices.length)] as (typeof choices)[number],
  }
}

/** FNV-1a of 32 bits. */
function fnv(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash | 0
}
