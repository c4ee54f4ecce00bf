import { createHmac } from "node:crypto"
import { diversify } from "./an10922.ts"
import type { ChipKeys } from "./chip-keys.ts"
import { cmac, cmacUnder } from "./cmac.ts"

/** How the keys of an organization's tags are derived. `explicit`: they are imported with each chip. */
export const keySchemes = ["an10922", "sdm-backend", "boltcard", "explicit"] as const
export type KeyScheme = (typeof keySchemes)[number]
export type DerivingScheme = Exclude<KeyScheme, "explicit">

/** An NTAG 424 DNA has five application keys, in slots 0 to 4; 0 is the application master key. */
export type KeySlot = 0 | 1 | 2 | 3 | 4
export const keySlots: readonly KeySlot[] = [0, 1, 2, 3, 4]
export const KEY_BYTES = 16
/** GetKeyVersion returns one byte, which is 0 for a key that was never changed. */
export const MAX_KEY_VERSION = 255

/** The slots of a scheme: the meta_read key decrypts `e`, the file_read key makes `c`. */
export type SlotRoles = { readonly meta_read: KeySlot; readonly file_read: KeySlot }

/** The chip whose keys are derived. The UID has 7 bytes; null before a scan has revealed it. */
export type TagIdentity = { readonly chip_id: string; readonly uid: Uint8Array | null }

/** One version of a key set, ready to derive keys. */
export type KeySource = {
  readonly scheme: DerivingScheme
  readonly version: number
  readonly roles: SlotRoles
  /** Whether keys depend on the UID, which must then be known before a tag is encoded. */
  readonly needs_uid: boolean
  keyAt(slot: KeySlot, tag: TagIdentity): Buffer
}

/** For `an10922` the slots of AN12196 §6; for the others those of nfc-developer/sdm-backend and boltcard/boltcard. */
export const rolesOf: Record<KeyScheme, SlotRoles> = {
  an10922: { meta_read: 2, file_read: 1 },
  "sdm-backend": { meta_read: 1, file_read: 2 },
  boltcard: { meta_read: 1, file_read: 2 },
  explicit: { meta_read: 2, file_read: 1 },
}

/**
 * Opens a version of a key set. `master` has 16 bytes; `version` is 1 to 255, the number that the tag stores as its key
 * version byte. Throws `RangeError` on others.
 */
export function keySourceOf(scheme: DerivingScheme, master: Uint8Array, version: number): KeySource {
  if (master.length !== KEY_BYTES) throw new RangeError(`a master key has ${KEY_BYTES} bytes`)
  if (!Number.isInteger(version) || version < 1 || version > MAX_KEY_VERSION)
    throw new RangeError(`a key version is 1 to ${MAX_KEY_VERSION}, not ${version}`)
  return {
    scheme,
    version,
    roles: rolesOf[scheme],
    needs_uid: scheme !== "an10922",
    keyAt: derivations[scheme](master, version),
  }
}

/** Derives the two keys that verification needs. Throws `UidNeeded` as `keyAt` does. */
export function chipKeysFrom(source: KeySource, tag: TagIdentity): ChipKeys {
  return {
    metaKey: source.keyAt(source.roles.meta_read, tag),
    fileKey: source.keyAt(source.roles.file_read, tag),
  }
}

/** The scheme derives keys from the UID, which is not known yet. */
export class UidNeeded extends Error {
  override name = "UidNeeded"
  constructor(scheme: KeyScheme, chipId: string) {
    super(`keys of the scheme ${scheme} depend on the UID, but the UID of chip ${chipId} is not known`)
  }
}

/** Returns whether the key is all zeros: the key of every new tag, which protects nothing. */
export function isZeroKey(key: Uint8Array): boolean {
  return key.every((byte) => byte === 0)
}

type Derivation = (master: Uint8Array, version: number) => (slot: KeySlot, tag: TagIdentity) => Buffer

const derivations: Record<DerivingScheme, Derivation> = {
  an10922: (master, version) => (slot, tag) => diversify(master, an10922Input(slot, tag.chip_id, version)),
  "sdm-backend": sdmBackendKeys,
  boltcard: boltcardKeys,
}

const NTAG_424_AID = Buffer.from("3042F5", "hex")
const SYSTEM_IDENTIFIER = Buffer.from("tagkey")

/**
 * Returns the diversification input, which makes the keys of a chip unique: chip id (5 bytes), AID of the NTAG 424 DNA
 * (3), `tagkey` in ASCII (6), slot (1) and key version (1); 16 bytes. It has the chip id instead of the UID because the
 * station may learn the UID only when the tag is on its reader, and a scan must open without it.
 */
function an10922Input(slot: KeySlot, chipId: string, version: number): Buffer {
  return Buffer.concat([
    Buffer.from(chipId, "hex"),
    NTAG_424_AID,
    SYSTEM_IDENTIFIER,
    Uint8Array.of(slot, version),
  ])
}

/**
 * Derives keys as nfc-developer/sdm-backend does (libsdm/derive.py): the meta key in slot 1 is the same for all tags;
 * the others depend on the UID. There, a master of zeros gives keys of zeros, which its demo tags have.
 */
function sdmBackendKeys(master: Uint8Array): (slot: KeySlot, tag: TagIdentity) => Buffer {
  if (isZeroKey(master)) return () => Buffer.alloc(KEY_BYTES)
  const metaKey = hmac(master, Buffer.from("PICCDataKey")).subarray(0, KEY_BYTES)
  const base = hmac(master, Buffer.from("DivBaseKey"))
  const macs = keySlots.map((slot) =>
    cmacUnder(
      hmac(master, Buffer.concat([Buffer.from("SlotMasterKey"), Uint8Array.of(slot)])).subarray(0, KEY_BYTES),
    ),
  )
  return (slot, tag) => {
    if (slot === 1) return Buffer.from(metaKey)
    const input = hmac(base, uidOf("sdm-backend", tag)).subarray(0, KEY_BYTES)
    return (macs[slot] as (message: Uint8Array) => Buffer)(Buffer.concat([Uint8Array.of(1), input]))
  }
}

/**
 * Derives the deterministic keys of a Bolt Card (boltcard/boltcard docs/DETERMINISTIC.md). K1, which
 * decrypts `e`, is shared by all cards.
 */
function boltcardKeys(issuerKey: Uint8Array, version: number): (slot: KeySlot, tag: TagIdentity) => Buffer {
  const mac = cmacUnder(issuerKey)
  const versionBytes = Buffer.alloc(4)
  versionBytes.writeUInt32LE(version)
  return (slot, tag) => {
    if (slot === 1) return mac(boltcardLabel(0x77))
    const cardKey = mac(Buffer.concat([boltcardLabel(0x75), uidOf("boltcard", tag), versionBytes]))
    return cmac(cardKey, boltcardLabel(0x76 + slot))
  }
}

function boltcardLabel(last: number): Buffer {
  return Buffer.from([0x2d, 0x00, 0x3f, last])
}

function uidOf(scheme: KeyScheme, { chip_id, uid }: TagIdentity): Uint8Array {
  if (!uid) throw new UidNeeded(scheme, chip_id)
  return uid
}

function hmac(key: Uint8Array, message: Uint8Array): Buffer {
  return createHmac("sha256", key).update(message).digest()
}
