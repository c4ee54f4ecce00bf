import { fieldError } from "../platform/errors.ts"

/** The parameters of a request's address, each at most once; `validation.failed` names one that comes again. */
export function readQuery(url: string): Record<string, string> {
  const start = url.indexOf("?")
  if (start < 0) return {}
  const query = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(url.slice(start + 1).replace(/#.*$/, ""))) {
    if (query.has(name)) throw fieldError(name, "is given more than once")
    query.set(name, value)
  }
  return Object.fromEntries(query)
}
