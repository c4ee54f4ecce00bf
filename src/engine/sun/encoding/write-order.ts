import { type KeySlot, keySlots } from "../key-schemes.ts"

/**
 * One step at the station. `authenticate_with` names the slot and key that open its session: `own` is the key in the
 * manifest, `factory` the zeros of a new tag, `previous` the key from an earlier manifest.
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

/** How a new tag is encoded. */
export const writeOrder: readonly WriteStep[] = stepsFrom("factory")

/** The same for a TagTamper, whose wire is off when it leaves the factory. */
export const writeTamperOrder: readonly WriteStep[] = [
  { step: "enable_tag_tamper", authenticate_with: { slot: 0, key: "factory" } },
  ...writeOrder,
]

/** How a tag gets other keys and another file than an earlier manifest gave it. */
export const writeAnewOrder: readonly WriteStep[] = stepsFrom("previous")

/**
 * An order in which no lost answer can brick a tag. At every moment each slot has either its previous key or the one in
 * the manifest: a station that does not know whether a step was done tries both. Each key is read back (GetKeyVersion,
 * then authenticate with it) before the next. The application master key comes last, as it opens the others; then the
 * file is locked.
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
