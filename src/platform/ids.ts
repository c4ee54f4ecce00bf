/** A new UUIDv7: ids of one process only grow, within a millisecond too, so they sort in the order things were made. */
export function newId(): string {
  return Bun.randomUUIDv7()
}

/** The forms that are taken: letters in either case. */
export const uuidForm = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/
export const chipIdForm = /^[0-9A-Fa-f]{10}$/

/** The id in its canonical lower case, or null when the text is not a UUID. */
export function parseId(text: string): string | null {
  return uuidForm.test(text) ? text.toLowerCase() : null
}

/** The chip id in its canonical upper case, or null when the text is not ten hexadecimal digits. */
export function parseChipId(text: string): string | null {
  return chipIdForm.test(text) ? text.toUpperCase() : null
}
