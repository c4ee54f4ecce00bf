import { createHmac, timingSafeEqual } from "node:crypto"
import type { Position } from "../db/page.ts"
import { fieldError } from "../platform/errors.ts"
import { derivedKey, type Secret } from "../platform/sealing.ts"

/** The list a cursor is valid for. */
type CursorScope = { operation: string; organization_id: string; filters: string }

/** Returns base64url of a position and its MAC, an HMAC-SHA-256 cut to 16 bytes. The position is opaque, not secret. */
export function cursorFor({ current }: Secret, scope: CursorScope, { created_at, id }: Position): string {
  const position = Buffer.from(`${created_at.getTime()} ${id}`)
  return Buffer.concat([macOf(current, scope, position), position]).toString("base64url")
}

/** Returns a cursor's position. Throws `validation.failed` on `cursor` unless `cursorFor` made it for this scope. */
export function positionOf({ current, previous }: Secret, scope: CursorScope, cursor: string): Position {
  const bytes = Buffer.from(cursor, "base64url")
  const position = bytes.subarray(MAC_BYTES)
  const isMadeWith = (secret: string) =>
    timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(secret, scope, position))
  const isOurs =
    bytes.length > MAC_BYTES &&
    bytes.toString("base64url") === cursor &&
    (isMadeWith(current) || (previous !== null && isMadeWith(previous)))
  const [time, id] = isOurs ? position.toString().split(" ") : []
  if (!time || !id)
    throw fieldError("cursor", "is not a next_cursor of this list with these filters: start without a cursor")
  return { created_at: new Date(Number(time)), id }
}

const MAC_BYTES = 16

function macOf(secret: string, scope: CursorScope, position: Buffer): Buffer {
  return createHmac("sha256", derivedKey(secret, "list cursors"))
    .update(JSON.stringify([scope.operation, scope.organization_id, scope.filters]))
    .update(position)
    .digest()
    .subarray(0, MAC_BYTES)
}
