import type { Static } from "@sinclair/typebox"
import type { ChipReplacementResource, CreateChipReplacementBody } from "../chip-replacements/model.ts"
import type {
  ChipListItem,
  ChipResource,
  PairChipBody,
  PairChipsInBulkBody,
  pairedChipResource,
} from "../chips/model.ts"
import type { ClaimResource, CreateClaimBody } from "../claims/model.ts"
import type { CollectionResource, CreateCollectionBody, UpdateCollectionBody } from "../collections/model.ts"
import type { publishableKeyResource } from "../publishable-keys/model.ts"
import type { currentSessionToken } from "../session-tokens/model.ts"
import type {
  corsOriginsResource,
  ReplaceCorsOriginsBody,
  settingsResource,
  UpdateSettingsBody,
} from "../settings/model.ts"
import type { CreateTapBody, CreateTestTapBody, TestTap, tapRecord, tapResponse } from "../taps/model.ts"
import type { CreateTransferBody, TransferResource } from "../transfers/model.ts"
import type {
  CreateUnitBody,
  UnitListItem,
  UnitResource,
  UnitSnapshot,
  UpdateUnitBody,
} from "../units/model.ts"

// One story for every example: a jacket of the autumn collection, its chip, and the person who bought it.

const collectionId = "0199c2f4-6a10-7c3e-9d52-8f4b1e7a2c01"
const unitId = "0199c2f6-1b84-7f0a-8e6d-2a9c5d3b7e02"
const chipId = "04A1B2C3D4"
const e = "5E0A9B3C7D1F2E4A6B8C0D9E1F3A5B7C"
const buyer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const friend = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
const contractAddress = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
const onePage = { limit: 50, has_more: false, next_cursor: null }

export const createCollection: CreateCollectionBody = {
  name: "Autumn Jackets",
  symbol: "AJ",
  external_id: "autumn-2026",
  redirect_url: "https://shop.example/jackets",
}

export const collection: CollectionResource = {
  id: collectionId,
  contract: { address: contractAddress, chain_id: 8453, status: "deploying" },
  name: "Autumn Jackets",
  external_id: "autumn-2026",
  redirect_url: "https://shop.example/jackets",
  symbol: "AJ",
  created_at: "2026-09-01T08:00:00.000Z",
}

export const activeCollection: CollectionResource = {
  ...collection,
  contract: { ...collection.contract, status: "active" },
}

export const listedCollections = { collections: [activeCollection], pagination: onePage }

export const updateCollection: UpdateCollectionBody = { redirect_url: null }

export const updatedCollection: CollectionResource = { ...activeCollection, redirect_url: null }

export const createUnit: CreateUnitBody = {
  collection_id: collectionId,
  external_id: "jacket-0001",
  name: "Jacket 1",
  attributes: { size: "M", colour: "moss" },
}

