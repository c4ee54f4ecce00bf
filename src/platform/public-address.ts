import { dns } from "bun"
import ipaddr from "ipaddr.js"
import { type Config, isLoopback, isOnThisMachine } from "./config.ts"

/** Returns every IP address of a host name. */
export type Resolve = (host: string) => Promise<string[]>

/**
 * Resolves like the machine, IPv4 first, but with c-ares instead of the process's few threads, where silent name
 * servers would block everything else.
 */
export const resolveHost: Resolve = async (host) => {
  const found = await dns.lookup(host, { backend: "c-ares" })
  return found.toSorted((one, other) => one.family - other.family).map(({ address }) => address)
}

/** Why a host may not be connected to, in words for whoever named it. */
export class AddressRefused extends Error {
  override name = "AddressRefused"
}

/**
 * Returns the current IP addresses of a URL's host. Rejects the host if any is not publicly routable (RFC 6890), since
 * a name's addresses may change; `allowLoopback` also accepts loopback. Throws `AddressRefused` or what
 * `resolve` throws.
 */
export async function checkedAddresses(
  hostname: string,
  { allowLoopback, resolve }: { allowLoopback: boolean; resolve: Resolve },
): Promise<string[]> {
  const host = hostname.replace(/^\[|\]$/g, "")
  const addresses = ipaddr.isValid(host) ? [host] : await resolve(host)
  if (addresses.length === 0) throw new AddressRefused("its name has no address")
  if (!addresses.every((address) => isPublic(address) || (allowLoopback && isLoopbackAddress(address))))
    throw new AddressRefused("leads to an address that is not routable on the Internet")
  return addresses
}

/**
 * Returns whether a URL may lead to this machine: only if it is plain http with a loopback host, and the service runs
 * locally. A name that merely resolves to this machine is under somebody else's control.
 */
export function mayBeLocal(config: Config, { protocol, hostname }: URL): boolean {
  return protocol === "http:" && isOnThisMachine(config) && isLoopback(hostname.replace(/^\[|\]$/g, ""))
}

/** Returns whether an IP address is public. In IPv6 those are in 2000::/3, except the special-purpose ranges. */
function isPublic(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address.range() !== "unicast") return false
  return address.kind() === "ipv4" || globalUnicast.test(address.toNormalizedString())
}

const globalUnicast = /^[23][0-9a-f]{3}:/

function isLoopbackAddress(text: string): boolean {
  return ipaddr.isValid(text) && ipaddr.process(text).range() === "loopback"
}
