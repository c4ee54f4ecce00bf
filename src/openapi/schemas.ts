import type { TSchema } from "@sinclair/typebox"
import { chipReplacementResource, createChipReplacementBody } from "../chip-replacements/model.ts"
import {
  chipListItem,
  chipResource,
  pairChipBody,
  pairChipsInBulkBody,
  pairedChipResource,
} from "../chips/model.ts"
import { claimResource, createClaimBody } from "../claims/model.ts"
import {
  collectionResource,
  contract,
  createCollectionBody,
  updateCollectionBody,
} from "../collections/model.ts"
import { id, instant, name as nameField, redirectUrl } from "../fields.ts"
import { Flag, Pagination } from "../http/list.ts"
import { failure, transactionPayload } from "../ownership-fields.ts"
import { publishableKeyResource } from "../publishable-keys/model.ts"
import { currentSessionToken, issuedSessionToken } from "../session-tokens/model.ts"
import {
  corsOriginsResource,
  replaceCorsOriginsBody,
  settingsResource,
  updateSettingsBody,
} from "../settings/model.ts"
import { createTapBody, createTestTapBody, tapRecord, tapResponse, testTapResponse } from "../taps/model.ts"
import { createTransferBody, transferResource } from "../transfers/model.ts"
import { createUnitBody, unitListItem, unitResource, unitSnapshot, updateUnitBody } from "../units/model.ts"
import { describedFields } from "./described-fields.ts"

/** JSON Schema 2020-12, as OpenAPI 3.1 takes it. */
export type JsonSchema = { [keyword: string]: unknown }

/** What the outside sees of a schema: `$ref` where it has a name, else its own keywords, described by its field. */
export function documentedSchema(schema: TSchema): JsonSchema {
  const name = names.get(schema)
  return name ? { $ref: `#/components/schemas/${name}` } : inlined(schema)
}

/** The schemas that have a name. */
export function documentedComponents(): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(named).map(([name, schema]) => [name, variants[name]?.() ?? inlined(schema, name)]),
  )
}

const membership: TSchema = unitSnapshot.properties.collection.anyOf[0]

const named: Record<string, TSchema> = {
  Chip: chipResource,
  PairedChip: pairedChipResource,
  ListedChip: chipListItem,
  ChipReplacement: chipReplacementResource,
  Claim: claimResource,
  Collection: collectionResource,
  CollectionMembership: membership,
  Contract: contract,
  CorsOrigins: corsOriginsResource,
  CreateChipReplacement: createChipReplacementBody,
  CreateClaim: createClaimBody,
  CreateCollection: createCollectionBody,
  CreateTap: createTapBody,
  CreateTestTap: createTestTapBody,
  CreateTransfer: createTransferBody,
  CreateUnit: createUnitBody,
  Failure: failure,
  PairChip: pairChipBody,
  PairChipsInBulk: pairChipsInBulkBody,
  Pagination,
  PublishableKey: publishableKeyResource,
  CurrentSessionToken: currentSessionToken,
  IssuedSessionToken: issuedSessionToken,
  ReplaceCorsOrigins: replaceCorsOriginsBody,
  Settings: settingsResource,
  Tap: tapResponse,
  TapRecord: tapRecord,
  TestTap: testTapResponse,
  Token: membership.properties.token,
  Transaction: transactionPayload,
  Transfer: transferResource,
  Unit: unitResource,
  ListedUnit: unitListItem,
  UnitSnapshot: unitSnapshot,
  UpdateCollection: updateCollectionBody,
  UpdateSettings: updateSettingsBody,
  UpdateUnit: updateUnitBody,
}

const names = new Map(Object.entries(named).map(([name, schema]) => [schema, name]))

/** Checked by one closed object and told apart afterwards, so that a refusal names the field; shown as two. */
const variants: Record<string, () => JsonSchema> = {
  PairChip: () => testOrEncoded({ unit_id: id }, pairChipBody),
  CreateChipReplacement: () => testOrEncoded({}, createChipReplacementBody),
}

function testOrEncoded(shared: Record<string, TSchema>, body: TSchema): JsonSchema {
  const { chip_id, e, c } = properties(body.properties)
  const both = properties(shared)
  const needed = Object.keys(shared)
  const variant = (title: string, own: JsonSchema, required: string[]) => ({
    title,
    type: "object",
    additionalProperties: false,
    properties: { ...both, ...own },
    required: [...needed, ...required],
  })
  const isTest = (value: boolean) => ({ type: "boolean", const: value, description: describedFields.is_test })
  return {
    oneOf: [
      variant("Test chip", { is_test: isTest(true) }, ["is_test"]),
      variant("Encoded chip", { chip_id, e, c, is_test: isTest(false) }, ["chip_id", "e"]),
    ],
  }
}

const formats = new Map<unknown, string>([
  [id.pattern, "uuid"],
  [instant.pattern, "date-time"],
])

function inlined(schema: TSchema, name?: string): JsonSchema {
  if (schema === Flag) return { type: "boolean" }
  if (schema.anyOf) return union(schema.anyOf)
  if (schema.patternProperties) return { type: "object", additionalProperties: true }
  const shown: JsonSchema = Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => !keyword.startsWith("x-")),
  )
  if (schema === redirectUrl) shown.format = "uri"
  // Half a surrogate pair cannot be written in JSON that is UTF-8, nor in most other regular expressions.
  if (schema.pattern === nameField.pattern) shown.pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
  const format = formats.get(schema.pattern)
  if (format) shown.format = format
  if (schema.items) shown.items = documentedSchema(schema.items)
  if (schema.properties) shown.properties = properties(schema.properties, name)
  return shown
}

/** Literals become an enumeration, and null one of the types where the other variant has just one. */
function union(all: TSchema[]): JsonSchema {
  if (all.every((variant) => variant.const !== undefined))
    return { type: "string", enum: all.map((variant) => variant.const) }
  const [only, ...others] = all.filter((variant) => variant.type !== "null").map(documentedSchema)
  if (only && others.length === 0 && typeof only.type === "string")
    return { ...only, type: [only.type, "null"] }
  return { anyOf: [only, ...others, { type: "null" }] }
}

function properties(fields: Record<string, TSchema>, owner?: string): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, schema]) => {
      const description = describedFields[`${owner}.${field}`] ?? describedFields[field]
      return [field, { ...documentedSchema(schema), ...(description && { description }) }]
    }),
  )
}
