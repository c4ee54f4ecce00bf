import { isIP } from "node:net"

/**
 * The client's IPv4 address, or the /64 network of its IPv6 address, which one household has (RFC 6177). Trusted
 * proxies append their caller to `X-Forwarded-For`; entries before theirs may be forged.
 */
export function clientAddress(request: Request, peer: string, trustedProxies: number): string {
  if (trustedProxies === 0) return networkOf(plain(peer))
  const forwarded = (request.headers.get("x-forwarded-for") ?? "")
    .split(",")
    .map((entry) => plain(entry.trim()))
  const [client = ""] = forwarded.slice(-trustedProxies)
  return networkOf(isIP(client) === 0 ? plain(peer) : client)
}

/** Without port and brackets; an IPv4 address in IPv6 clothes as itself. */
function plain(address: string): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
  return bare.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "")
}

/** `2001:db8:1:2::/64` for any address in it, however it is spelled; an IPv4 address as it is. */
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
