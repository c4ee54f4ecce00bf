import { type TagAddress, TemplateError } from "./tag-address.ts"

/** The size of the NDEF file of an NTAG 424 DNA (file 02h). */
export const NDEF_FILE_BYTES = 256

/** URI identifier codes of the NFC Forum's URI record type, longest prefix first. */
const prefixes: readonly (readonly [string, number])[] = [
  ["https://www.", 0x02],
  ["http://www.", 0x01],
  ["https://", 0x04],
  ["http://", 0x03],
]

const LENGTH_BYTES = 2
/** Record header D1 (first, last, short, well known), type length, payload length and type `U`. */
const HEADER_BYTES = 4
const IDENTIFIER_BYTES = 1
/** Where the text after the prefix begins in the file. */
const TEXT_START = LENGTH_BYTES + HEADER_BYTES + IDENTIFIER_BYTES

/** The bytes of the NDEF file, and where its placeholders are. */
type NdefFile = {
  bytes: Buffer
  /** In bytes from the start of the file, including the two length bytes, as ChangeFileSettings counts. */
  offsets: { e: number; enc: number | null; c: number | null }
}

/**
 * Returns the NDEF file for a URL: two length bytes and one short URI record (NFC Forum Type 4 Tag, NDEF URI RTD). The
 * offsets follow from the placeholders. Throws `TemplateError` if the URL does not fit into the file.
 */
export function ndefFile(address: TagAddress): NdefFile {
  const [prefix, code] = prefixOf(address)
  const rest = Buffer.from(address.text.slice(prefix.length), "latin1")
  const size = TEXT_START + rest.length
  if (size > NDEF_FILE_BYTES)
    throw new TemplateError(
      `the URL template is ${size - NDEF_FILE_BYTES} characters too long: a tag has room for ${NDEF_FILE_BYTES} bytes, its values included`,
    )
  const payloadBytes = IDENTIFIER_BYTES + rest.length
  const header = [0, HEADER_BYTES + payloadBytes, 0xd1, 0x01, payloadBytes, 0x55, code]
  return { bytes: Buffer.concat([Uint8Array.from(header), rest]), offsets: filePlaces(address) }
}

/** Returns the offsets of a URL's values in the file that holds it. */
export function filePlaces(address: TagAddress): NdefFile["offsets"] {
  const [prefix] = prefixOf(address)
  const inFile = (place: number) => TEXT_START + place - prefix.length
  return {
    e: inFile(address.e),
    enc: address.enc === null ? null : inFile(address.enc),
    c: address.c === null ? null : inFile(address.c),
  }
}

function prefixOf({ text }: TagAddress): readonly [string, number] {
  return prefixes.find(([each]) => text.startsWith(each)) ?? ["", 0]
}

/** Returns the URL in a file with one short URI record, as a phone reads it; null if there is none. */
export function addressIn(file: Uint8Array): string | null {
  const bytes = Buffer.from(file)
  if (bytes.length < TEXT_START || bytes[2] !== 0xd1 || bytes[3] !== 0x01 || bytes[5] !== 0x55) return null
  const end = LENGTH_BYTES + HEADER_BYTES + bytes.readUInt8(4)
  const prefix = prefixes.find(([, code]) => code === bytes[6])?.[0] ?? ""
  return end > bytes.length ? null : prefix + bytes.subarray(TEXT_START, end).toString("latin1")
}
