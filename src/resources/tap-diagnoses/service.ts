import { and, eq, inArray } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ChipRow, chips } from "../../db/schema.ts"
import { unwrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { type Diagnosis, diagnose, encodedTwice } from "../../engine/sun/diagnosis/diagnose.ts"
import type { KeyCandidate } from "../../engine/sun/diagnosis/key-search.ts"
import type { ExpectedTag } from "../../engine/sun/diagnosis/question.ts"
import { readTagUrl } from "../../engine/sun/diagnosis/tag-url.ts"
import { halfWayAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import { rolesOf } from "../../engine/sun/key-schemes.ts"
import type { Secret } from "../../platform/sealing.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import { keySourceFor, keySourcesOf, type NamedKeySource } from "../chips/key-sources.ts"
import { holderOfTag, knownUid, versionsOnTag } from "../chips/proof.ts"

/** A URL that a phone opened, and the response to GetFileSettings, if known. */
export type ScannedTag = { url: string; file_settings: Uint8Array | null }

/**
 * Returns a function that finds which check of a tap fails and why, with the organization's key sets and those that its
 * chips were moved with. Changes and counts nothing.
 */
export async function diagnoserOf(
  queries: Queries,
  secret: Secret,
  organizationId: string,
): Promise<(scanned: ScannedTag) => Promise<Diagnosis>> {
  const sources = await keySourcesOf(queries, secret, organizationId)
  const ownSets = sources.map((source) => ({ source, candidate: candidateOf(source) }))
  return async (scanned) => {
    const chip = await chipOf(queries, organizationId, readTagUrl(scanned.url)?.chip_ids ?? [])
    if (!chip)
      return diagnose({ ...scanned, expected: null, candidates: ownSets.map(({ candidate }) => candidate) })
    const sets = [...ownSets, ...(await setsBroughtBy(queries, secret, chip, ownSets))]
    const found = await diagnoseChip(queries, secret, chip, sets, scanned)
    const isTwin =
      found.uid !== null && (await holderOfTag(queries, chip, upperHex(found.uid))) === organizationId
    return isTwin ? encodedTwice(found) : found
  }
}

/** Diagnoses a tap with the keys of the chip's last tap, and with those ordered since. */
async function diagnoseChip(
  queries: Queries,
  secret: Secret,
  chip: ChipRow,
  sets: KnownSet[],
  scanned: ScannedTag,
): Promise<Diagnosis> {
  const candidates = sets.map(({ candidate }) => candidate)
  const expected = expectedOf(secret, chip, chip.key_version, sets)
  const found = diagnose({ ...scanned, expected, candidates })
  if (found.verdict !== "wrong_key_version") return found
  const versions = await versionsOnTag(queries, chip)
  const isOrdered = ({ opened_with }: Diagnosis) =>
    opened_with !== null && versions.includes(opened_with.version)
  if (!isOrdered(found)) return found
  // A chip that was encoded again is judged as a tap would be: its counter starts at zero.
  const version = found.opened_with?.version ?? null
  const next_key_version = version === chip.next_key_version ? null : chip.next_key_version
  const renewed = expectedOf(secret, { ...chip, counter: 0, next_key_version }, version, sets)
  const anew = diagnose({ ...scanned, expected: renewed, candidates })
  const isHalfWay = anew.verdict === "wrong_key_version" && isOrdered(anew)
  return isHalfWay ? { ...anew, advice: halfWayAdvice } : anew
}

type KnownSet = { source: NamedKeySource; candidate: KeyCandidate }

/** Returns the first of these chips that belongs to the organization. */
async function chipOf(
  queries: Queries,
  organizationId: string,
  chipIds: readonly string[],
): Promise<ChipRow | null> {
  if (chipIds.length === 0) return null
  const rows = await queries
    .select()
    .from(chips)
    .where(and(inArray(chips.chip_id, [...chipIds]), eq(chips.organization_id, organizationId)))
  const placeOf = ({ chip_id }: ChipRow) => chipIds.indexOf(chip_id)
  return rows.toSorted((one, other) => placeOf(one) - placeOf(other))[0] ?? null
}

/**
 * Returns, for a chip moved from another organization, the versions of that one's key set that the tag may have. Throws
 * `SealBroken` if they are lost, as a tap does.
 */
async function setsBroughtBy(
  queries: Queries,
  secret: Secret,
  chip: ChipRow,
  ownSets: KnownSet[],
): Promise<KnownSet[]> {
  const { key_set_id } = chip
  if (key_set_id === null) return []
  const isOwn = (version: number) =>
    ownSets.some(({ source }) => source.key_set_id === key_set_id && source.version === version)
  const others = (await versionsOnTag(queries, chip)).filter((version) => !isOwn(version))
  const sources = await Promise.all(
    others.map((version) => keySourceFor(queries, secret, key_set_id, version)),
  )
  return sources.map((source) => {
    const name = `the key set that the chip was moved here with, version ${source.version}`
    return { source, candidate: { ...candidateOf(source), name, key_set_name: null } }
  })
}

function expectedOf(
  secret: Secret,
  chip: ChipRow,
  version: number | null,
  sets: KnownSet[],
): ExpectedTag | null {
  const { chip_id, counter, has_mac, mac_input, tamper, key_set_id, next_key_version } = chip
  const uid = knownUid(chip)
  const keys = key_set_id
    ? sets.find(({ source }) => source.key_set_id === key_set_id && source.version === version)?.candidate
    : ownKeys(secret, chip)
  if (!keys) return null
  return {
    chip_id,
    uid: uid === null ? null : Buffer.from(uid, "hex"),
    counter,
    has_mac,
    mac_input,
    has_tamper: tamper !== null,
    keys,
    awaited_version: next_key_version,
  }
}

function candidateOf(source: NamedKeySource): KeyCandidate {
  const { key_set_id, name, version, roles, master, needs_uid } = source
  return {
    name: `key set ${name}, version ${version}`,
    key_set_name: name,
    key_set_id,
    version,
    roles,
    master,
    keyAt: (slot, tag) =>
      needs_uid && !tag.uid && slot !== roles.meta_read ? null : source.keyAt(slot, tag),
  }
}

/** Returns the two keys that a chip was imported with. Their slots are unknown, so the usual ones are assumed. */
function ownKeys(secret: Secret, { chip_id, wrapped_keys, key_version }: ChipRow): KeyCandidate {
  const { metaKey, fileKey } = unwrapChipKeys(secret, chip_id, wrapped_keys)
  const roles = rolesOf.explicit
  return {
    name: `the keys that chip ${chip_id} was imported with`,
    key_set_name: null,
    key_set_id: null,
    version: key_version,
    roles,
    master: null,
    keyAt: (slot) => (slot === roles.meta_read ? metaKey : slot === roles.file_read ? fileKey : null),
  }
}
