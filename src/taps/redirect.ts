import type { Page } from "../http/page.ts"
import { landingPage } from "./landing-page.ts"
import { findRedirect } from "./service.ts"

/**
 * `GET /t/{chip_id}`: what a chip's address opens. It sends the person on to the most specific redirect, with what the
 * destination needs to verify the tap, and consumes nothing: previews of links open it too.
 */
export const tapRedirect: Page = {
  path: "/t/{chip_id}",
  async open(context, { params, query }) {
    const chip_id = (params.chip_id ?? "").toUpperCase()
    const redirect = /^[0-9A-F]{10}$/.test(chip_id) ? await findRedirect(context.db.read, chip_id) : null
    if (redirect === null) return landingPage
    const e = hexadecimal(query.get("e"), 32)
    const c = hexadecimal(query.get("c"), 16)
    const location = redirectWith(redirect, { service_chip_id: chip_id, service_e: e, service_c: c })
    return { status: 302, headers: { location }, html: null }
  },
}

/** Upper case; null for anything that no tag writes, which has no place in a brand's address. */
function hexadecimal(text: string | null, digits: number): string | null {
  return text?.length === digits && /^[0-9a-f]+$/i.test(text) ? text.toUpperCase() : null
}

/** Parameters that the stored address has under these names do not win, not even where the tap has none. */
function redirectWith(redirect: string, parameters: Record<string, string | null>): string {
  const url = new URL(redirect)
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  return url.href
}
