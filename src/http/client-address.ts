import { isIP } from "node:net"

/**
 * Who asks, as an IP address. Each of our own proxies adds the address it was asked from to the end of
 * `X-Forwarded-For`: of as many entries as there are trusted proxies the first is the client's. What stands before
 * them was written by anybody.
 */
export function clientAddress(request: Request, peer: string, trustedProxies: number): string {
  if (trustedProxies === 0) return plain(peer)
  const forwarded = (request.headers.get("x-forwarded-for") ?? "")
    .split(",")
    .map((entry) => plain(entry.trim()))
  const [client = ""] = forwarded.slice(-trustedProxies)
  return isIP(client) === 0 ? plain(peer) : client
}

/** Without port and brackets; an IPv4 address in IPv6 clothes as itself. */
function plain(address: string): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
  return bare.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "")
}
