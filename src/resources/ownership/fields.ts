import { Type } from "@sinclair/typebox"
import { address, chainId, described, nullable } from "../../platform/fields.ts"

const whoReceives =
  "The wallet that receives the unit: an EVM address, checksummed when it mixes upper and lower case."

/** A recipient as it is sent; `requireRecipient` checks its form and names what is wrong. */
export const sentRecipient = Type.String({ minLength: 1, maxLength: 256, description: whoReceives })
export const recipient = described(address, whoReceives)

export const identityToken = Type.String({
  minLength: 1,
  maxLength: 8_192,
  description:
    "A JWT by which your own sign-in names the customer. Single-use; its `sub` is kept as `customer_id`.",
})

export const customerId = nullable(
  Type.String({ description: "The `sub` of the identity token that came with the request, or null." }),
)

/** Ready for `eth_sendTransaction`; `from` is the only address that can submit it. */
export const transactionPayload = Type.Object(
  {
    chain_id: chainId,
    from: described(address, "The only address that can send it."),
    to: described(address, "The contract."),
    data: Type.String({ pattern: "^0x([0-9a-f]{2})*$", description: "The call, as hexadecimal bytes." }),
    value: Type.Literal("0x0", { description: "Always zero." }),
  },
  { title: "Transaction", additionalProperties: false },
)
