/**
 * Verifies tap receipts without asking the service that signed them. One file, no dependencies: it runs in browsers,
 * Node, Bun and Deno. It needs the receipt and a copy, old or new, of the service's `/.well-known/jwks.json`.
 */

/**
 * What a receipt says. `iat` is in Unix seconds; `chain_id`, `contract` and `serial` are null if the unit was not
 * issued yet.
 */
export type TapReceipt = {
  iss: string
  jti: string
  iat: number
  chain_id: number | null
  contract: string | null
  serial: number | null
  counter: number
  is_test: boolean
  chip_salt: string
  chip_digest: string
}

export type Jwks = { keys: readonly Record<string, unknown>[] }

/** Why a receipt is invalid. */
export class ReceiptInvalid extends Error {
  override name = "ReceiptInvalid"
}

/**
 * What the receipt says, if one of the keys has signed exactly this text (JWS, RFC 7515; ES256, RFC 7518 §3.4).
 * `issuer`, if given, must be the one it names. Throws `ReceiptInvalid`; another error where there is no Web Crypto API.
 */
export async function verifyReceipt(receipt: string, jwks: Jwks, issuer?: string): Promise<TapReceipt> {
  const parts = receipt.split(".")
  const [header = "", payload = "", signature = ""] = parts
  if (parts.length !== 3)
    throw new ReceiptInvalid("it is not a compact JWS: three parts with dots between them")
  const { alg, typ, kid, crit } = documentIn(header, "header")
  if (alg !== "ES256") throw new ReceiptInvalid("its algorithm is not ES256")
  if (typ !== "tap-receipt+jwt") throw new ReceiptInvalid("it is not a tap receipt")
  if (crit !== undefined) throw new ReceiptInvalid("it requires extensions that are not supported")
  const jwk = jwks.keys.find((each) => each.kid === kid)
  if (!jwk) throw new ReceiptInvalid("the key that signed it is not among the service's keys")
  const key = await importKey(jwk)
  const isRight = await crypto.subtle.verify(
    { name: "ECDSA", hash: "SHA-256" },
    key,
    bytesIn(signature, "signature"),
    new TextEncoder().encode(`${header}.${payload}`),
  )
  if (!isRight)
    throw new ReceiptInvalid("its signature is wrong: the receipt was changed, or made by somebody else")
  const claims = documentIn(payload, "payload") as TapReceipt
  if (issuer !== undefined && claims.iss !== issuer)
    throw new ReceiptInvalid(`it was issued by ${claims.iss}, not by ${issuer}`)
  return claims
}

/** Whether the receipt is about the chip with this id, which is in the URL that the chip opens. */
export async function isOfChip({ chip_salt, chip_digest }: TapReceipt, chipId: string): Promise<boolean> {
  const text = new TextEncoder().encode(`${chip_salt}.${chipId.toUpperCase()}`)
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", text))) === chip_digest
}

async function importKey(jwk: Record<string, unknown>): Promise<CryptoKey> {
  const { kty, crv, x, y } = jwk
  if (kty !== "EC" || crv !== "P-256") throw new ReceiptInvalid("the key is not one on the curve P-256")
  if (!globalThis.crypto?.subtle)
    throw new Error(
      "there is no Web Crypto API here: browsers have it only in pages with https:, Node from 19 on",
    )
  const algorithm = { name: "ECDSA", namedCurve: "P-256" }
  try {
    return await crypto.subtle.importKey("jwk", { kty, crv, x: `${x}`, y: `${y}` }, algorithm, false, [
      "verify",
    ])
  } catch {
    throw new ReceiptInvalid("the key cannot be read")
  }
}

function documentIn(part: string, name: string): Record<string, unknown> {
  const text = new TextDecoder().decode(bytesIn(part, name))
  try {
    const value = JSON.parse(text)
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value
  } catch {
    // Said below.
  }
  throw new ReceiptInvalid(`its ${name} is not a JSON object`)
}

/** Strict base64url: the same bytes have one spelling, so a changed letter is a changed receipt. */
function bytesIn(part: string, name: string): Uint8Array<ArrayBuffer> {
  if (/^[A-Za-z0-9_-]+$/.test(part) && part.length % 4 !== 1) {
    const text = atob(part.replaceAll("-", "+").replaceAll("_", "/"))
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0))
    if (base64url(bytes) === part) return bytes
  }
  throw new ReceiptInvalid(`its ${name} is not base64url`)
}

function base64url(bytes: Uint8Array): string {
  // One by one: a call takes only so many arguments, and a receipt may have any length.
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte))
  const text = btoa(letters.join(""))
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
}
