import { v7 } from "uuid"

/** A new UUIDv7: ids of one process grow with time, so they sort in the order things were made. */
export function newId(): string {
  return v7()
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The id in its canonical lower case, or null when the text is not a UUID. */
export function parseId(text: string): string | null {
  const id = text.toLowerCase()
  return uuidPattern.test(id) ? id : null
}
