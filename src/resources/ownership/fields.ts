import { Type } from "@sinclair/typebox"
import { address, chainId, described, nullable } from "../../platform/fields.ts"

const whoReceives =
  "The wallet that receives the unit: an EVM address. If it has upper-case and lower-case letters, its checksum must be right."

/** A recipient as sent; `requireRecipient` checks its form and explains what is wrong. */
export const sentRecipient = Type.String({ minLength: 1, maxLength: 256, description: whoReceives })
export const recipient = described(address, whoReceives)

export const identityToken = Type.String({
  minLength: 1,
  maxLength: 8_192,
  description:
    "A JWT from your own sign-in that identifies the customer. It can be used only once; its `sub` is stored as `customer_id`.",
})

export const customerId = nullable(
  Type.String({ description: "The `sub` of the identity token in the request, or null if there was none." }),
)

/** Ready for `eth_sendTransaction`; only `from` can submit it. */
export const transactionPayload = Type.Object(
  {
    chain_id: chainId,
    from: described(address, "The only address that can send it."),
    to: described(address, "The address of the contract."),
    data: Type.String({ pattern: "^0x([0-9a-f]{2})*$", description: "The call data, in hexadecimal." }),
    value: Type.Literal("0x0", { description: "Always zero." }),
  },
  { title: "Transaction", additionalProperties: false },
)
