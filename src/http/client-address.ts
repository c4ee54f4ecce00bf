import { isIP } from "node:net"
import type { Context } from "../platform/context.ts"

/**
 * Returns the client's IPv4 address, or the /64 network of its IPv6 address, all of which one client can have (RFC
 * 6177). Each trusted proxy appends its peer to `X-Forwarded-For`; entries before those may be forged.
 */
export function clientAddress(request: Request, peer: string, trustedProxies: number): string {
  if (trustedProxies === 0) return networkOf(plain(peer))
  const forwarded = (request.headers.get("x-forwarded-for") ?? "")
    .split(",")
    .map((entry) => plain(entry.trim()))
  const [client = ""] = forwarded.slice(-trustedProxies)
  return networkOf(isIP(client) === 0 ? plain(peer) : client)
}

/** Returns the address of a request's client, given that of the peer. */
export type ClientOf = (request: Request, peer: string) => string

/** Creates a process's `ClientOf`. It warns once of a header that only a proxy adds, if no proxy is trusted. */
export function createClientOf({ config, log }: Pick<Context, "config" | "log">): ClientOf {
  let isExpected = config.trusted_proxies > 0
  return (request, peer) => {
    if (!isExpected && request.headers.has("x-forwarded-for")) {
      isExpected = true
      log.warn({}, forgottenProxies)
    }
    return clientAddress(request, peer, config.trusted_proxies)
  }
}

const forgottenProxies =
  "a request has the header X-Forwarded-For, but TRUSTED_PROXIES is 0: if there is a proxy in front of the API, all its clients share one rate limit until TRUSTED_PROXIES is the number of proxies"

/** Returns the address without port and brackets, and an IPv4-mapped IPv6 address as IPv4. */
function plain(address: string): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
  return bare.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "")
}

/** Returns an IPv6 address's network as `2001:db8:1:2::/64`, however it is written; an IPv4 address unchanged. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address
  const bare = address.replace(/%.*$/, "")
  const hostname = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [before = [], after] = hostname.split("::").map((part) => (part === "" ? [] : part.split(":")))
  const groups = [...before]
  if (after !== undefined) while (groups.length + after.length < 8) groups.push("0")
  return `${groups
    .concat(after ?? [])
    .slice(0, 4)
    .join(":")}::/64`
}
