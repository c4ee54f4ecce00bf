import type { KeyCandidate } from "./key-search.ts"

/** The chip that a URL names, as it was ordered. */
export type ExpectedTag = {
  chip_id: string
  /** Null before a scan has revealed it. */
  uid: Uint8Array | null
  /** The last read counter that was accepted. */
  counter: number
  /** Whether it was ordered with a MAC. */
  has_mac: boolean
  mac_input: string
  /** Whether the file content in `enc` begins with the wire status. */
  has_tamper: boolean
  keys: KeyCandidate
  /** The version of the keys that it was re-ordered with, until a tap has shown them. */
  awaited_version: number | null
}

/** A URL that a phone opened, the response to GetFileSettings if known, and what they are checked against. */
export type TapQuestion = {
  url: string
  file_settings: Uint8Array | null
  expected: ExpectedTag | null
  candidates: readonly KeyCandidate[]
}

/** What `e` decrypts to. */
export type Opening = { uid: Uint8Array; counter: number }
