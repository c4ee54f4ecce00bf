import { randomBytes } from "node:crypto"
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import { type ManifestLine, manifestLine } from "../../engine/sun/encoding/manifest.ts"
import { checkTemplate, type Mirrors } from "../../engine/sun/encoding/tag-address.ts"
import { KEY_BYTES, keySlots, keySourceOf } from "../../engine/sun/key-schemes.ts"
import { NXP, UID_BYTES } from "../../engine/sun/message.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import type { BoxedTag } from "./tag-box.ts"

/** A tag refuses what a station would write: one line that says why. */
export class EncodingRefused extends Error {
  override name = "EncodingRefused"
}

/** A new tag with its own keys, written as a manifest would have it. */
export function makeTag(template: string, mirrors: Mirrors): BoxedTag {
  checkTemplate(template)
  const chip_id = upperHex(randomBytes(5))
  const source = keySourceOf("an10922", randomBytes(KEY_BYTES), 1)
  return newTag(manifestLine(source, template, mirrors, { chip_id, uid: null }))
}

/** The lines of a manifest. Throws an error naming a line that is malformed. */
export async function* linesOfManifest(path: string): AsyncGenerator<ManifestLine> {
  let number = 0
  for await (const text of createInterface({ input: createReadStream(path) })) {
    number++
    if (text.trim() !== "") yield lineIn(text, number)
  }
}

/**
 * Encodes `present`, or a new tag, as a station would; returns the same object if nothing changes. As with hardware,
 * changing a key takes the previous one, and the counter restarts. Throws `EncodingRefused`.
 */
export function encodeTag(present: BoxedTag | null, line: ManifestLine): BoxedTag {
  const { chip_id, ndef_hex, file_settings_hex } = line
  const earlier = line.previous_keys ?? null
  if (!present && earlier)
    throw new EncodingRefused(`there is no tag ${chip_id}: first use the manifest that it was made with`)
  if (!present) return newTag(line)
  const keys = ownKeys(line)
  const isDone =
    present.ndef_hex === ndef_hex &&
    present.file_settings_hex === file_settings_hex &&
    present.keys.every((key, slot) => key === keys[slot])
  if (isDone) return present
  const knownKeys = earlier ?? keySlots.map((slot) => ({ slot, key: FACTORY_KEY }))
  for (const slot of keySlots) {
    const now = present.keys[slot]
    if (now !== keys[slot] && !knownKeys.some((known) => known.slot === slot && known.key === now))
      throw new EncodingRefused(
        `tag ${chip_id} refuses: its key in slot ${slot} is not one of those in the manifest`,
      )
  }
  return { ...present, ndef_hex, file_settings_hex, keys, counter: 0 }
}

/** Throws an error naming the line, whose content is never quoted, because it has keys. */
function lineIn(text: string, number: number): ManifestLine {
  try {
    const line = JSON.parse(text) as ManifestLine
    if (/^[0-9A-F]{10}$/.test(line.chip_id) && line.keys.length === keySlots.length) return line
  } catch {
    // Said below.
  }
  throw new Error(
    `line ${number} is not that of a manifest: name manifest.jsonl, decrypted if it was encrypted`,
  )
}

function newTag(line: ManifestLine): BoxedTag {
  return {
    chip_id: line.chip_id,
    uid: line.uid ?? upperHex(Buffer.concat([Uint8Array.of(NXP), randomBytes(UID_BYTES - 1)])),
    ndef_hex: line.ndef_hex,
    file_settings_hex: line.file_settings_hex,
    keys: ownKeys(line),
    counter: 0,
    tamper: "CC",
    broken_since: null,
  }
}

/** In the order of slots. */
function ownKeys({ keys }: ManifestLine): string[] {
  return [...keys].sort((one, other) => one.slot - other.slot).map(({ key }) => key)
}

const FACTORY_KEY = "0".repeat(2 * KEY_BYTES)
