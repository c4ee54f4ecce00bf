import { createHash } from "node:crypto"
import type { PageAnswer } from "./page.ts"

/** The current content of a public URL, and the etags that the client's cache already has. */
type Held = { content: string; type: string; if_none_match: string | null }

/** Returns a response that caches may keep for a minute, or 304 if the client's copy is current (RFC 9110). */
export function cachedAnswer({ content, type, if_none_match }: Held, policy: string): PageAnswer {
  const etag = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`
  const headers = { etag, "cache-control": "public, max-age=60", "content-security-policy": policy }
  if (isKept(if_none_match, etag)) return { status: 304, headers, body: null }
  return { status: 200, headers: { ...headers, "content-type": type }, body: content }
}

function isKept(ifNoneMatch: string | null, etag: string): boolean {
  const kept = (ifNoneMatch ?? "").split(",").map((each) => each.trim().replace(/^W\//, ""))
  return kept.includes(etag) || kept.includes("*")
}
