import { type Static, type TProperties, Type } from "@sinclair/typebox"
import { tamperStatuses } from "../../engine/sun/file-content.ts"
import {
  c,
  chipId,
  createdAt,
  described,
  e,
  enc,
  externalId,
  id,
  instant,
  isTest,
  nullable,
  oneOf,
  shown,
  unitId,
} from "../../platform/fields.ts"
import { unitSnapshot } from "../units/model.ts"

/**
 * Returns a schema for a test chip or an encoded one, with `shared` fields. One closed object validates both variants,
 * so that `checkPairing` can name the wrong field; the document shows two.
 */
export function testOrEncoded<Shared extends TProperties>(title: string, shared: Shared) {
  const closed = { additionalProperties: false }
  const isTestChip = { ...shared, is_test: Type.Boolean({ ...isTest, const: true }) }
  const isEncoded = Type.Optional(Type.Boolean({ ...isTest, const: false }))
  const variants = [
    Type.Object(isTestChip, {
      title: `${title}ByTest`,
      description: "A test chip, which the service creates",
      ...closed,
    }),
    Type.Object(
      { ...shared, chip_id: chipId, e, c: Type.Optional(c), enc: Type.Optional(enc), is_test: isEncoded },
      {
        title: `${title}Encoded`,
        description: "An encoded chip, with a value that it emitted",
        ...closed,
      },
    ),
  ]
  const either = {
    ...shared,
    chip_id: Type.Optional(chipId),
    e: Type.Optional(e),
    c: Type.Optional(c),
    enc: Type.Optional(enc),
    is_test: Type.Optional(isTest),
  }
  return Type.Object(either, { title, "x-variants": variants, ...closed })
}

export const pairChipBody = testOrEncoded("PairChip", { unit_id: unitId })
export type PairChipBody = Static<typeof pairChipBody>

/** Describes a list of chips, in a response or a request. */
export const chipsInOrder = "Chips, in the order of the request or newest first."

export const pairChipsInBulkBody = Type.Object(
  { chips: Type.Array(pairChipBody, { minItems: 1, maxItems: 100, description: chipsInOrder }) },
  { title: "PairChipsInBulk", additionalProperties: false },
)
export type PairChipsInBulkBody = Static<typeof pairChipsInBulkBody>

const itsUnit = "The unit that the chip is paired to."

const tag = {
  chip_id: chipId,
  is_test: isTest,
  scan_count: Type.Integer({ minimum: 0, description: "The number of taps recorded." }),
  tamper: nullable(
    oneOf(
      tamperStatuses,
      "The last known status of the chip's tamper wire: `sealed`, `opened` (final) or `unknown`; null if the chip has no tamper wire.",
    ),
  ),
  retired_at: described(nullable(instant), "When the chip was retired, which is final; null if it was not."),
  created_at: createdAt,
}

/** A chip as browsers may see it. */
export const chipResource = Type.Object(
  { ...tag, unit: described(nullable(unitSnapshot), itsUnit) },
  { title: "Chip", additionalProperties: false },
)
export type ChipResource = Static<typeof chipResource>

const signals = {
  skipped_count: Type.Integer({
    minimum: 0,
    description: "How many reads between recorded taps were never presented: the sum of `skipped`.",
  }),
  refused_count: Type.Integer({
    minimum: 0,
    description:
      "How many values were refused with `chip.invalid_e_value`: invented, damaged, or of another tag.",
  }),
  last_refused_at: described(nullable(instant), "When the last value was refused; null if none was."),
}

/** A chip as its brand sees it, with signals that browsers do not get. */
export const observedChipResource = Type.Object(
  { ...tag, ...signals, unit: described(nullable(unitSnapshot), itsUnit) },
  { title: "ObservedChip", additionalProperties: false },
)
export type ObservedChipResource = Static<typeof observedChipResource>

/** The response to pairing: a chip with its unit. */
export const pairedChipResource = Type.Object(
  { ...tag, unit: described(unitSnapshot, itsUnit) },
  { title: "PairedChip", additionalProperties: false },
)
export type PairedChipResource = Static<typeof pairedChipResource>

/** The response to pairing in bulk. */
export const pairedChips = Type.Object(
  { chips: Type.Array(pairedChipResource, { description: chipsInOrder }) },
  { additionalProperties: false },
)

const namedUnit = Type.Object({ id, external_id: shown(externalId) }, { additionalProperties: false })

export const chipListItem = Type.Object(
  { ...tag, ...signals, unit: described(nullable(namedUnit), itsUnit) },
  { title: "ListedChip", additionalProperties: false },
)
export type ChipListItem = Static<typeof chipListItem>
