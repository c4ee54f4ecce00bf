import type { Config } from "../../platform/config.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import {
  AddressRefused,
  checkedAddresses,
  mayBeLocal,
  type Resolve,
  resolveHost,
} from "../../platform/public-address.ts"

/**
 * Returns the canonical URL of a webhook endpoint: https, or http to localhost if the service is on localhost. Throws
 * `validation.failed` on `url`, also if its host resolves to a private network.
 */
export async function checkedUrl(config: Config, text: string, resolve: Resolve = quickly): Promise<string> {
  const url = canonicalUrl(config, text)
  try {
    await checkedAddresses(url.hostname, { allowLoopback: mayBeLocal(config, url), resolve })
  } catch (error) {
    // An unknown name may exist later; it is checked again at each attempt.
    if (error instanceof AddressRefused) throw fieldError("url", error.message)
    if (error instanceof ApiError) throw error
  }
  return url.href
}

function canonicalUrl(config: Config, text: string): URL {
  const wrong = (why: string) => fieldError("url", why)
  if (/[\s\\\p{Cc}\p{Cs}]/u.test(text))
    throw wrong("must not contain white space, control characters or a backslash")
  const parts = /^https?:\/\/(?<authority>[^/?#]+)/i.exec(text)
  const url = URL.parse(text)
  if (!parts?.groups || !url) throw wrong("must be an absolute https URL")
  if (parts.groups.authority?.includes("@")) throw wrong("must not contain a user name or password")
  if (url.hash !== "") throw wrong("must not contain a fragment")
  if (url.protocol === "http:" && !mayBeLocal(config, url)) throw wrong("must use https")
  if (url.href.length > 2_048) throw wrong("must have at most 2048 characters once it is percent-encoded")
  return url
}

/** Resolves a host, but lets a request wait for at most two seconds. */
async function quickly(host: string): Promise<string[]> {
  const patience = Bun.sleep(2_000).then(() => Promise.reject(new Error("no answer in time")))
  return await Promise.race([resolveHost(host), patience])
}
