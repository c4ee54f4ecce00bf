import { type KeySlot, keySlots } from "../key-schemes.ts"

/**
 * One step at the station, in the session that `authenticate_with` opens. It says which key of which slot opens it:
 * `own` is the one of the manifest; `factory` is the key of zeros that a new tag has, `previous` the one that a tag got
 * by an earlier manifest.
 */
export type WriteStep = {
  step: WriteAction
  slot?: KeySlot
  authenticate_with?: { slot: KeySlot; key: KeyBefore | "own" }
  /** What the slot holds until then, which ChangeKey needs for every slot but 0. */
  old_key?: KeyBefore
}

/** What a slot holds before its key is changed. */
type KeyBefore = "factory" | "previous"

type WriteAction =
  | "enable_tag_tamper"
  | "write_ndef"
  | "read_back_ndef"
  | "change_key"
  | "read_back_key"
  | "change_file_settings"
  | "read_back_file_settings"
  | "read_address"

/** How a tag is made that is as it left the factory. */
export const writeOrder: readonly WriteStep[] = stepsFrom("factory")

/** The same for a TagTamper, whose wire is not looked at when it leaves the factory. */
export const writeTamperOrder: readonly WriteStep[] = [
  { step: "enable_tag_tamper", authenticate_with: { slot: 0, key: "factory" } },
  ...writeOrder,
]

/** How a tag gets other keys and another file than an earlier manifest gave it. */
export const writeAnewOrder: readonly WriteStep[] = stepsFrom("previous")

/**
 * An order in which no lost answer can brick a tag. At every moment each slot has either the key before or the one
 * of the manifest, so a station that does not know whether a step was done tries both and goes on. A key is read back
 * (GetKeyVersion, then authenticate with it) before the next one is touched; the application master key is the last
 * key, because it opens all the others; the file is locked when everything else is known to be good.
 */
function stepsFrom(before: KeyBefore): WriteStep[] {
  return [
    { step: "write_ndef", authenticate_with: { slot: 0, key: before } },
    { step: "read_back_ndef", authenticate_with: { slot: 0, key: before } },
    ...keySlots.slice(1).flatMap((slot) => changeKey(slot, before)),
    ...changeKey(0, before),
    { step: "change_file_settings", authenticate_with: { slot: 0, key: "own" } },
    { step: "read_back_file_settings", authenticate_with: { slot: 0, key: "own" } },
    { step: "read_address" },
  ]
}

function changeKey(slot: KeySlot, before: KeyBefore): WriteStep[] {
  return [
    { step: "change_key", slot, authenticate_with: { slot: 0, key: before }, old_key: before },
    { step: "read_back_key", slot, authenticate_with: { slot, key: "own" } },
  ]
}
