import { Column, getTableName, is, Param, Placeholder, SQL, sql } from "drizzle-orm"
import { drizzle } from "drizzle-orm/pg-proxy"
import type { Builder, Queries, Statement } from "./database.ts"

/** A query's values by name, as placeholders while it is built. A list is for `inArray` and may be empty. */
export type Given<Values> = {
  [Name in keyof Values]: Placeholder<Name & string, Values[Name]> & SQL<Values[Name]>
}

/**
 * Returns a query, written with drizzle and built once per set of names given. A name that is omitted is undefined in
 * `build`, which can then omit its condition. Throws what the database throws.
 */
export function query<Values extends object, Row>(
  build: (db: Builder, given: Given<Values>) => PromiseLike<Row[]>,
): (queries: Queries, values: Values) => Promise<Row[]> {
  const shapes = new Map<string, Compiled>()
  return async (queries, values) => {
    const given = values as AnyValues
    const shape = shapeOf(given)
    let compiled = shapes.get(shape)
    if (!compiled) {
      compiled = compile(build as Build, given)
      shapes.set(shape, compiled)
    }
    const { statement, fill, map } = compiled
    const answer = queries.ask(statement, fill(given))
    const rows = answer instanceof Promise ? await answer : answer
    return (map ? rows.map(map) : rows) as Row[]
  }
}

type AnyValues = Record<string, unknown>
type Build = (db: Builder, given: Given<AnyValues>) => PromiseLike<unknown[]>

type Compiled = {
  statement: Statement
  fill: (values: AnyValues) => unknown[]
  /** Null for a statement that returns no rows. */
  map: RowMapper | null
}

type RowMapper = (row: unknown[]) => object

/** Returns what a query's text depends on: the names, and how many parameters each list takes. */
function shapeOf(values: AnyValues): string {
  let shape = ""
  for (const name in values) {
    const value = values[name]
    if (value !== undefined) shape += Array.isArray(value) ? `${name}*${placesOf(value)},` : `${name},`
  }
  return shape
}

/**
 * Rounds up to a power of two, since each number of parameters is a separate statement. The last element is repeated.
 */
function placesOf(list: unknown[]): number {
  return 2 ** Math.ceil(Math.log2(Math.max(list.length, 1)))
}

/** Only builds statements; it has no database. */
const builder: Builder = drizzle(() => {
  throw new Error("run a query through the function that query() returns")
})

let compiledQueries = 0

function compile(build: Build, values: AnyValues): Compiled {
  const names = Object.keys(values).filter((name) => values[name] !== undefined)
  const given = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]))
  const name = `query_${++compiledQueries}`
  const built = build(builder, given as Parameters<Build>[1]) as unknown as {
    prepare(name: string): DrizzleStatement
  }
  const { queryString, params, fields, joinsNotNullableMap } = built.prepare(name)
  const { text, sources } = withConstants(queryString, params, values)
  return {
    statement: { text, name },
    fill: fillerOf(sources),
    map: fields ? mapperOf(fields, joinsNotNullableMap) : null,
  }
}

/** The parts used of drizzle's prepared statement: text, parameters in order, and the columns of a row. */
type DrizzleStatement = {
  queryString: string
  params: unknown[]
  fields: Field[] | undefined
  /** For a query with joins: whether each table is present in every row. */
  joinsNotNullableMap: Record<string, boolean> | undefined
}

type Field = { path: string[]; field: unknown }

/** Reads a parameter's value from the query's values. */
type Source = (values: AnyValues) => unknown

/**
 * Writes constants into the text and returns where the other values come from. With a status in the text, SQLite can
 * use the partial index of its rows; with a parameter it would not.
 */
