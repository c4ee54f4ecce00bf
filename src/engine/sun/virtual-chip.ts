import { createCipheriv, randomBytes } from "node:crypto"
import { upperHex } from "../../platform/upper-hex.ts"
import {
  counterBytes,
  MAX_COUNTER,
  macFor,
  NXP,
  PICC_TAG,
  requireUid,
  type SunChip,
  sessionMacKey,
  UID_BYTES,
} from "./message.ts"

const KEY_BYTES = 16
const PADDING_BYTES = 5

/** Creates a chip in software: a UID as NXP assigns them, and two random keys. */
export function createVirtualChip(random: (size: number) => Uint8Array = randomBytes): SunChip {
  return {
    uid: Buffer.concat([Uint8Array.of(NXP), random(UID_BYTES - 1)]),
    metaKey: random(KEY_BYTES),
    fileKey: random(KEY_BYTES),
  }
}

/**
 * Returns the values that the chip would put into its URL on the read with this number (1 is the first read of a new
 * chip; at most 16,777,215). `padding` is 5 bytes, which a chip draws anew for each read. Throws `RangeError` on a UID,
 * counter or padding that no chip has.
 */
export function emitSun(
  chip: SunChip,
  counter: number,
  padding: Uint8Array = randomBytes(PADDING_BYTES),
): { e: string; c: string } {
  requireUid(chip.uid)
  if (!Number.isInteger(counter) || counter < 0 || counter > MAX_COUNTER) {
    throw new RangeError(
      `A read counter is a whole number from 0 to ${MAX_COUNTER}, not ${counter}: use a new chip.`,
    )
  }
  if (padding.length !== PADDING_BYTES) {
    throw new RangeError(
      `The padding has ${PADDING_BYTES} bytes, not ${padding.length}: leave it out to draw one.`,
    )
  }
  const aes = createCipheriv("aes-128-ecb", chip.metaKey, null).setAutoPadding(false)
  const picc = Buffer.concat([Uint8Array.of(PICC_TAG), chip.uid, counterBytes(counter), padding])
  const mac = macFor(sessionMacKey(chip.fileKey, chip.uid, counter))
  return { e: upperHex(aes.update(picc)), c: upperHex(mac) }
}
