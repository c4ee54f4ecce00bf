import { type KeySlot, keySlots } from "../key-schemes.ts"

/**
 * One step at the station. `authenticate_with` says which key of which slot opens it: `factory` is the key of zeros that
 * a new tag has, `own` the one of the manifest.
 */
export type WriteStep = {
  step: WriteAction
  slot?: KeySlot
  authenticate_with?: { slot: KeySlot; key: "factory" | "own" }
}

type WriteAction =
  | "write_ndef"
  | "read_back_ndef"
  | "change_key"
  | "read_back_key"
  | "change_file_settings"
  | "read_back_file_settings"
  | "read_address"

/**
 * An order in which no lost answer can brick a tag. At every moment each slot has either the factory's key or the one
 * of the manifest, so a station that does not know whether a step was done tries both and goes on. A key is read back
 * (GetKeyVersion, then authenticate with it) before the next one is touched; the application master key is the last
 * key, because it opens all the others; the file is locked when everything else is known to be good.
 */
export const writeOrder: readonly WriteStep[] = [
  { step: "write_ndef", authenticate_with: { slot: 0, key: "factory" } },
  { step: "read_back_ndef" },
  ...keySlots.slice(1).flatMap((slot) => changeKey(slot)),
  ...changeKey(0),
  { step: "change_file_settings", authenticate_with: { slot: 0, key: "own" } },
  { step: "read_back_file_settings", authenticate_with: { slot: 0, key: "own" } },
  { step: "read_address" },
]

function changeKey(slot: KeySlot): WriteStep[] {
  return [
    { step: "change_key", slot, authenticate_with: { slot: 0, key: "factory" } },
    { step: "read_back_key", slot, authenticate_with: { slot, key: "own" } },
  ]
}
