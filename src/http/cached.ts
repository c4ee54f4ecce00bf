import { createHash } from "node:crypto"
import type { PageAnswer } from "./page.ts"

/** What a public address holds now, and what a cache says it already has. */
type Held = { content: string; type: string; if_none_match: string | null }

/** An answer that caches may keep for a minute, or 304 if theirs is still right (RFC 9110). */
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