function withConstants(
  queryString: string,
  params: unknown[],
  values: AnyValues,
): { text: string; sources: Source[] } {
  const sources: Source[] = []
  const text = queryString.replaceAll(/\$(\d+)/g, (_place, number) => {
    const param = params[Number(number) - 1]
    if (!is(param, Placeholder)) return literalOf(param) ?? `$${sources.push(sourceOf(param))}`
    const listed = elementsOf(param.name, values[param.name])
    if (!listed) return `$${sources.push((given) => plain(given[param.name]))}`
    return `(${listed.map((element) => `$${sources.push(element)}`).join(", ")})`
  })
  return { text, sources }
}

function literalOf(param: unknown): string | null {
  if (typeof param === "string") return `'${param.replaceAll("'", "''")}'`
  return Number.isSafeInteger(param) && Number(param) >= 0 ? String(param) : null
}

function sourceOf(param: unknown): Source {
  if (!is(param, Param) || !is(param.value, Placeholder)) return () => param
  const { name } = param.value
  const { encoder } = param
  return (values) => {
    const value = values[name]
    return value === null ? null : encoder.mapToDriverValue(value)
  }
}

/** Returns the elements of a list, one per parameter. An empty list becomes a null, which equals nothing. */
function elementsOf(name: string, list: unknown): Source[] | null {
  if (!Array.isArray(list)) return null
  return Array.from({ length: placesOf(list) }, (_place, index) => (values) => {
    const now = values[name] as unknown[]
    return plain(now[Math.min(index, now.length - 1)] ?? null)
  })
}

function fillerOf(sources: Source[]): Compiled["fill"] {
  return (values) => {
    const filled = new Array<unknown>(sources.length)
    for (let index = 0; index < filled.length; index++) filled[index] = sources[index]?.(values)
    return filled
  }
}

/** Encodes a value as a timestamp column would. */
function plain(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value
}

type Decode = (value: unknown) => unknown
type Place = { name: string; decode: Decode | null }
/** Columns directly in a row (`name` null), or in one of its nested objects. */
type Part = { name: string | null; first: number; places: Place[]; mayBeAbsent: boolean }

/**
 * Returns a function that builds rows as drizzle would: a joined table without a row is null, not an object of nulls.
 */
function mapperOf(fields: Field[], present: Record<string, boolean> | undefined): RowMapper {
  const parts: Part[] = []
  fields.forEach(({ path, field }, index) => {
    const [outer, inner] = path
    const name = inner === undefined ? null : (outer ?? null)
    let part = parts.at(-1)
    if (!part || part.name !== name) {
      part = { name, first: index, places: [], mayBeAbsent: name !== null && isOfAbsentTable(field, present) }
      parts.push(part)
    }
    part.places.push({ name: path.at(-1) ?? "", decode: decoderOf(field) })
    part.mayBeAbsent &&= isOfAbsentTable(field, present)
  })
  return (row) => {
    const result: Record<string, unknown> = {}
    for (const { name, first, places, mayBeAbsent } of parts) {
      const target = name === null ? result : {}
      let isAbsent = mayBeAbsent
      for (let index = 0; index < places.length; index++) {
        const { name: column, decode } = places[index] as Place
        const value = row[first + index] ?? null
        if (value !== null) isAbsent = false
        target[column as keyof object] = (value !== null && decode ? decode(value) : value) as never
      }
      if (name !== null) result[name] = isAbsent ? null : target
    }
    return result
  }
}

function isOfAbsentTable(field: unknown, present: Record<string, boolean> | undefined): boolean {
  return present !== undefined && is(field, Column) && !present[getTableName(field.table)]
}

/** Returns null if the driver's value needs no decoding. */
function decoderOf(field: unknown): Decode | null {
  if (is(field, Column)) {
    if (field.mapFromDriverValue === Column.prototype.mapFromDriverValue) return null
    return (value) => field.mapFromDriverValue(value)
  }
  const { decoder } = (is(field, SQL.Aliased) ? field.sql : field) as {
    decoder: { mapFromDriverValue: Decode }
  }
  return (value) => decoder.mapFromDriverValue(value)
}