const snapshot: UnitSnapshot = {
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

const issuedSnapshot: UnitSnapshot = {
  ...snapshot,
  collection: snapshot.collection && { ...snapshot.collection, token: { status: "active", serial: 1 } },
}

export const unit: UnitResource = { ...snapshot, product_id: null, chip_id: null }

export const issuedUnit: UnitResource = { ...issuedSnapshot, product_id: null, chip_id: chipId }

const listedUnit: UnitListItem = {
  id: unitId,
  external_id: "jacket-0001",
  name: "Jacket 1",
  created_at: "2026-09-01T08:05:00.000Z",
}

export const listedUnits = { units: [listedUnit], pagination: onePage }

export const updateUnit: UpdateUnitBody = { redirect_url: "https://shop.example/jackets/1" }

export const updatedUnit: UnitResource = { ...issuedUnit, redirect_url: "https://shop.example/jackets/1" }

export const pairChip: PairChipBody = { unit_id: unitId, is_test: true }

export const pairedChip: Static<typeof pairedChipResource> = {
  chip_id: chipId,
  is_test: true,
  scan_count: 0,
  created_at: "2026-09-01T08:06:00.000Z",
  unit: snapshot,
}

export const pairChipsInBulk: PairChipsInBulkBody = { chips: [pairChip] }

export const pairedChips = { chips: [pairedChip] }

export const chip: ChipResource = { ...pairedChip, unit: issuedSnapshot }

const tappedChip: ChipResource = { ...chip, scan_count: 1 }

const listedChip: ChipListItem = { ...tappedChip, unit: { id: unitId, external_id: "jacket-0001" } }

export const listedChips = { chips: [listedChip], pagination: onePage }

export const createTestTap: CreateTestTapBody = { chip_id: chipId }

export const testTap: TestTap = { chip_id: chipId, e, count: 1 }

export const createTap: CreateTapBody = { chip_id: chipId, e }

const scope = {
  chip_id: chipId,
  unit_id: unitId,
  organization_id: "0199c2e0-0d3a-7b19-a4c8-6f1e9d2b5c03",
}

export const session: Static<typeof currentSessionToken> = { expires_at: "2026-09-12T17:40:00.000Z", scope }

export const tap: Static<typeof tapResponse> = {
  id: "0199fc1a-52d7-7e66-b0f1-c3a84d9e7b04",
  chip: tappedChip,
  unit: issuedUnit,
  redirect_url: "https://shop.example/jackets",
  session_token: { token: "end_sess_7Hq2LmX9vRtB4kYcZs1WnPd8JfG6Ua3Eo5TgKxN", ...session },
}

export const dryRunTap: CreateTapBody = { chip_id: chipId, e, dry_run: true }

export const dryTap: Static<typeof tapResponse> = { ...tap, id: null, chip, session_token: null }

const tapOfHistory: Static<typeof tapRecord> = {
  id: "0199fc1a-52d7-7e66-b0f1-c3a84d9e7b04",
  chip_id: chipId,
  unit_id: unitId,
  is_test: true,
  counter: 1,
  skipped: 0,
  created_at: "2026-09-12T17:30:00.000Z",
}

export const listedTaps = { taps: [tapOfHistory], pagination: onePage }

export const createClaim: CreateClaimBody = { recipient: buyer, execution: "service_relay" }

export const claim: ClaimResource = {
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

export const settledClaim: ClaimResource = {
  ...claim,
  status: "claimed",
  transaction_hash: "0x8f3cf7ad23cd3cadbd9735aff958023239c6a0638f8c0a4e0a3c9c1c2d2f7b6e",
  updated_at: "2026-09-12T17:31:09.000Z",
}

export const createTransfer: CreateTransferBody = { recipient: friend }

export const transfer: TransferResource = {
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

export const settledTransfer: TransferResource = {
  ...transfer,
  status: "confirmed",
  transaction_hash: "0x1b6f0d6a54e7e07f7a9c3e0e5a7d4c9b8f2e6d1a3c5b7e9f0a2c4d6e8f1b3a5c",
  updated_at: "2026-09-13T10:02:00.000Z",
}

export const createChipReplacement: CreateChipReplacementBody = { is_test: true }

export const chipReplacement: ChipReplacementResource = {
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

export const settledChipReplacement: ChipReplacementResource = {
  ...chipReplacement,
  status: "confirmed",
  transaction_hash: "0x4c1d8e2f6a9b3c7d5e0f1a2b4c6d8e9f7a5b3c1d0e2f4a6b8c9d7e5f3a1b2c4d",
  updated_at: "2026-09-02T09:00:12.000Z",
}

const publishableKey: Static<typeof publishableKeyResource> = {
  id: "0199c2e1-44b0-7c95-8d3e-1f6a7b9c2d08",
  key: "end_pk_live_3vQmZ8tKxW1pNfRbYcLsDhGj7A",
  mode: "live",
  name: "Default",
  created_at: "2026-09-01T07:00:00.000Z",
}

export const listedPublishableKeys = { publishable_keys: [publishableKey], pagination: onePage }

export const settings: Static<typeof settingsResource> = {
  default_redirect_url: null,
  default_chain_id: 8453,
  allowed_chain_ids: [8453],
}

export const updateSettings: UpdateSettingsBody = { default_redirect_url: "https://shop.example/taps" }

export const updatedSettings: Static<typeof settingsResource> = {
  ...settings,
  default_redirect_url: "https://shop.example/taps",
}

export const replaceCorsOrigins: ReplaceCorsOriginsBody = {
  cors_origins: ["https://Shop.example/", "https://*.brand.test", "http://localhost:*"],
}

export const corsOrigins: Static<typeof corsOriginsResource> = {
  cors_origins: ["https://shop.example", "https://*.brand.test", "http://localhost:*"],
}

export const welcome = {
  service: "service-api",
  docs: "https://api.brand.test/docs",
  api_versions: ["v1"],
  health: "/health",
} as const

export const health = {
  status: "ok",
  service: "service-api",
  api_base_url: "https://api.brand.test",
  request_id: "req_3f2b8c1e-9d4a-4e6b-8a7c-5d1f0e2b3c4d",
  timestamp: "2026-09-12T17:30:00.000Z",
} as const
