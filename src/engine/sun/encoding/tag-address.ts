/** What a tag mirrors into its address besides `e`: a MAC, and the status of its tamper wire. */
export type Mirrors = { readonly mac: boolean; readonly tamper: boolean }

/** The address of one tag, as its file holds it: with zeros where the chip puts its values. */
export type TagAddress = {
  readonly text: string
  /** Where the values begin, in characters; null where the tag gives none. */
  readonly e: number
  readonly enc: number | null
  readonly c: number | null
}

export const E_DIGITS = 32
export const C_DIGITS = 16
/** One block of file content, encrypted, in hex. */
export const ENC_DIGITS = 32

/** An address template that cannot be encoded: one line that says what to change. */
export class TemplateError extends Error {
  override name = "TemplateError"
}

/**
 * Checks `https://tap.example/t/{chip_id}` and the like: one `{chip_id}`, printable ASCII, https (http for localhost
 * only), no fragment, no user, none of the parameters that the chip itself adds. Throws `TemplateError`.
 */
export function checkTemplate(template: string): void {
  const wrong = problemOf(template)
  if (wrong) throw new TemplateError(`the URL template ${wrong}`)
}

/** The address of a chip with `e`, `enc` and `c` appended in this order, the MAC covering `enc` where there is one. */
export function tagAddress(template: string, chipId: string, mirrors: Mirrors): TagAddress {
  const start = template.replace("{chip_id}", chipId)
  const withE = `${start}${start.includes("?") ? "&" : "?"}e=`
  const withEnc = `${withE}${"0".repeat(E_DIGITS)}${mirrors.tamper ? "&enc=" : ""}`
  const hasMac = mirrors.mac || mirrors.tamper
  const withC = `${withEnc}${mirrors.tamper ? "0".repeat(ENC_DIGITS) : ""}${hasMac ? "&c=" : ""}`
  return {
    text: `${withC}${hasMac ? "0".repeat(C_DIGITS) : ""}`,
    e: withE.length,
    enc: mirrors.tamper ? withEnc.length : null,
    c: hasMac ? withC.length : null,
  }
}

/** The text that `c` covers on such tags, with `{enc}` in the place of the value: from the start of `enc` up to `c`. */
export function macInputOf(mirrors: Mirrors): string {
  return mirrors.tamper ? "{enc}&c=" : ""
}

function problemOf(template: string): string | null {
  if (template.split("{chip_id}").length !== 2)
    return "must have {chip_id} once, where the chip's id goes: https://tap.example/t/{chip_id}"
  const filled = template.replace("{chip_id}", "0000000000")
  if (/[{}]/.test(filled))
    return "has other braces than {chip_id}: leave e, enc and c out, they are appended with their placeholders"
  if (!/^[\x21-\x7e]+$/.test(filled)) return "must be printable ASCII without spaces"
  if (!URL.canParse(filled)) return "is not an absolute URL"
  const url = new URL(filled)
  const isLocal = ["localhost", "127.0.0.1"].includes(url.hostname)
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLocal))
    return "must begin with https://, which phones open without asking"
  if (url.username || url.password) return "must not have a user name or password"
  if (filled.includes("#")) return "must not have a fragment (#…): it never reaches a server"
  const taken = ["e", "enc", "c"].find((name) => url.searchParams.has(name))
  if (taken) return `has the parameter ${taken} already, which the chip appends itself`
  if (url.href !== filled && url.href !== `${filled}/`)
    return `is not in its standard form; write it as ${url.href.replace("0000000000", "{chip_id}")}`
  return null
}
