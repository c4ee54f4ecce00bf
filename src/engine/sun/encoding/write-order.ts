import { type KeySlot, keySlots } from "../key-schemes.ts"

/**
 * One step at the station. `authenticate_with` names the slot and key that open its session: `own` is the key in the
 * manifest, `factory` the zeros of a new tag, `previous` the key from an earlier manifest.
 */
export type WriteStep = {
  step: WriteAction
  slot?: KeySlot
  authenticate_with?: { slot: KeySlot; key: KeyBefore | "own" }
  /** What the slot holds until then, which ChangeKey needs for every slot except 0. */
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

/** The steps that encode a new tag. */
export const writeOrder: readonly WriteStep[] = stepsFrom("factory")

/** The steps that encode a new TagTamper, whose wire is off at delivery. */
export const writeTamperOrder: readonly WriteStep[] = [
  { step: "enable_tag_tamper", authenticate_with: { slot: 0, key: "factory" } },
  ...writeOrder,
]

/** The steps that replace the keys and the file that an earlier manifest gave a tag. */
export const writeAnewOrder: readonly WriteStep[] = stepsFrom("previous")

/**
 * Returns the steps in an order in which no lost response can brick a tag. At every moment each slot has either its
 * previous key or the one in the manifest, so a station that does not know whether a step was done tries both. Each key
 * is read back (GetKeyVersion, then authenticate with it) before the next. The application master key comes last,
 * because it is needed to change the others; then the file is locked.
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
