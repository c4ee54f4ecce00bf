import { verdictAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import { eventExamplesOf } from "./event-examples.ts"

/** A request and its response; `also` is an exchange that ends with the operation's other status. */
export type Example = {
  request?: unknown
  response?: unknown
  also?: { request: unknown; response: unknown }
}

// One story for every example: a jacket of the autumn collection, its chip, and the person who bought it.

const collectionId = "0199c2f4-6a10-7c3e-9d52-8f4b1e7a2c01"
const unitId = "0199c2f6-1b84-7f0a-8e6d-2a9c5d3b7e02"
const chipId = "04A1B2C3D4"
const e = "5E0A9B3C7D1F2E4A6B8C0D9E1F3A5B7C"
// Wallets that a development service has: what is handed to them can be handed on.
const buyer = "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65"
const friend = "0x976EA74026E726554dB657fA54763abd0C3a0aa9"
const contractAddress = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
const onePage = { limit: 50, has_more: false, next_cursor: null }

const createCollection = {
  name: "Autumn Jackets",
  symbol: "AJ",
  external_id: "autumn-2026",
  redirect_url: "https://shop.example/jackets",
  description: "Jackets of the autumn of 2026, made in Porto.",
  image_url: "https://shop.example/pictures/autumn.png",
}

const collection = {
  id: collectionId,
  contract: { address: contractAddress, chain_id: 8453, status: "deploying" },
  name: "Autumn Jackets",
  external_id: "autumn-2026",
  redirect_url: "https://shop.example/jackets",
  symbol: "AJ",
  description: "Jackets of the autumn of 2026, made in Porto.",
  image_url: "https://shop.example/pictures/autumn.png",
  failure: null,
  created_at: "2026-09-01T08:00:00.000Z",
}

const activeCollection = {
  ...collection,
  contract: { ...collection.contract, status: "active" },
}

const listedCollections = { collections: [activeCollection], pagination: onePage }

const updateCollection = { redirect_url: null }

const updatedCollection = { ...activeCollection, redirect_url: null }

const metadataRefresh = {
  id: "0199c30a-7d42-7c86-9b15-3e8f2a6d4c13",
  collection_id: collectionId,
  status: "prepared",
  transaction_hash: null,
  failure: null,
  created_at: "2026-09-03T10:00:00.000Z",
  updated_at: "2026-09-03T10:00:00.000Z",
}

const confirmedMetadataRefresh = {
  ...metadataRefresh,
  status: "confirmed",
  transaction_hash: "0x7a2b9c4d1e6f8a3b5c7d9e0f2a4b6c8d1e3f5a7b9c0d2e4f6a8b1c3d5e7f9a0b",
  updated_at: "2026-09-03T10:00:08.000Z",
}

const createUnit = {
  collection_id: collectionId,
  external_id: "jacket-0001",
  name: "Jacket 1",
  attributes: { size: "M", colour: "moss" },
  description: "A jacket of waxed cotton.",
  image_url: "https://shop.example/pictures/jacket-0001.png",
  metadata: { Colour: "Moss", "Made in": 2026 },
}

const snapshot = {
  id: unitId,
  external_id: "jacket-0001",
  name: "Jacket 1",
  attributes: { size: "M", colour: "moss" },
  created_at: "2026-09-01T08:05:00.000Z",
  redirect_url: null,
  collection: {
    id: collectionId,
    name: "Autumn Jackets",
    external_id: "autumn-2026",
    contract: activeCollection.contract,
    token: { status: "pending", serial: null },
  },
}

const issuedSnapshot = {
  ...snapshot,
  collection: { ...snapshot.collection, token: { status: "active", serial: 1 } },
}

const beyondSnapshot = {
  product_id: null,
  chip_id: null,
  description: "A jacket of waxed cotton.",
  image_url: "https://shop.example/pictures/jacket-0001.png",
  metadata: { Colour: "Moss", "Made in": 2026 },
  ownership: { status: "unissued", owner: null, updated_at: null },
}

const unit = { ...snapshot, ...beyondSnapshot }

const issuedUnit = {
  ...issuedSnapshot,
  ...beyondSnapshot,
  chip_id: chipId,
  ownership: { status: "custody", owner: null, updated_at: "2026-09-01T08:06:20.000Z" },
}

const claimedUnit = {
  ...issuedUnit,
  ownership: { status: "owned", owner: buyer, updated_at: "2026-09-12T17:31:09.000Z" },
}

const listedUnit = {
  id: unitId,
  external_id: "jacket-0001",
  name: "Jacket 1",
  created_at: "2026-09-01T08:05:00.000Z",
}

const listedUnits = { units: [listedUnit], pagination: onePage }

const updateUnit = { redirect_url: "https://shop.example/jackets/1" }

const updatedUnit = { ...issuedUnit, redirect_url: "https://shop.example/jackets/1" }

const pairChip = { unit_id: unitId, is_test: true }

const pairedChip = {
  chip_id: chipId,
  is_test: true,
  scan_count: 0,
  tamper: null,
  retired_at: null,
  created_at: "2026-09-01T08:06:00.000Z",
  unit: snapshot,
}

const pairChipsInBulk = { chips: [pairChip] }

const pairedChips = { chips: [pairedChip] }

const chip = { ...pairedChip, unit: issuedSnapshot }

const tappedChip = { ...chip, scan_count: 1 }

const signals = { skipped_count: 0, refused_count: 0, last_refused_at: null }

const listedChip = { ...tappedChip, ...signals, unit: { id: unitId, external_id: "jacket-0001" } }

const listedChips = { chips: [listedChip], pagination: onePage }

const createTapDiagnosis = { url: `https://tap.example/t/${chipId}?e=${e.slice(2)}` }

const tapDiagnosis = {
  chip_id: chipId,
  verdict: "truncated_mirror",
  checks: [
    { name: "address", passed: true, detail: `the URL of chip ${chipId}` },
    { name: "template", passed: false, detail: "e has 30 digits instead of 32" },
  ],
  advice: verdictAdvice.truncated_mirror,
}

const createTestTap = { chip_id: chipId }

const testTap = { chip_id: chipId, e, count: 1 }

const createTap = { chip_id: chipId, e }

const scope = {
  chip_id: chipId,
  unit_id: unitId,
  organization_id: "0199c2e0-0d3a-7b19-a4c8-6f1e9d2b5c03",
}

const session = { expires_at: "2026-09-12T17:40:00.000Z", scope }

const tap = {
  id: "0199fc1a-52d7-7e66-b0f1-c3a84d9e7b04",
  chip: tappedChip,
  unit: issuedUnit,
  redirect_url: "https://shop.example/jackets",
  session_token: { token: "end_sess_7Hq2LmX9vRtB4kYcZs1WnPd8JfG6Ua3Eo5TgKxN", ...session },
  receipt: null,
}

/** A real one: it verifies with `receiptKey`, and is about the chip of this story. */
const receipt =
  "eyJhbGciOiJFUzI1NiIsImtpZCI6Ilduckx5VmM2eXRBYWN1NFl1aXd5U09VaHhVajBIemtRSUhFcnQyX0VMd0EiLCJ0eXAiOiJ0YXAtcmVjZWlwdCtqd3QifQ.eyJpc3MiOiJodHRwczovL2FwaS5leGFtcGxlLmNvbSIsImp0aSI6IjAxOTlmYzFhLTUyZDctN2U2Ni1iMGYxLWMzYTg0ZDllN2IwNCIsImlhdCI6MTc4OTIzNDIwMCwiY2hhaW5faWQiOjg0NTMsImNvbnRyYWN0IjoiMHg1RmJEQjIzMTU2NzhhZmVjYjM2N2YwMzJkOTNGNjQyZjY0MTgwYWEzIiwic2VyaWFsIjoxLCJjb3VudGVyIjoxLCJpc190ZXN0Ijp0cnVlLCJjaGlwX3NhbHQiOiJWdEoxbTRjMHc5WGgydVFrN3lCelJBIiwiY2hpcF9kaWdlc3QiOiJNOGQ3VTRHVmNCRmt4eEJTVXVDTWU3RkxtenB6UVRtUHItSWRBNUpHNXFvIn0.NnraxrVg8mrWoEFMEnCoeXtehErC3YADl3LhDVgwW8id7QCMw4TZKHEXUph1rI0odokiRsm6fPVt7zYHzC-TUQ"

const receiptKey = {
  kty: "EC",
  crv: "P-256",
  x: "NacCeBURPOVyC8PDxOp8zO0NnU8l0bwYwM9QcqS34iQ",
  y: "pjySpOglTf67Es1ZAnXXHUFsIhZ9-pDLXwIs_GwQxeQ",
  kid: "WnrLyVc6ytAacu4YuiwySOUhxUj0HzkQIHErt2_ELwA",
  alg: "ES256",
  use: "sig",
}

const dryRunTap = { chip_id: chipId, e, dry_run: true }

const dryTap = { ...tap, id: null, chip, session_token: null }

const tapOfHistory = {
  id: "0199fc1a-52d7-7e66-b0f1-c3a84d9e7b04",
  chip_id: chipId,
  unit_id: unitId,
  is_test: true,
  counter: 1,
  skipped: 0,
  created_at: "2026-09-12T17:30:00.000Z",
}

const listedTaps = { taps: [tapOfHistory], pagination: onePage }

const createClaim = { recipient: buyer, execution: "service_relay" }

const claim = {
  id: "0199fc1b-0e6c-7a41-9f27-d85b3c6e1a05",
  unit_id: unitId,
  status: "claiming",
  execution: "service_relay",
  recipient: buyer,
  customer_id: null,
  transaction: null,
  transaction_hash: null,
  failure: null,
  expires_at: null,
  created_at: "2026-09-12T17:31:00.000Z",
  updated_at: "2026-09-12T17:31:00.000Z",
}

const settledClaim = {
  ...claim,
  status: "claimed",
  transaction_hash: "0x8f3cf7ad23cd3cadbd9735aff958023239c6a0638f8c0a4e0a3c9c1c2d2f7b6e",
  updated_at: "2026-09-12T17:31:09.000Z",
}

const createTransfer = { recipient: friend }

const transfer = {
  id: "0199fd40-7b21-7d0c-8a53-4e9f6c1b2d06",
  unit_id: unitId,
  status: "prepared",
  sender: buyer,
  recipient: friend,
  customer_id: null,
  transaction: { chain_id: 8453, from: buyer, to: contractAddress, data: "0xa0b1c2d3", value: "0x0" },
  transaction_hash: null,
  failure: null,
  expires_at: "2026-09-13T10:30:00.000Z",
  created_at: "2026-09-13T10:00:00.000Z",
  updated_at: "2026-09-13T10:00:00.000Z",
}

const settledTransfer = {
  ...transfer,
  status: "confirmed",
  transaction_hash: "0x1b6f0d6a54e7e07f7a9c3e0e5a7d4c9b8f2e6d1a3c5b7e9f0a2c4d6e8f1b3a5c",
  updated_at: "2026-09-13T10:02:00.000Z",
}

const createChipReplacement = { is_test: true }

const chipReplacement = {
  id: "0199c2ff-91c5-7b38-a16e-7d2f4e8c3b07",
  unit_id: unitId,
  status: "prepared",
  previous_chip_id: chipId,
  chip_id: "04E5F60718",
  transaction_hash: null,
  failure: null,
  created_at: "2026-09-02T09:00:00.000Z",
  updated_at: "2026-09-02T09:00:00.000Z",
}

const settledChipReplacement = {
  ...chipReplacement,
  status: "confirmed",
  transaction_hash: "0x4c1d8e2f6a9b3c7d5e0f1a2b4c6d8e9f7a5b3c1d0e2f4a6b8c9d7e5f3a1b2c4d",
  updated_at: "2026-09-02T09:00:12.000Z",
}

const publishableKey = {
  id: "0199c2e1-44b0-7c95-8d3e-1f6a7b9c2d08",
  key: "end_pk_live_3vQmZ8tKxW1pNfRbYcLsDhGj7A",
  mode: "live",
  name: "Default",
  created_at: "2026-09-01T07:00:00.000Z",
}

const listedPublishableKeys = { publishable_keys: [publishableKey], pagination: onePage }

const settings = {
  default_redirect_url: null,
  default_chain_id: 8453,
  allowed_chain_ids: [8453],
}

const updateSettings = { default_redirect_url: "https://shop.example/taps" }

const updatedSettings = {
  ...settings,
  default_redirect_url: "https://shop.example/taps",
}

const replaceCorsOrigins = {
  cors_origins: ["https://shop.example", "https://*.brand.test", "http://localhost:*"],
}

const corsOrigins = {
  cors_origins: ["https://shop.example", "https://*.brand.test", "http://localhost:*"],
}

const welcome = {
  service: "service-api",
  docs: "https://api.brand.test/docs",
  api_versions: ["v1"],
  health: "/health",
} as const

const health = {
  status: "ok",
  service: "service-api",
  api_base_url: "https://api.brand.test",
  request_id: "req_3f2b8c1e-9d4a-4e6b-8a7c-5d1f0e2b3c4d",
  timestamp: "2026-09-12T17:30:00.000Z",
} as const

/** An example of every operation, by its name. */
export const examples = {
  getWelcome: { response: welcome },
  getHealth: { response: health },
  getOpenApiDocument: {
    response: { openapi: "3.1.1", info: { title: "Chip Verification and Ownership API" } },
  },
  createTap: {
    request: createTap,
    response: tap,
    also: { request: dryRunTap, response: dryTap },
  },
  listTaps: { response: listedTaps },
  getTapReceipt: { response: { receipt } },
  getReceiptKeys: { response: { keys: [receiptKey] } },
  createTapDiagnosis: { request: createTapDiagnosis, response: tapDiagnosis },
  createTestTap: { request: createTestTap, response: testTap },
  pairChip: { request: pairChip, response: pairedChip },
  pairChipsInBulk: { request: pairChipsInBulk, response: pairedChips },
  listChips: { response: listedChips },
  getChip: { response: { ...chip, ...signals } },
  createUnit: { request: createUnit, response: unit },
  listUnits: { response: listedUnits },
  getUnit: { response: claimedUnit },
  updateUnit: { request: updateUnit, response: updatedUnit },
  createCollection: { request: createCollection, response: collection },
  listCollections: { response: listedCollections },
  getCollection: { response: activeCollection },
  updateCollection: { request: updateCollection, response: updatedCollection },
  createMetadataRefresh: { request: {}, response: metadataRefresh },
  getMetadataRefresh: { response: confirmedMetadataRefresh },
  createClaim: { request: createClaim, response: claim },
  listClaims: { response: { claims: [settledClaim], pagination: onePage } },
  getClaim: { response: settledClaim },
  createTransfer: { request: createTransfer, response: transfer },
  listTransfers: { response: { transfers: [settledTransfer], pagination: onePage } },
  getTransfer: { response: settledTransfer },
  createChipReplacement: { request: createChipReplacement, response: chipReplacement },
  listChipReplacements: {
    response: { chip_replacements: [settledChipReplacement], pagination: onePage },
  },
  getChipReplacement: { response: settledChipReplacement },
  getCurrentSessionToken: { response: session },
  revokeCurrentSessionToken: {},
  listPublishableKeys: { response: listedPublishableKeys },
  getSettings: { response: settings },
  updateSettings: { request: updateSettings, response: updatedSettings },
  getCorsOrigins: { response: corsOrigins },
  replaceCorsOrigins: { request: replaceCorsOrigins, response: corsOrigins },
  ...eventExamplesOf({ unit_id: unitId, collection_id: collectionId, claim: settledClaim, page: onePage }),
} satisfies Record<string, Example>
