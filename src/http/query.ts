import { fieldError, formError } from "../platform/errors.ts"

/**
 * Returns the query parameters of a URL. Throws `validation.failed` if one is repeated or not percent-encoded UTF-8.
 */
export function readQuery(url: string): Record<string, string> {
  const start = url.indexOf("?")
  if (start < 0) return {}
  const text = url.slice(start + 1).replace(/#.*$/, "")
  if (!isEncoded(text)) throw formError("The query is not percent-encoded UTF-8.")
  const query = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (query.has(name)) throw fieldError(name, "is given more than once")
    query.set(name, value)
  }
  return Object.fromEntries(query)
}

/** Returns whether a query can be decoded: `URLSearchParams` silently accepts what it cannot decode. */
function isEncoded(query: string): boolean {
  try {
    decodeURIComponent(query)
    return true
  } catch {
    return false
  }
}
