/** Returns a UUIDv7. A process's ids only increase, even within a millisecond, so they sort by creation. */
export function newId(): string {
  return Bun.randomUUIDv7()
}

/** The accepted forms, in either case. */
export const uuidForm = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/
export const chipIdForm = /^[0-9A-Fa-f]{10}$/

/** Returns the id in its canonical lower case, or null if the text is not a UUID. */
export function parseId(text: string): string | null {
  return uuidForm.test(text) ? text.toLowerCase() : null
}

/** Returns the chip id in its canonical upper case, or null if the text is not ten hexadecimal digits. */
export function parseChipId(text: string): string | null {
  return chipIdForm.test(text) ? text.toUpperCase() : null
}
