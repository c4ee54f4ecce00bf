const MOST_UNITS = 4
const NAMELESS = "UNIT"

/**
 * A token symbol for a collection without one: letters and digits of its words' initials, else of the whole name, in
 * upper case, at most 4 UTF-16 units.
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

/** A character that no longer fits ends it, so no surrogate pair is split. */
function shortened(text: string): string {
  let symbol = ""
  for (const character of text.toUpperCase()) {
    if (!/[\p{L}\p{N}]/u.test(character)) continue
    if (symbol.length + character.length > MOST_UNITS) break
    symbol += character
  }
  return symbol
}
