import { isIP } from "node:net"
import { getDomain, getPublicSuffix } from "tldts"
import { fieldError } from "../../platform/errors.ts"
import { isShared } from "./shared-domains.ts"

/**
 * Returns the entries in canonical form, in order and without duplicates. Throws `validation.failed` on `cors_origins`.
 */
export function canonicalCorsOrigins(entries: string[]): string[] {
  const canonical = entries.map((entry, index) => {
    const read = readEntry(entry)
    if ("refused" in read) throw fieldError("cors_origins", `[${index}]: ${read.refused}`)
    return read.entry
  })
  return [...new Set(canonical)]
}

/**
 * Returns the entries that would allow an origin: itself, its host with any port, and a wildcard per domain above it.
 */
export function entriesFor(origin: string): string[] {
  // The time grows with the square of the labels: anybody's header of 16 KiB would block the process for seconds.
  if (origin.length > mostCharacters) return []
  // Browsers send origins in canonical form; anything else does not come from a browser.
  const url = URL.parse(origin)
  if (!url || url.origin !== origin) return []
  const { protocol, hostname, port } = url
  const labels = hostname.split(".")
  if (labels.includes("")) return []
  const end = port && `:${port}`
  // A stored wildcard whose domain turned out to be shared must not let in other customers of that domain's owner.
  const owned = getDomain(hostname, { allowPrivateDomains: true })?.length ?? 0
  const domains = labels
    .slice(1)
    .map((_, index) => labels.slice(index + 1).join("."))
    .filter((domain) => domain.length >= owned)
    .map((domain) => `${protocol}//*.${domain}${end}`)
  return [origin, `${protocol}//${hostname}:*`, ...domains]
}

/** The longest host name (RFC 1123, 2.1). */
const hostCharacters = 253
const mostCharacters = "https://".length + hostCharacters + ":65535".length

type Read = { entry: string } | { refused: string }

/** Parses `scheme://host[:port]`, with one `*` as the whole first label or as the whole port. */
function readEntry(text: string): Read {
  if (/[^!-~]/.test(text))
    return { refused: "must be ASCII without spaces; write an international name as punycode" }
  const parts = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^/?#@\\%:[\]]+)(?::(\*|\d{1,5}))?\/?$/i.exec(text)
  if (!parts)
    return { refused: "must be an origin such as https://shop.example.com, without path or user name" }
  const [, scheme = "", host = "", port] = parts.map((part) => part?.toLowerCase())
  if ((text.match(/\*/g) ?? []).length > 1) return { refused: "must have at most one *" }
  const [first, ...rest] = host.split(".")
  if (first === "*") return subdomains(`${scheme}://`, rest.join("."), port)
  if (host.includes("*")) return { refused: "may have * only as the whole first label or as the whole port" }
  if (port === "*") {
    const origin = originOf(`${scheme}://${host}`)
    return origin ? { entry: `${origin}:*` } : notAnOrigin
  }
  const origin = originOf(`${scheme}://${host}${port === undefined ? "" : `:${port}`}`)
  return origin ? { entry: origin } : notAnOrigin
}

const notAnOrigin: Read = { refused: "must have a host as browsers write it, and a port up to 65535" }

function subdomains(scheme: string, domain: string, port: string | undefined): Read {
  const origin = originOf(`${scheme}${domain}${port === undefined ? "" : `:${port}`}`)
  if (!origin) return notAnOrigin
  if (!domain.includes(".") || isIP(domain))
    return { refused: "must have a domain of two labels or more after *." }
  if (getPublicSuffix(domain, { allowPrivateDomains: true }) === domain)
    return { refused: "must not allow a public suffix, under which anybody can register a name" }
  if (isShared(domain))
    return {
      refused: "must not allow a domain under which others can have names too; name your own subdomain",
    }
  return { entry: origin.replace("://", "://*.") }
}

/**
 * Returns the canonical origin; null if a browser writes the host differently or it is not a host name (RFC 1123, 2.1).
 */
function originOf(address: string): string | null {
  const url = URL.parse(address)
  if (!url || url.port === "0") return null
  const typed = address.replace(/^https?:\/\//, "").replace(/:\d+$/, "")
  if (url.hostname.startsWith("[")) return url.origin
  if (typed !== url.hostname || typed.length > hostCharacters) return null
  const isName = typed.split(".").every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))
  return isName ? url.origin : null
}
