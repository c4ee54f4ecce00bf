import type { Document } from "../openapi/document.ts"
import type { JsonSchema } from "../openapi/schemas.ts"

/** Where each named schema is shown, once. */
export type Homes = Map<string, string>

/**
 * The fields of a schema as a Markdown list, those of inner objects nested. A schema that is shown elsewhere is a
 * link; `beside` is the one being shown.
 */
export function fieldLines(
  document: Document,
  homes: Homes,
  schema: JsonSchema,
  { beside = "", indent = "" }: { beside?: string; indent?: string } = {},
): string[] {
  const { object, variants } = shapeOf(document, schema)
  if (variants.length > 1)
    return variants.flatMap((variant) => [
      `${indent}- ${shapeOf(document, variant).object.description ?? `\`${nameOf(variant) ?? "object"}\``}:`,
      ...fieldLines(document, homes, variant, { beside, indent: `${indent}  ` }),
    ])
  const required = (object.required ?? []) as string[]
  return Object.entries((object.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, field]) => {
    const inner = field.type === "array" ? (field.items as JsonSchema) : field
    const named = onlyNameOf(inner)
    const home = named && named !== beside ? homes.get(named) : undefined
    const type = home ? `[${named}](${home})` : typeWords(document, field)
    const optional = required.includes(name) ? "" : ", optional"
    const line = `${indent}- \`${name}\` *${type}${optional}* ${field.description ?? ""}`
    if (home || indent.length > deepestIndent) return [line]
    return [line, ...fieldLines(document, homes, inner, { beside, indent: `${indent}  ` })]
  })
}

const deepestIndent = 10

/** The name of the schema that a reference leads to. */
export function nameOf(schema: JsonSchema | undefined): string | undefined {
  return typeof schema?.$ref === "string" ? schema.$ref.replace("#/components/schemas/", "") : undefined
}

/** The name of a schema, or of the only variant beside null. */
function onlyNameOf(schema: JsonSchema): string | undefined {
  const all = (schema.anyOf as JsonSchema[] | undefined)?.filter(({ type }) => type !== "null")
  return nameOf(all?.length === 1 && all[0] ? all[0] : schema)
}

/** What a reference points to, and its variants beside null. */
function shapeOf(document: Document, schema: JsonSchema): { object: JsonSchema; variants: JsonSchema[] } {
  const name = nameOf(schema)
  if (name) return shapeOf(document, document.components.schemas[name] ?? {})
  const all = ((schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined)?.filter(
    ({ type }) => type !== "null",
  )
  const [only, ...others] = all ?? []
  if (only && others.length === 0) return shapeOf(document, only)
  const areObjects = (all ?? []).every((each) => shapeOf(document, each).object.properties)
  return { object: schema, variants: areObjects ? (all ?? []) : [] }
}

function typeWords(document: Document, schema: JsonSchema): string {
  const name = nameOf(schema)
  if (name) {
    const named = document.components.schemas[name] ?? {}
    return named.type === "string" ? "string" : "object"
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return (schema.enum as unknown[]).map((value) => JSON.stringify(value)).join(" or ")
  const all = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
  if (all) return [...new Set(all.map((each) => typeWords(document, each)))].join(" or ")
  if (schema.type === "array") return `array of ${typeWords(document, schema.items as JsonSchema)}`
  const types = [schema.type ?? "any"].flat().map(String)
  const words = types.map((type) => (type === "string" && schema.format ? String(schema.format) : type))
  return words.join(" or ") + rangeWords(schema)
}

function rangeWords({ minimum, maximum, minLength, maxLength, minItems, maxItems }: JsonSchema): string {
  const [least, most] = [minimum ?? minLength ?? minItems, maximum ?? maxLength ?? maxItems]
  if (least !== undefined && most !== undefined && most !== Number.MAX_SAFE_INTEGER)
    return `, ${least} to ${most}${maxLength ? " characters" : ""}`
  return least === undefined ? "" : `, from ${least}`
}
