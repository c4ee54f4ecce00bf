import { Type } from "@sinclair/typebox"
import type { DocumentedPage } from "../../http/page.ts"
import { chipId } from "../../platform/fields.ts"
import { parseChipId } from "../../platform/ids.ts"
import { landingHtml, landingPage } from "./landing-page.ts"
import { findRedirect } from "./service.ts"

/**
 * `GET /t/{chip_id}`, the URL on a chip. It redirects to the most specific page, with the values which that page needs
 * to verify the tap, and consumes nothing, because link previews open it too.
 */
export const tapRedirect: DocumentedPage = {
  path: "/t/{chip_id}",
  bucket: "tap_redirect",
  documented: {
    operation: "getTapRedirect",
    summary: "Open the URL of a chip",
    description:
      "What a phone opens when it reads a chip. It redirects to the `redirect_url` of the unit, else to that of its product, its collection, or the organization's default, with the values that the page needs for `POST /v1/taps`. It consumes nothing, because link previews open it too. Malformed values are left out.",
    resource: "taps",
    params: { chip_id: chipId },
    query: {
      e: written(32, "The one-time value, which becomes `service_e`."),
      c: written(16, "The verification code, if the tag has one; it becomes `service_c`."),
      enc: written(32, "The encrypted file content, if the tag has it; it becomes `service_enc`."),
    },
    answers: {
      302: {
        description: "A redirect to the page for the tap.",
        location:
          "The URL of that page, with `service_chip_id`, `service_e`, `service_c` and `service_enc` in upper case.",
      },
      200: {
        description:
          "There is no redirect, or no such chip: a page that says so, the same for both, in the language that `Accept-Language` prefers.",
        html: landingHtml.en,
      },
    },
  },
  async open(context, { params, query, accept_language }) {
    const chip_id = parseChipId(params.chip_id ?? "")
    const redirect = chip_id && (await findRedirect(context.db.read, chip_id))
    if (!redirect) return landingPage(accept_language)
    const e = hexadecimal(query.get("e"), 32)
    const c = hexadecimal(query.get("c"), 16)
    const enc = hexadecimal(query.get("enc"), 32)
    const location = redirectWith(redirect, {
      service_chip_id: chip_id,
      service_e: e,
      service_c: c,
      service_enc: enc,
    })
    return { status: 302, headers: { location }, body: null }
  },
}

/** Returns the schema of what a tag writes into its URL, in either case. */
function written(digits: number, description: string) {
  return Type.String({ pattern: `^[0-9A-Fa-f]{${digits}}$`, description })
}

/** Returns the value in upper case; null for anything a tag cannot write, which must not get into a brand's URL. */
function hexadecimal(text: string | null, digits: number): string | null {
  return text?.length === digits && /^[0-9a-f]+$/i.test(text) ? text.toUpperCase() : null
}

/**
 * Adds the parameters to a stored URL, replacing its own of the same names even if the tap has no value. The other
 * parameters stay exactly as written: they may be signed, or not be pairs at all.
 */
function redirectWith(redirect: string, parameters: Record<string, string | null>): string {
  const url = new URL(redirect)
  const written = url.search === "" ? [] : url.search.slice(1).split("&")
  const kept = written.filter((each) => !Object.hasOwn(parameters, nameOf(each)))
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null ? [] : `${name}=${value}`,
  )
  url.search = [...kept, ...given].join("&")
  return url.href
}

/** Returns the name of a parameter as written in a URL. */
function nameOf(parameter: string): string {
  return [...new URLSearchParams(parameter).keys()].join()
}
