import type { TSchema } from "@sinclair/typebox"
import {
  type TypeCheck,
  TypeCompiler,
  type ValueError,
  type ValueErrorIterator,
  ValueErrorType,
} from "@sinclair/typebox/compiler"
import { counted } from "../platform/counted.ts"
import { ApiError, type ErrorDetails } from "../platform/errors.ts"

/** Where a value violates its schema, as a JSON pointer, and how. The message never contains the value. */
type Problem = { path: string; message: string }

/** Returns the problems of a value. */
export type Check = (value: unknown) => Problem[]

/** Returns a check that compiles the schema on first use. A schema may set its own message with `x-message`. */
export function checkOf(schema: TSchema): Check {
  let compiled: TypeCheck<TSchema> | undefined
  return (value) => {
    // Compiling the schemas of all routes would take longer than everything else at startup.
    compiled ??= TypeCompiler.Compile(schema)
    return compiled.Check(value) ? [] : problemsOf(compiled.Errors(value))
  }
}

/** Returns a check that also applies a rule to well-formed values. The rule throws its own error. */
export function formThen<Value>(checkForm: Check, rule: (value: Value) => void): Check {
  return (value) => {
    const problems = checkForm(value)
    if (problems.length === 0) rule(value as Value)
    return problems
  }
}

/** Throws `validation.failed` if there are problems. */
export function refuse(problems: Problem[]): void {
  if (problems.length > 0) throw new ApiError("validation.failed", undefined, detailsOf(problems))
}

/** Caps the response to a body with a thousand mistakes. */
export const mostMessages = 20

/** Returns the first problem at each place, up to `mostMessages`; later ones at the same place follow from it. */
function problemsOf(errors: ValueErrorIterator): Problem[] {
  const problems = new Map<string, string>()
  for (const error of errors) {
    const { path, message } = describe(error)
    if (!problems.has(path)) problems.set(path, message)
    if (problems.size === mostMessages) break
  }
  return [...problems].map(([path, message]) => ({ path, message }))
}

function detailsOf(problems: Problem[]): ErrorDetails {
  const formErrors: string[] = []
  const fieldErrors = new Map<string, string[]>()
  for (const { path, message } of problems) {
    const [field, ...rest] = path.split("/").slice(1).map(stepOf)
    if (field === undefined) {
      formErrors.push(message)
      continue
    }
    const place = rest.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("")
    const text = place === "" ? message : `${place.replace(/^\./, "")}: ${message}`
    fieldErrors.set(field, [...(fieldErrors.get(field) ?? []), text])
  }
  return { formErrors, fieldErrors: Object.fromEntries(fieldErrors) }
}

/** Unescapes a step of a JSON pointer (RFC 6901, section 4). */
function stepOf(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~")
}

function describe(error: ValueError): Problem {
  const nested = error.type === ValueErrorType.Union ? onlyVariant(error) : undefined
  if (nested) return describe(nested)
  return { path: error.path, message: messageOf(error) }
}

/** Returns the problem of a nullable value as the type that is not null. */
function onlyVariant(error: ValueError): ValueError | undefined {
  const variants = (error.schema.anyOf as TSchema[])
    .map((variant, index) => ({ variant, errors: error.errors[index] }))
    .filter(({ variant }) => variant.type !== "null")
  return variants.length === 1 ? variants[0]?.errors?.First() : undefined
}

function messageOf({ type, schema, message }: ValueError): string {
  if (type === ValueErrorType.ObjectRequiredProperty) return "is required"
  if (type === ValueErrorType.ObjectAdditionalProperties) return "is not a known field"
  if (typeof schema["x-message"] === "string") return schema["x-message"]
  switch (type) {
    case ValueErrorType.StringPattern:
      return `must match ${schema.pattern}`
    case ValueErrorType.StringMinLength:
      return `must have at least ${counted(schema.minLength, "character", "characters")}`
    case ValueErrorType.StringMaxLength:
      return `must have at most ${counted(schema.maxLength, "character", "characters")}`
    case ValueErrorType.ArrayMinItems:
      return `must have at least ${counted(schema.minItems, "entry", "entries")}`
    case ValueErrorType.ArrayMaxItems:
      return `must have at most ${counted(schema.maxItems, "entry", "entries")}`
    case ValueErrorType.ObjectMinProperties:
      return `must have at least ${counted(schema.minProperties, "field", "fields")}`
    case ValueErrorType.ObjectMaxProperties:
      return `must have at most ${counted(schema.maxProperties, "field", "fields")}`
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return `must be at least ${schema.minimum}`
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return `must be at most ${schema.maximum}`
    case ValueErrorType.IntegerExclusiveMinimum:
      return `must be above ${schema.exclusiveMinimum}`
    case ValueErrorType.Integer:
      return "must be a whole number"
    case ValueErrorType.Number:
      return "must be a number"
    case ValueErrorType.String:
      return "must be a string"
    case ValueErrorType.Boolean:
      return "must be true or false"
    case ValueErrorType.Array:
      return "must be an array"
    case ValueErrorType.Object:
      return "must be an object"
    case ValueErrorType.Literal:
      return `must be ${JSON.stringify(schema.const)}`
    case ValueErrorType.Union:
      return unionMessage(schema, message)
    default:
      return message
  }
}

function unionMessage(schema: TSchema, message: string): string {
  const values = (schema.anyOf as TSchema[]).map((variant) => variant.const)
  return values.includes(undefined)
    ? message
    : `must be one of ${values.map((value) => JSON.stringify(value)).join(", ")}`
}
