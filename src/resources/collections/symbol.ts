const MOST_UNITS = 4
const NAMELESS = "UNIT"

/**
 * Returns a token symbol for a collection that has none: letters and digits of the initials of its words, else of the
 * whole name, in upper case, at most 4 UTF-16 code units.
 */
export function symbolFrom(name: string): string {
  const words = name.split(/\s+/u)
  const initials = words.map((word) => firstCharacter(word)).join("")
  return shortened(initials) || shortened(name) || NAMELESS
}

function firstCharacter(word: string): string {
  const [first = ""] = word
  return first
}

/** Stops at the first character that no longer fits, so that no surrogate pair is split. */
function shortened(text: string): string {
  let symbol = ""
  for (const character of text.toUpperCase()) {
    if (!/[\p{L}\p{N}]/u.test(character)) continue
    if (symbol.length + character.length > MOST_UNITS) break
    symbol += character
  }
  return symbol
}
