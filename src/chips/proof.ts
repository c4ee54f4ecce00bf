import { ApiError } from "../errors.ts"
import { unwrapChipKeys } from "../sun/chip-keys.ts"
import { type SunChip, type SunMessage, verifySun } from "../sun/message.ts"

/** What is stored of a chip's identity: its UID in hexadecimal and its keys, wrapped. */
export type StoredTag = { chip_id: string; uid: string; wrapped_keys: string }

/** The read counter inside a message that this chip has made. Throws `chip.invalid_e_value` for any other message. */
export function provenCounter(secret: string, chip: StoredTag, message: SunMessage): number {
  const proof = verifySun(sunChipOf(secret, chip), message)
  if (!proof) throw new ApiError("chip.invalid_e_value")
  return proof.counter
}

/** The chip with its keys opened. Throws `ChipKeysUnreadable`. */
export function sunChipOf(secret: string, chip: StoredTag): SunChip {
  return {
    uid: Buffer.from(chip.uid, "hex"),
    ...unwrapChipKeys(secret, chip.chip_id, chip.wrapped_keys),
  }
}
