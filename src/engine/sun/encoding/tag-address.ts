/** What a tag mirrors into its URL besides `e`: a MAC, and the status of its tamper wire. */
export type Mirrors = { readonly mac: boolean; readonly tamper: boolean }

/** The URL of one tag as stored in its file, with zeros where the chip puts its values. */
export type TagAddress = {
  readonly text: string
  /** Where the values begin, in characters; null if the tag does not mirror the value. */
  readonly e: number
  readonly enc: number | null
  readonly c: number | null
}

export const E_DIGITS = 32
export const C_DIGITS = 16
/** One block of encrypted file content, in hex. */
export const ENC_DIGITS = 32

/** A URL template that cannot be encoded; the message is one line that says what to change. */
export class TemplateError extends Error {
  override name = "TemplateError"
}

/**
 * Checks a template such as `https://tap.example/t/{chip_id}`: one `{chip_id}`, printable ASCII, https (http for
 * localhost only), no fragment, no user, and no parameter that the chip itself adds. Throws `TemplateError`.
 */
export function checkTemplate(template: string): void {
  const wrong = problemOf(template)
  if (wrong) throw new TemplateError(`the URL template ${wrong}`)
}

/** Returns the URL of a chip, with `e`, `enc` and `c` appended in this order; the MAC covers `enc` if there is one. */
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

/** Returns the text that `c` covers on such tags, with `{enc}` for the value: from the start of `enc` up to `c`. */
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
