import { createHash, createPrivateKey, generateKeyPairSync, sign } from "node:crypto"
import type { PublicReceiptJwk } from "../../db/receipt-key-schema.ts"

const RECEIPT_TYPE = "tap-receipt+jwt"
const RECEIPT_ALGORITHM = "ES256"

/**
 * The claims of a tap receipt: the service `iss` verified tap `jti` at `iat` (Unix seconds), of the unit that the
 * chip was on, with read counter `counter`. `chain_id`, `contract` and `serial` are null before the unit is issued.
 * The chip is named by a digest, so that someone who knows its chip id can recognize it; see `chipDigest`. Owner
 * and customer are never included.
 */
export type ReceiptClaims = {
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

/** A key that signs receipts: on P-256, with its thumbprint (RFC 7638) as `kid`. */
export type ReceiptKey = { public_jwk: PublicReceiptJwk; d: string }

export function createReceiptKey(): ReceiptKey {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { x = "", y = "", d = "" } = privateKey.export({ format: "jwk" })
  const point = { crv: "P-256", kty: "EC", x, y } as const
  const kid = createHash("sha256").update(JSON.stringify(point)).digest("base64url")
  return { public_jwk: { ...point, kid, alg: RECEIPT_ALGORITHM, use: "sig" }, d }
}

/** Returns a receipt: a compact JWS (RFC 7515) that anyone can verify with the public key, without the service. */
export function signReceipt({ public_jwk, d }: ReceiptKey, claims: ReceiptClaims): string {
  const header = { alg: RECEIPT_ALGORITHM, kid: public_jwk.kid, typ: RECEIPT_TYPE }
  const signed = `${base64url(header)}.${base64url(claims)}`
  const { kty, crv, x, y } = public_jwk
  const key = createPrivateKey({ key: { kty, crv, x, y, d }, format: "jwk" })
  const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" })
  return `${signed}.${signature.toString("base64url")}`
}

/** Returns SHA-256 of `<salt>.<chip id>` in ASCII, as base64url. */
export function chipDigest(salt: string, chipId: string): string {
  return createHash("sha256").update(`${salt}.${chipId}`).digest("base64url")
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url")
}
