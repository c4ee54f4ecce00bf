import { fieldError, formError } from "../platform/errors.ts"

export type JsonObject = Record<string, unknown>

/**
 * Parses a JSON object. Stricter than `JSON.parse`: no duplicate keys, no prototype keys, at most 32 levels, no numbers
 * beyond a double. Throws `validation.failed`.
 */
export function parseJsonObject(text: string): JsonObject {
  if (text.trim() === "") return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw formError("The body is not valid JSON.")
  }
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw formError("The body must be an object.")
  inspect(text)
  return value as JsonObject
}

const maxDepth = 32
const refusedKeys = ["__proto__", "constructor", "prototype"]

/** Searches valid JSON text for what `JSON.parse` accepts silently. Throws `validation.failed`. */
function inspect(text: string): void {
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\],:]/g
  /** The keys seen so far in each open object; null for an open array. */
  const open: (Set<string> | null)[] = []
  let topField = ""
  let isKeyNext = false
  for (const [token] of text.matchAll(tokens)) {
    if (token === "{" || token === "[") {
      if (open.length === maxDepth) throw formError(`The body is nested deeper than ${maxDepth} levels.`)
      open.push(token === "{" ? new Set() : null)
      isKeyNext = token === "{"
    } else if (token === "}" || token === "]") {
      open.pop()
      isKeyNext = false
    } else if (token === ",") {
      isKeyNext = open.at(-1) !== null
    } else if (token === ":") {
      isKeyNext = false
    } else if (token.startsWith('"')) {
      const keys = open.at(-1)
      if (!isKeyNext || !keys) continue
      const key = JSON.parse(token) as string
      if (keys.has(key)) throw formError("The body has an object with the same key twice.")
      if (refusedKeys.includes(key)) throw formError(`The body has the key ${key}, which is not allowed.`)
      keys.add(key)
      if (open.length === 1) topField = key
    } else if (!Number.isFinite(Number(token))) {
      throw fieldError(topField, "contains a number that is too large")
    }
  }
}
