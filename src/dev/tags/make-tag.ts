import { randomBytes } from "node:crypto"
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import { type ManifestLine, manifestLine } from "../../engine/sun/encoding/manifest.ts"
import { checkTemplate, type Mirrors } from "../../engine/sun/encoding/tag-address.ts"
import { KEY_BYTES, keySlots, keySourceOf } from "../../engine/sun/key-schemes.ts"
import { UID_BYTES } from "../../engine/sun/message.ts"
import type { BoxedTag } from "./tag-box.ts"

const NXP = 0x04

/** A new tag with keys of its own, written as the manifest of such an order would have it written. */
export function makeTag(template: string, mirrors: Mirrors): BoxedTag {
  checkTemplate(template)
  const chip_id = upperHex(randomBytes(5))
  return tagFrom(
    manifestLine(keySourceOf("an10922", randomBytes(KEY_BYTES), 1), template, mirrors, {
      chip_id,
      uid: null,
    }),
  )
}

/** The tags of a manifest, encoded as its station would do it: where it names no UID, any tag is taken. */
export async function* tagsOfManifest(path: string): AsyncGenerator<BoxedTag> {
  let number = 0
  for await (const text of createInterface({ input: createReadStream(path) })) {
    number++
    if (text.trim() !== "") yield tagFrom(lineIn(text, number))
  }
}

/** Throws Error naming the line; what stands in it is never quoted, because keys do. */
function lineIn(text: string, number: number): ManifestLine {
  try {
    const line = JSON.parse(text) as ManifestLine
    if (/^[0-9A-F]{10}$/.test(line.chip_id) && line.keys.length === keySlots.length) return line
  } catch {
    // Said below.
  }
  throw new Error(`line ${number} is not one of a manifest: give manifest.jsonl, opened where it was sealed`)
}

function tagFrom(line: ManifestLine): BoxedTag {
  return {
    chip_id: line.chip_id,
    uid: line.uid ?? upperHex(Buffer.concat([Uint8Array.of(NXP), randomBytes(UID_BYTES - 1)])),
    ndef_hex: line.ndef_hex,
    file_settings_hex: line.file_settings_hex,
    keys: [...line.keys].sort((one, other) => one.slot - other.slot).map(({ key }) => key),
    counter: 0,
    tamper: "CC",
  }
}

function upperHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase()
}
