import { ApiError } from "../../platform/errors.ts"
import type { PairChipBody } from "./model.ts"

/** What to pair to a unit: a new test chip, or an encoded chip that proves itself. Ids are canonical. */
export type Pairing = { unit_id: string; encoded: EncodedChip | null }

export type EncodedChip = {
  chip_id: string
  e: string
  c: string | undefined
  enc: string | undefined
  is_test: boolean | undefined
}

/** Returns the pairing that a checked body asks for. */
export function pairingOf(body: PairChipBody): Pairing {
  const { chip_id, e, c, enc, is_test } = body
  const unit_id = body.unit_id.toLowerCase()
  if (chip_id === undefined || e === undefined) return { unit_id, encoded: null }
  return { unit_id, encoded: { chip_id: chip_id.toUpperCase(), e, c, enc, is_test } }
}

/** Throws `validation.failed` with every field that fits neither variant of a pairing. */
export function checkPairing(body: Omit<PairChipBody, "unit_id">): void {
  const wrong = wrongFields(body)
  if (wrong.length > 0) {
    const fieldErrors = Object.fromEntries(wrong.map(({ field, message }) => [field, [message]]))
    throw new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors })
  }
}

/**
 * Checks a bulk request, which may not name a unit or chip twice. Throws `validation.failed` on `chips`, with one
 * message for each problem.
 */
export function checkPairings(bodies: PairChipBody[]): void {
  const wrong = bodies.flatMap((body, index) =>
    [...wrongFields(body), ...repeatedFields(bodies, index)].map(
      ({ field, message }) => `[${index}].${field}: ${message}`,
    ),
  )
  if (wrong.length > 0)
    throw new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors: { chips: wrong } })
}

type WrongField = { field: keyof PairChipBody; message: string }

const ofEncodedChips = ["chip_id", "e", "c", "enc"] as const

function wrongFields(body: Omit<PairChipBody, "unit_id">): WrongField[] {
  if (body.is_test === true) {
    const mixed = ofEncodedChips.filter((field) => body[field] !== undefined)
    if (mixed.length === 0) return []
    return [
      ...mixed.map((field) => ({ field, message: "is not allowed if is_test is true" })),
      { field: "is_test", message: "must be false or absent for an encoded chip" },
    ]
  }
  const wrong: WrongField[] = []
  if (body.chip_id === undefined) wrong.push({ field: "chip_id", message: "is required for an encoded chip" })
  if (body.e === undefined) wrong.push({ field: "e", message: "is required for an encoded chip" })
  if (body.is_test === false && wrong.length === 2)
    wrong.push({ field: "is_test", message: "must be true for a test chip" })
  return wrong
}

function repeatedFields(bodies: PairChipBody[], index: number): WrongField[] {
  const body = bodies[index]
  const fields = ["unit_id", "chip_id"] as const
  return fields.flatMap((field) => {
    const value = body?.[field]?.toLowerCase()
    const first = bodies.findIndex((other) => other[field]?.toLowerCase() === value)
    return value === undefined || first === index
      ? []
      : [{ field, message: `is the same as [${first}].${field}` }]
  })
}
