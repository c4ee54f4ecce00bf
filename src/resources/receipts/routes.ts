import { Type } from "@sinclair/typebox"
import { openRoute, type Route } from "../../http/route.ts"
import { publishedKeys } from "./keys.ts"

const publicKey = Type.Object(
  {
    kty: Type.Literal("EC", { description: "An elliptic curve." }),
    crv: Type.Literal("P-256", { description: "The curve." }),
    x: Type.String({ description: "The point's x, as base64url." }),
    y: Type.String({ description: "The point's y, as base64url." }),
    kid: Type.String({ description: "The key's name in a receipt's header: its thumbprint (RFC 7638)." }),
    alg: Type.Literal("ES256", { description: "What it signs by." }),
    use: Type.Literal("sig", { description: "That it signs." }),
  },
  { title: "ReceiptKey", additionalProperties: false },
)

export const receiptKeyRoutes: Route[] = [
  openRoute({
    operation: "getReceiptKeys",
    summary: "The keys of tap receipts",
    description:
      "A JWKS (RFC 7517) of every key that ever signed a receipt, the newest first: receipts of rotated keys stay good. A receipt of a `kid` that you do not have was signed after your copy was made. Any web page may read it.",
    path: "/.well-known/jwks.json",
    response: Type.Object(
      { keys: Type.Array(publicKey, { description: "The newest first, which is the one that signs." }) },
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
