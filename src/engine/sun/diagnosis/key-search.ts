import { diversifyAnyLength } from "../an10922.ts"
import { cmac } from "../cmac.ts"
import { type KeySlot, keySlots, type SlotRoles, type TagIdentity } from "../key-schemes.ts"
import type { Verdict } from "./verdicts.ts"

/** Keys that a tag may have: one version of a key set, or keys imported with a chip. */
export type KeyCandidate = {
  /** Such as `key set Autumn, version 2`. */
  name: string
  /** The set's own name; null if the organization has no set of these keys. */
  key_set_name: string | null
  /** Null for keys imported with a chip. */
  key_set_id: string | null
  version: number
  roles: SlotRoles
  /** Null if there is none. */
  master: Uint8Array | null
  /** Returns null if it would need the UID, which is unknown, or if the candidate has no key for the slot. */
  keyAt(slot: KeySlot, tag: TagIdentity): Uint8Array | null
}

/** A key that may be on the tag instead of the right one, and what that would mean. */
export type Guess = {
  key: Uint8Array
  verdict: Verdict
  detail: string
  candidate: KeyCandidate | null
  /** Returns the key that the same mistake would use as the file key; null if it cannot be derived. */
  fileKeyOf(tag: TagIdentity): Uint8Array | null
}

/** The key in each slot of a new tag. */
export const FACTORY_KEY = new Uint8Array(16)

/** The role whose key is searched for. */
type Role = keyof SlotRoles

const roleNames: Record<Role, string> = { meta_read: "meta key", file_read: "file key" }

/**
 * Yields keys that may be on the tag in place of the right one, likeliest first: all zeros, keys of other slots, other
 * versions of the set and other sets, the masters themselves and other derivations from them.
 */
export function* guesses(
  role: Role,
  tag: TagIdentity,
  own: KeyCandidate | null,
  candidates: readonly KeyCandidate[],
): Generator<Guess> {
  const place = roleNames[role]
  yield {
    key: FACTORY_KEY,
    verdict: "factory_key",
    detail: `the ${place} on the tag is the factory key, all zeros`,
    candidate: null,
    fileKeyOf: () => FACTORY_KEY,
  }
  if (own) yield* otherSlots(own, role, tag)
  const others = candidates.filter((each) => each !== own)
  for (const candidate of others) {
    const key = candidate.keyAt(candidate.roles[role], tag)
    const isSameSet = own !== null && own.key_set_id !== null && candidate.key_set_id === own.key_set_id
    if (key)
      yield {
        key,
        verdict: isSameSet ? "wrong_key_version" : "wrong_key_set",
        detail: `the ${place} on the tag is that of ${candidate.name}${own ? `, not of ${own.name}` : ""}`,
        candidate,
        fileKeyOf: (asked) => candidate.keyAt(candidate.roles.file_read, asked),
      }
  }
  for (const candidate of own ? [own, ...others] : others) yield* otherDerivations(candidate, place, tag)
  for (const candidate of others) yield* otherSlots(candidate, role, tag)
}

function* otherSlots(candidate: KeyCandidate, role: Role, tag: TagIdentity): Generator<Guess> {
  const other: Role = role === "meta_read" ? "file_read" : "meta_read"
  for (const slot of keySlots) {
    if (slot === candidate.roles[role]) continue
    const key = candidate.keyAt(slot, tag)
    if (!key) continue
    const isSwapped = slot === candidate.roles[other]
    yield {
      key,
      verdict: isSwapped ? "keys_swapped" : "wrong_key_slot",
      detail: isSwapped
        ? `the ${roleNames[other]} is where the ${roleNames[role]} belongs`
        : `the tag uses the key of slot ${slot} as its ${roleNames[role]}, which belongs in slot ${candidate.roles[role]}`,
      candidate,
      fileKeyOf: (asked) => candidate.keyAt(candidate.roles[isSwapped ? "meta_read" : "file_read"], asked),
    }
  }
}

function* otherDerivations(candidate: KeyCandidate, place: string, { uid }: TagIdentity): Generator<Guess> {
  const { master, name } = candidate
  if (!master) return
  yield {
    key: master,
    verdict: "master_key_on_tag",
    detail: `the ${place} on the tag is the master key of ${name} itself, not a key derived from it`,
    candidate,
    fileKeyOf: () => master,
  }
  if (!uid) return
  const fileKeyOf = (asked: TagIdentity) => candidate.keyAt(candidate.roles.file_read, asked)
  const shortInput = { verdict: "key_of_another_derivation", candidate, fileKeyOf } as const
  yield {
    ...shortInput,
    key: diversifyAnyLength(master, uid),
    detail: `the ${place} on the tag was derived by AN10922 from the UID alone, with the master key of ${name}`,
  }
  yield {
    ...shortInput,
    key: cmac(master, Uint8Array.of(1, ...uid)),
    detail: `the ${place} on the tag is a plain CMAC of 01 and the UID, with the master key of ${name}: the software left out the padding of AN10922`,
  }
}
