import Ajv from "ajv/dist/2020.js"
import type { Document, Example } from "../../src/api/openapi/document.ts"
import type { JsonSchema } from "../../src/api/openapi/schemas.ts"

/** Validates a value against a schema of the document with a third-party validator; returns the errors. */
export function validatorOf(document: Document, schema: JsonSchema): (value: unknown) => string[] {
  const known = validators.get(document) ?? new Ajv({ strict: false, allErrors: true, formats })
  validators.set(document, known)
  const whole = { ...schema, components: { schemas: document.components.schemas } }
  const validate = known.compile(whole)
  return (value) =>
    validate(value) ? [] : (validate.errors ?? []).map((each) => `${each.instancePath} ${each.message}`)
}

/** The values of examples, including referenced ones. */
export function examplesOf(document: Document, examples: Record<string, Example>): unknown[] {
  return Object.values(examples).map(({ value, $ref }) => {
    if (!$ref) return value
    const shared = document.components.examples?.[$ref.replace("#/components/examples/", "")]
    return (shared as Example | undefined)?.value
  })
}

const validators = new WeakMap<Document, Ajv>()

const formats = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  "date-time": (text: string) => new Date(text).toISOString() === text,
  uri: (text: string) => URL.canParse(text),
  int64: { type: "number", validate: Number.isSafeInteger } as const,
}
