import { createHash } from "node:crypto"
import { readAddress } from "./software-tag.ts"
import type { BoxedTag, TagBox } from "./tag-box.ts"

/** How a tap goes wrong. */
export type TapMistakes = {
  /** Repeats the address of this many reads ago. */
  replay: number
  /** This many reads before it that are never presented. */
  skip: number
  lower_case: boolean
  uid_only: boolean
  wrong_key: boolean
  truncate: boolean
  /** From now on the tag's wire is broken. */
  tampered: boolean
}

/** A tap that is not possible: one line that says why. */
export class TapRefused extends Error {
  override name = "TapRefused"
}

/** Reads a tag as a phone does: advances its counter and returns the URL it shows. Throws `TapRefused`. */
export function tapTag(box: TagBox, chipId: string, mistakes: TapMistakes): { url: string; counter: number } {
  const { replay, skip } = mistakes
  if (mistakes.tampered) breakWire(box, chipId)
  const tag = replay > 0 ? box.find(chipId) : box.read(chipId, skip + 1)
  if (!tag)
    throw new TapRefused(
      box.find(chipId) ? `tag ${chipId} has used up its reads` : `there is no tag ${chipId}`,
    )
  const counter = replay > 0 ? tag.counter - replay + 1 : tag.counter
  if (counter < 1) throw new TapRefused(`tag ${chipId} has been read only ${tag.counter} times`)
  const wireAtRead = tag.broken_since !== null && counter < tag.broken_since ? "CC" : tag.tamper
  const keys = mistakes.wrong_key ? tag.keys.map(otherKey) : tag.keys
  const played = { ...tag, keys, tamper: wireAtRead } as const
  const options = { padding: paddingOf(tag, counter), uid_only: mistakes.uid_only }
  const url = readAddress(played, counter, options)
  const cut = mistakes.truncate ? url.replace(/([?&]e=[0-9A-F]{30})[0-9A-F]{2}/, "$1") : url
  return { url: mistakes.lower_case ? cut.toLowerCase() : cut, counter }
}

function breakWire(box: TagBox, chipId: string): void {
  const tag = box.find(chipId)
  if (tag && !hasWire(tag))
    throw new TapRefused(`tag ${chipId} has no tamper wire: make a tag with chip new --tamper`)
  box.breakWire(chipId)
}

/** Whether the tag shows the status of a wire. */
export function hasWire(tag: BoxedTag): boolean {
  return /[?&]enc=/.test(readAddress(tag, 1))
}

/** The same read has the same padding, so that a replay is exactly the same address. */
function paddingOf({ uid }: BoxedTag, counter: number): Uint8Array {
  return createHash("sha256").update(`${uid}.${counter}`).digest().subarray(0, 5)
}

function otherKey(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, key.length).toUpperCase()
}
