import type { KeyCandidate } from "./key-search.ts"

/** The chip that an address names, as it was ordered. */
export type ExpectedTag = {
  chip_id: string
  /** Null before a scan has told it. */
  uid: Uint8Array | null
  /** The last read counter that was accepted. */
  counter: number
  /** Whether it was ordered with a MAC. */
  has_mac: boolean
  mac_input: string
  /** Whether the file content in `enc` begins with what its wire says. */
  has_tamper: boolean
  keys: KeyCandidate
  /** The version of the keys that it was ordered anew with, until a tap has shown them. */
  awaited_version: number | null
}

/** An address that a phone opened, what GetFileSettings answered where somebody asked, and what it is held against. */
export type TapQuestion = {
  url: string
  file_settings: Uint8Array | null
  expected: ExpectedTag | null
  candidates: readonly KeyCandidate[]
}

/** What `e` opened to. */
export type Opening = { uid: Uint8Array; counter: number }
