import { type Static, Type } from "@sinclair/typebox"
import { publishableKeyModes } from "../../db/statuses.ts"
import { createdAt, id, name, oneOf } from "../../platform/fields.ts"

export const publishableKeyResource = Type.Object(
  {
    id,
    key: Type.String({
      pattern: "^end_pk_live_[0-9A-Za-z]+$",
      description: "The key itself. It is safe in browser code: it only allows taps.",
    }),
    mode: oneOf(publishableKeyModes, "Only `live` keys are issued."),
    name: Type.String({ description: name.description ?? "" }),
    created_at: createdAt,
  },
  { title: "PublishableKey", additionalProperties: false },
)
export type PublishableKeyResource = Static<typeof publishableKeyResource>
