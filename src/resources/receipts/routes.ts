import { Type } from "@sinclair/typebox"
import { openRoute, type Route } from "../../http/route.ts"
import { publishedKeys } from "./keys.ts"

const publicKey = Type.Object(
  {
    kty: Type.Literal("EC", { description: "An elliptic curve." }),
    crv: Type.Literal("P-256", { description: "The curve." }),
    x: Type.String({ description: "The x coordinate of the point, as base64url." }),
    y: Type.String({ description: "The y coordinate of the point, as base64url." }),
    kid: Type.String({
      description: "The id of the key, as in the header of a receipt: its thumbprint (RFC 7638).",
    }),
    alg: Type.Literal("ES256", { description: "The signature algorithm." }),
    use: Type.Literal("sig", { description: "Always `sig`: the key signs." }),
  },
  { title: "ReceiptKey", additionalProperties: false },
)

export const receiptKeyRoutes: Route[] = [
  openRoute({
    operation: "getReceiptKeys",
    summary: "Get the public keys of tap receipts",
    description:
      "A JWKS (RFC 7517) of every key that ever signed a receipt, newest first, so receipts signed by rotated keys stay valid. If you meet a `kid` that you do not have, fetch the JWKS again. Pages of any origin may read it.",
    path: "/.well-known/jwks.json",
    response: Type.Object(
      { keys: Type.Array(publicKey, { description: "Newest first; the newest one signs." }) },
      { title: "ReceiptKeys", additionalProperties: false },
    ),
    is_readable_from_anywhere: true,
    needs_database: true,
    async answer(context) {
      return { body: { keys: await publishedKeys(context) }, headers: keptForAMinute }
    },
  }),
]

const keptForAMinute = { "cache-control": "public, max-age=60" }
