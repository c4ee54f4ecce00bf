import {
  type Access,
  decodeFileSettings,
  decodeSettingsAnswer,
  type FileSettings,
  lockedSettings,
} from "../encoding/file-settings.ts"
import { filePlaces, NDEF_FILE_BYTES } from "../encoding/ndef.ts"
import { ENC_DIGITS } from "../encoding/tag-address.ts"
import { coveredText, type SunMessage } from "../message.ts"
import type { ExpectedTag } from "./question.ts"
import { placesIn, type TagUrl } from "./tag-url.ts"
import type { Judgement } from "./verdicts.ts"

/** Compares the response to GetFileSettings with what was ordered and with the URL that was read. */
export function judgeSettings(
  answer: Uint8Array,
  expected: ExpectedTag,
  url: TagUrl,
  message: SunMessage,
): Judgement {
  const settings = decodeSettingsAnswer(answer)
  if (!settings || sizeIn(answer) !== NDEF_FILE_BYTES)
    return { verdict: "not_file_settings", detail: whatElse(answer, settings) }
  if (!settings.sdm) return { verdict: "mirroring_off", detail: "SDM is off (FileOption bit 6)" }
  const open = openRights(settings)
  if (open) return { verdict: "file_writable", detail: `anyone may ${open} the file` }
  const wanted = isOrdered(expected)
    ? orderedSettings(settings, expected, url, message)
    : usableSettings(settings, expected, message)
  const told = new Map(factsOf(settings))
  const differences = factsOf(wanted).filter(([name, fact]) => told.get(name) !== fact)
  if (differences.length === 0)
    return { verdict: null, detail: "the file is locked, and mirrors the right values" }
  return {
    verdict: "settings_differ",
    detail: differences.map(([name, fact]) => `${name} is ${told.get(name)}, not ${fact}`).join("; "),
  }
}

/** Returns the settings of the manifest; the URL that was read shows where its values are in the file. */
function orderedSettings(
  settings: FileSettings,
  expected: ExpectedTag,
  url: TagUrl,
  message: SunMessage,
): FileSettings {
  const address = placesIn(url)
  const places = address ? filePlaces(address) : { e: 0, enc: null, c: expected.has_mac ? 0 : null }
  const ordered = lockedSettings(expected.keys.roles, places)
  return address ? ordered : { ...ordered, offsets: agreeingOffsets(settings, expected, message) }
}

/** Returns the settings that the URL of a tag encoded elsewhere needs; who may change that tag is unknown. */
function usableSettings(settings: FileSettings, expected: ExpectedTag, message: SunMessage): FileSettings {
  return {
    ...settings,
    access: { ...settings.access, read: "free" },
    uid: true,
    counter: true,
    counter_limit: false,
    ascii: true,
    offsets: agreeingOffsets(settings, expected, message),
  }
}

/** Returns the tag's own offsets, with those that follow from another one corrected. */
function agreeingOffsets(
  { offsets }: FileSettings,
  { has_tamper, mac_input }: ExpectedTag,
  message: SunMessage,
): FileSettings["offsets"] {
  const { enc, mac } = offsets
  return {
    ...offsets,
    tamper: has_tamper ? enc : offsets.tamper,
    mac_input: mac === null ? offsets.mac_input : mac - coveredText(mac_input, message).length,
    enc_length: enc === null ? offsets.enc_length : ENC_DIGITS,
  }
}

function isOrdered({ keys }: ExpectedTag): boolean {
  return keys.key_set_id !== null
}

function openRights({ access }: FileSettings): string | null {
  if (access.write === "free" || access.read_write === "free") return "write"
  return access.change === "free" ? "change the settings of" : null
}

/** Says what was given instead of the response to GetFileSettings for file 02h. */
function whatElse(answer: Uint8Array, settings: FileSettings | null): string {
  if (settings)
    return `these are the settings of a file of ${sizeIn(answer)} bytes; file 02h has ${NDEF_FILE_BYTES}`
  if (decodeFileSettings(answer)?.sdm)
    return "this is the payload of ChangeFileSettings (file_settings_hex), not the response to GetFileSettings"
  return "this is not the response to GetFileSettings for file 02h"
}

function sizeIn(answer: Uint8Array): number {
  return Buffer.from(answer).readUIntLE(4, 3)
}

/** Returns the settings under their names in the data sheet (table 69). */
function factsOf(settings: FileSettings): [string, string][] {
  const { access, offsets, communication } = settings
  return [
    ["the communication mode", communication],
    ["Read access", accessText(access.read)],
    ["Write access", accessText(access.write)],
    ["ReadWrite access", accessText(access.read_write)],
    ["Change access", accessText(access.change)],
    ["the UID mirror (SDMOptions bit 7)", onOff(settings.uid)],
    ["the SDMReadCtr mirror (SDMOptions bit 6)", onOff(settings.counter)],
    ["SDMReadCtrLimit (SDMOptions bit 5)", onOff(settings.counter_limit)],
    ["ASCII encoding (SDMOptions bit 0)", onOff(settings.ascii)],
    ["SDMMetaRead", accessText(settings.meta_read)],
    ["SDMFileRead", accessText(settings.file_read)],
    ["SDMCtrRet", accessText(settings.counter_read)],
    ["PICCDataOffset", placeText(offsets.picc_data)],
    ["TTStatusOffset", placeText(offsets.tamper)],
    ["SDMMACInputOffset", placeText(offsets.mac_input)],
    ["SDMENCOffset", placeText(offsets.enc)],
    ["SDMENCLength", placeText(offsets.enc_length)],
    ["SDMMACOffset", placeText(offsets.mac)],
  ]
}

function accessText(access: Access): string {
  return typeof access === "number" ? `key ${access}` : access
}

function onOff(isOn: boolean): string {
  return isOn ? "on" : "off"
}

function placeText(place: number | null): string {
  return place === null ? "absent" : String(place)
}
