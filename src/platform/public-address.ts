import { dns } from "bun"
import ipaddr from "ipaddr.js"
import { type Config, isLoopback, isOnThisMachine } from "./config.ts"

/** Finds every address of a host name. */
export type Resolve = (host: string) => Promise<string[]>

/**
 * Resolves as the machine does, IPv4 first, but not on the process's few threads, where silent name servers would block
 * all others.
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
 * The addresses of a URL's host now, all of which may be connected to. One that is not publicly routable (RFC 6890)
 * refuses the host, as a name's answers may change; loopback is accepted with `allowLoopback`. Throws `AddressRefused`,
 * or what `resolve` throws.
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
 * Whether a URL may lead to this machine: a plain http one that says so itself, where the service runs locally. A name
 * that merely resolves here is somebody else's to change.
 */
export function mayBeLocal(config: Config, { protocol, hostname }: URL): boolean {
  return protocol === "http:" && isOnThisMachine(config) && isLoopback(hostname.replace(/^\[|\]$/g, ""))
}

/** Of IPv6 only allocated addresses (2000::/3) are public, without those that stand for something else. */
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
