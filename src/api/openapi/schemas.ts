import type { TSchema } from "@sinclair/typebox"

/** JSON Schema 2020-12, as OpenAPI 3.1 takes it. */
export type JsonSchema = { [keyword: string]: unknown }

/** A schema as the document shows it: a `$ref` if it has a name, else its own keywords. */
export function documentedSchema(schema: TSchema): JsonSchema {
  return schema.title ? reference(schema.title) : inlined(schema)
}

/** The same for a response: fields may be added at any time, so none of its objects is closed. */
export function answeredSchema(schema: TSchema): JsonSchema {
  return opened(documentedSchema(schema)) as JsonSchema
}

/** All named schemas within the given ones; those of responses are open. Throws if two different ones share a name. */
export function documentedComponents(
  sent: readonly TSchema[],
  answered: readonly TSchema[],
): Record<string, JsonSchema> {
  const all = [
    ...sent.flatMap(componentsWithin),
    ...answered.flatMap(componentsWithin).map(([name, component]) => [name, opened(component)] as const),
  ]
  const found = new Map<string, JsonSchema>()
  for (const [name, component] of all as [string, JsonSchema][]) {
    const other = found.get(name)
    if (other && JSON.stringify(other) !== JSON.stringify(component))
      throw new Error(`two schemas are named ${name}`)
    found.set(name, component)
  }
  const places = [...found].sort(([one], [other]) => (placeOf(one) < placeOf(other) ? -1 : 1))
  return Object.fromEntries(places)
}

/** Alphabetically, except for those that readers look for beside a related one. */
function placeOf(name: string): string {
  return besideRelatives[name] ?? name
}

const besideRelatives: Record<string, string> = {
  DryRunTap: "Tap.1",
  ObservedChip: "Chip.0",
  PairedChip: "Chip.1",
  ListedChip: "Chip.2",
  Pagination: "PairChipsInBulk.1",
  CurrentSessionToken: "PublishableKey.1",
  IssuedSessionToken: "PublishableKey.2",
  ListedUnit: "Unit.1",
}

function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

/** The same without `additionalProperties: false`, at any depth. */
function opened(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(opened)
  if (typeof schema !== "object" || schema === null) return schema
  const own = Object.entries(schema).filter(
    ([keyword, value]) => !(keyword === "additionalProperties" && value === false),
  )
  return Object.fromEntries(own.map(([keyword, value]) => [keyword, opened(value)]))
}

function componentsWithin(schema: TSchema): [string, JsonSchema][] {
  const parts: TSchema[] = [
    ...Object.values((schema.properties ?? {}) as Record<string, TSchema>),
    ...((schema.anyOf ?? []) as TSchema[]),
    ...((schema["x-variants"] ?? []) as TSchema[]),
    ...(schema.items ? [schema.items as TSchema] : []),
  ]
  const own: [string, JsonSchema][] = schema.title ? [[schema.title, inlined(schema)]] : []
  return [...own, ...parts.flatMap(componentsWithin)]
}

function inlined(schema: TSchema): JsonSchema {
  const shown: JsonSchema | undefined = schema["x-shown"]
  if (shown?.type) return shown
  if (schema["x-variants"]) return { oneOf: (schema["x-variants"] as TSchema[]).map(documentedSchema) }
  if (schema["x-open"]) return { anyOf: [reference(schema["x-open"]), { type: "string" }] }
  if (schema.anyOf) return union(schema.anyOf)
  if (schema.patternProperties) return { type: "object", additionalProperties: true }
  const own = Object.entries(schema).filter(
    ([keyword]) => !keyword.startsWith("x-") && keyword !== "title" && keyword !== "description",
  )
  return {
    ...Object.fromEntries(own),
    ...shown,
    ...(schema.items && { items: documentedSchema(schema.items) }),
    ...(schema.properties && { properties: properties(schema.properties) }),
  }
}

function enumWithNull({ enum: words }: JsonSchema): JsonSchema {
  return Array.isArray(words) ? { enum: [...words, null] } : {}
}

/** Literals become an `enum`; null becomes one of the types if the other variant has a single type. */
function union(all: TSchema[]): JsonSchema {
  if (all.every((variant) => variant.const !== undefined))
    return { type: "string", enum: all.map((variant) => variant.const) }
  const [only, ...others] = all.filter((variant) => variant.type !== "null").map(documentedSchema)
  if (only && others.length === 0 && typeof only.type === "string")
    return { ...only, ...enumWithNull(only), type: [only.type, "null"] }
  return { anyOf: [only, ...others, { type: "null" }] }
}

/** A field's description is shown at the field, even if its schema has a name. */
function properties(fields: Record<string, TSchema>): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, schema]) => {
      const { description } = schema
      return [field, { ...documentedSchema(schema), ...(description && { description }) }]
    }),
  )
}
