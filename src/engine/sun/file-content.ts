import { createCipheriv, createDecipheriv } from "node:crypto"
import { cmac } from "./cmac.ts"
import { counterBytes, type SunChip, sessionVector } from "./message.ts"

/**
 * What a TagTamper chip says of its wire. `sealed`: never broken. `opened`: broken at some time. `unknown`: there is no
 * wire, or it was never switched on.
 */
export const tamperStatuses = ["sealed", "opened", "unknown"] as const
export type TamperStatus = (typeof tamperStatuses)[number]

const SV1_PREFIX = Buffer.from("C33C00010080", "hex")
const BLOCK_BYTES = 16

/** The 16 bytes of the tag's file inside the `enc` of an authentic message (datasheet §9.3.6.1). */
export function decryptFileContent(chip: SunChip, counter: number, enc: string): Buffer {
  const { key, iv } = contentKey(chip, counter)
  const aes = createDecipheriv("aes-128-cbc", key, iv).setAutoPadding(false)
  return aes.update(Buffer.from(enc, "hex"))
}

/** The same the other way round, as the chip does it. `content` has 16 bytes. */
export function encryptFileContent(chip: SunChip, counter: number, content: Uint8Array): Buffer {
  const { key, iv } = contentKey(chip, counter)
  return createCipheriv("aes-128-cbc", key, iv).setAutoPadding(false).update(content)
}

/**
 * The status that a TagTamper chip mirrors into the first two bytes of the content: the permanent one and the one of
 * now, each `C` closed, `O` open or `I` invalid (datasheet NT4H2421Tx §9.3.8). Once open is open for ever.
 */
export function tamperOf(content: Uint8Array): TamperStatus {
  const [permanent, current] = Buffer.from(content.subarray(0, 2)).toString("latin1")
  if (permanent === "O" || current === "O") return "opened"
  return permanent === "C" && current === "C" ? "sealed" : "unknown"
}

/** The key of SV1 under the file key, and the encrypted counter block as the first vector of the chain. */
function contentKey(chip: SunChip, counter: number): { key: Buffer; iv: Buffer } {
  const key = cmac(chip.fileKey, sessionVector(SV1_PREFIX, chip.uid, counter))
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(counterBytes(counter))
  return { key, iv: createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(block) }
}
