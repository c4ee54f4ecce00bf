import { cmac } from "./cmac.ts"

const AES128_CONSTANT = 0x01
const MIN_INPUT_BYTES = 16
const MAX_INPUT_BYTES = 31

/**
 * The key of one chip, derived from a master key of 16 bytes (NXP AN10922 §2.2, AES-128). `input` is what is
 * particular to the chip, by NXP's layout UID, application id, system identifier: 16 to 31 bytes.
 * AN10922 allows less, but always pads to two blocks; with a shorter input many tools apply plain AES-CMAC
 * and arrive at another key, so a shorter input throws RangeError.
 */
export function diversifyKey(masterKey: Uint8Array, input: Uint8Array): Buffer {
  if (input.length < MIN_INPUT_BYTES || input.length > MAX_INPUT_BYTES) {
    throw new RangeError(
      `A diversification input has ${MIN_INPUT_BYTES} to ${MAX_INPUT_BYTES} bytes, not ${input.length}: ` +
        "lengthen or shorten its system identifier.",
    )
  }
  return cmac(masterKey, Buffer.concat([Uint8Array.of(AES128_CONSTANT), input]))
}
