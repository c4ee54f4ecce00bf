import { Type } from "@sinclair/typebox"

/** An EVM address in an answer, checksummed. */
export const address = Type.String({ pattern: "^0x[0-9a-fA-F]{40}$" })

export const transactionHash = Type.String({ pattern: "^0x[0-9a-f]{64}$" })

/** Ready for `eth_sendTransaction`; `from` is the only address that can submit it. */
export const transactionPayload = Type.Object(
  {
    chain_id: Type.Integer({ minimum: 1 }),
    from: address,
    to: address,
    data: Type.String({ pattern: "^0x([0-9a-f]{2})*$" }),
    value: Type.Literal("0x0"),
  },
  { additionalProperties: false },
)

/** Why something failed for good. */
export const failure = Type.Object(
  { code: Type.String(), message: Type.String() },
  { additionalProperties: false },
)
