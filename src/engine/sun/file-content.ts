import { createCipheriv, createDecipheriv } from "node:crypto"
import { cmac } from "./cmac.ts"
import { counterBytes, type SunChip, sessionVector } from "./message.ts"

/**
 * What a TagTamper chip reports about its wire. `sealed`: never broken. `opened`: broken at some time. `unknown`: there
 * is no wire, or it was never enabled.
 */
export const tamperStatuses = ["sealed", "opened", "unknown"] as const
export type TamperStatus = (typeof tamperStatuses)[number]

const SV1_PREFIX = Buffer.from("C33C00010080", "hex")
const BLOCK_BYTES = 16

/** Decrypts the 16 bytes of file content in the `enc` of an authentic message (data sheet §9.3.6.1). */
export function decryptFileContent(chip: SunChip, counter: number, enc: string): Buffer {
  const { key, iv } = contentKey(chip, counter)
  const aes = createDecipheriv("aes-128-cbc", key, iv).setAutoPadding(false)
  return aes.update(Buffer.from(enc, "hex"))
}

/** Encrypts file content as the chip does. `content` has 16 bytes. */
export function encryptFileContent(chip: SunChip, counter: number, content: Uint8Array): Buffer {
  const { key, iv } = contentKey(chip, counter)
  return createCipheriv("aes-128-cbc", key, iv).setAutoPadding(false).update(content)
}

/**
 * Returns the status that a TagTamper chip mirrors into the first two bytes of the content: the permanent
 * and the current one, each `C` closed, `O` open or `I` invalid (data sheet NT4H2421Tx §9.3.8). Once
 * open, it counts as opened for good.
 */
export function tamperOf(content: Uint8Array): TamperStatus {
  const [permanent, current] = Buffer.from(content.subarray(0, 2)).toString("latin1")
  if (permanent === "O" || current === "O") return "opened"
  return permanent === "C" && current === "C" ? "sealed" : "unknown"
}

/** Returns the key, the CMAC of SV1 under the file key, and the IV, the counter block encrypted with that key. */
function contentKey(chip: SunChip, counter: number): { key: Buffer; iv: Buffer } {
  const key = cmac(chip.fileKey, sessionVector(SV1_PREFIX, chip.uid, counter))
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(counterBytes(counter))
  return { key, iv: createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(block) }
}
