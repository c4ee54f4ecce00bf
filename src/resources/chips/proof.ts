import { and, asc, eq, gt, gte, lt, ne, or, type SQL, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { manifestChips, manifests } from "../../db/key-set-schema.ts"
import { type ChipRow, chips } from "../../db/schema.ts"
import { type ChipKeys, unwrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { decryptFileContent, type TamperStatus, tamperOf } from "../../engine/sun/file-content.ts"
import { chipKeysFrom } from "../../engine/sun/key-schemes.ts"
import {
  decryptPicc,
  MANY_READS,
  NXP,
  type SunChip,
  type SunMessage,
  verifySun,
} from "../../engine/sun/message.ts"
import { ApiError } from "../../platform/errors.ts"
import type { Secret } from "../../platform/sealing.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import { keySourceFor } from "./key-sources.ts"

/** A value that did not come from the chip: `chip.invalid_e_value`. */
export class ValueRefused extends ApiError {
  override name = "ValueRefused"
  constructor(
    readonly chip_id: string,
    message?: string,
  ) {
    super("chip.invalid_e_value", message)
  }
}

/** The columns that identify a chip. */
type StoredTag = Pick<
  ChipRow,
  | "chip_id"
  | "organization_id"
  | "uid"
  | "wrapped_keys"
  | "key_set_id"
  | "key_version"
  | "next_key_version"
  | "mac_input"
  | "has_mac"
  | "tamper"
>

/** What an authentic message of a chip says. */
export type SunProof = {
  counter: number
  /**
   * The version of the keys that made it: newer than the chip's own on the first read after the tag was encoded again.
   */
  key_version: number
  /** As stored. */
  uid: string
  /** The status of its tamper wire, now or last known; null if it mirrors none. */
  tamper: TamperStatus | null
}

/**
 * Verifies a chip's message with its keys or with those ordered for it since, and returns what it says. If the UID is
 * not known yet, the keys and, if ordered, `c` must prove it. Throws `chip.invalid_e_value`.
 */
export async function proveMessage(
  queries: Queries,
  secret: Secret,
  chip: StoredTag,
  message: SunMessage,
): Promise<SunProof> {
  for (const version of await versionsOnTag(queries, chip)) {
    const tag = await tagOf(queries, secret, chip, version, message)
    const proof = tag && verifySun(tag, message, chip.mac_input)
    if (!proof) continue
    const uid = upperHex(tag.uid)
    const holder = await holderOfTag(queries, chip, uid)
    if (holder === chip.organization_id)
      throw new ValueRefused(chip.chip_id, "The tag is known as another chip: it was encoded twice.")
    return {
      counter: proof.counter,
      key_version: version,
      // The keys prove that the tag is now this chip, whichever chip of another organization it was before.
      uid: holder !== null || isShared(chip) ? sharedUid(chip.chip_id, uid) : uid,
      tamper: tamperAfter(chip, tag, proof.counter, message),
    }
  }
  throw new ValueRefused(chip.chip_id)
}

/** Returns the organization whose other chip has the UID that this chip shows for the first time, or null. */
export async function holderOfTag(queries: Queries, chip: StoredTag, uid: string): Promise<string | null> {
  if (knownUid(chip) !== null) return null
  const [other] = await queries
    .select({ organization_id: chips.organization_id })
    .from(chips)
    .where(and(eq(chips.uid, uid), ne(chips.chip_id, chip.chip_id)))
  return other?.organization_id ?? null
}

/** Returns the key versions that the tag may have: the last one seen in a tap, then that of each later order. */
export async function versionsOnTag(
  queries: Queries,
  { chip_id, key_version, next_key_version }: Pick<StoredTag, "chip_id" | "key_version" | "next_key_version">,
): Promise<number[]> {
  if (next_key_version === null) return [key_version]
  if (next_key_version === key_version + 1) return [key_version, next_key_version]
  const ordered = await queries
    .selectDistinct({ version: manifests.key_version })
    .from(manifestChips)
    .innerJoin(manifests, eq(manifests.id, manifestChips.manifest_id))
    .where(
      and(
        eq(manifestChips.chip_id, chip_id),
        gt(manifests.key_version, key_version),
        lt(manifests.key_version, next_key_version),
      ),
    )
    .orderBy(asc(manifests.key_version))
  return [key_version, ...ordered.map(({ version }) => version), next_key_version]
}

/** Returns the chip with its keys unwrapped or derived. Throws `ChipKeysUnreadable`. */
export async function sunChipOf(queries: Queries, secret: Secret, chip: StoredTag): Promise<SunChip> {
  const uid = Buffer.from(chip.uid, "hex")
  return { uid, ...(await keysOf(queries, secret, chip, chip.key_version, uid)) }
}

/** Returns the last counter accepted with the keys of the proof; 0 if the keys are new to the chip. */
export function lastCounter(chip: { key_version: number; counter: number }, proof: SunProof): number {
  return proof.key_version === chip.key_version ? chip.counter : 0
}

/** Returns the condition for updating `chips`, which only one of several messages with the same counter meets. */
export function isAhead({ key_version, counter }: SunProof): SQL | undefined {
  return or(
    and(eq(chips.key_version, key_version), lt(chips.counter, counter)),
    isOrderedWith(sql`${key_version}`),
  )
}

/** Returns the condition that no tap has shown this version yet, but an order may have put it on the tag. */
export function isOrderedWith(version: SQL): SQL | undefined {
  return and(lt(chips.key_version, version), gte(chips.next_key_version, version))
}

/** Returns the columns of the chip's row that an accepted message changes. */
export function provenColumns({ counter, key_version, uid, tamper }: SunProof) {
  return {
    counter,
    key_version,
    next_key_version: stillAwaited(sql`${key_version}`),
    uid,
    tamper: stillOpened(sql`${tamper}`),
  }
}

/** Returns the version that is still awaited after a message with this one. */
export function stillAwaited(version: SQL): SQL<number | null> {
  return sql`case when ${chips.next_key_version} = ${version} then null else ${chips.next_key_version} end`
}

/** Returns the new status, which never overwrites `opened` from another message. */
export function stillOpened(tamper: SQL): SQL<TamperStatus | null> {
  return sql`case when ${chips.tamper} = 'opened' then 'opened' else ${tamper} end`
}

/** Returns whether this message is the first to say that the chip was opened. */
export function isOpening(chip: Pick<ChipRow, "tamper">, proof: SunProof): boolean {
  return proof.tamper === "opened" && chip.tamper !== "opened"
}

/** Returns a unique placeholder for the UID of a chip that was ordered before its tag was seen. */
export function unreadUid(chipId: string): string {
  return `${UNREAD}${chipId}`
}

/** Returns a unique form of a UID that a chip of another organization already has: the column is unique. */
function sharedUid(chipId: string, uid: string): string {
  return `${unreadUid(chipId)}:${uid}`
}

function isShared({ chip_id, uid }: Pick<StoredTag, "chip_id" | "uid">): boolean {
  return uid.startsWith(sharedUid(chip_id, ""))
}

/** Returns the UID, 14 hexadecimal digits, or null if no read has shown it yet. */
export function knownUid({ uid }: { uid: string }): string | null {
  if (!uid.startsWith(UNREAD)) return uid
  const [_chipId, shared = null] = uid.slice(UNREAD.length).split(":")
  return shared
}

const UNREAD = "unread:"

async function tagOf(
  queries: Queries,
  secret: Secret,
  chip: StoredTag,
  version: number,
  message: SunMessage,
): Promise<SunChip | null> {
  const stored = knownUid(chip)
  const uid = stored === null ? null : Buffer.from(stored, "hex")
  const keys = await keysOf(queries, secret, chip, version, uid)
  if (uid) return { uid, ...keys }
  if (chip.has_mac && message.c === undefined) return null
  const picc = decryptPicc(keys.metaKey, message.e)
  const isNew = picc?.uid[0] === NXP && picc.counter < MANY_READS
  return picc && (message.c !== undefined || isNew) ? { uid: picc.uid, ...keys } : null
}

async function keysOf(
  queries: Queries,
  secret: Secret,
  chip: StoredTag,
  version: number,
  uid: Uint8Array | null,
): Promise<ChipKeys> {
  if (chip.key_set_id === null) return unwrapChipKeys(secret, chip.chip_id, chip.wrapped_keys)
  const source = await keySourceFor(queries, secret, chip.key_set_id, version)
  return chipKeysFrom(source, { chip_id: chip.chip_id, uid })
}

/** Returns the status after a message: opened is final, and a tap without `enc` changes nothing. */
function tamperAfter(
  chip: StoredTag,
  tag: SunChip,
  counter: number,
  { enc }: SunMessage,
): TamperStatus | null {
  if (enc === undefined || chip.tamper === null || chip.tamper === "opened") return chip.tamper
  return tamperOf(decryptFileContent(tag, counter, enc))
}
