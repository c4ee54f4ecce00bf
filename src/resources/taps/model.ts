import { type Static, Type } from "@sinclair/typebox"
import { c, chipId, createdAt, described, e, enc, id, nullable, unitId } from "../../platform/fields.ts"
import { chipResource } from "../chips/model.ts"
import { issuedSessionToken } from "../session-tokens/model.ts"
import { unitResource } from "../units/model.ts"

export const createTapBody = Type.Object(
  {
    chip_id: chipId,
    e,
    c: Type.Optional(c),
    enc: Type.Optional(enc),
    ttl: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: 3_600,
        description:
          "The lifetime of the session in seconds, by default 600. Ignored with a publishable key.",
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({
        description: "Returns what a tap would return, but records nothing. Only with an API key.",
      }),
    ),
    receipt: Type.Optional(
      Type.Boolean({
        description:
          "Whether to return a receipt, with which anybody can verify the tap without the service.",
      }),
    ),
  },
  { title: "CreateTap", additionalProperties: false },
)
export type CreateTapBody = Static<typeof createTapBody>

/** With a publishable key any integer `ttl` is accepted and ignored. */
export const createPublishedTapBody = Type.Composite(
  [Type.Omit(createTapBody, ["ttl"]), Type.Object({ ttl: Type.Optional(Type.Integer()) })],
  { additionalProperties: false },
)

export const createTestTapBody = Type.Object(
  { chip_id: chipId },
  { title: "CreateTestTap", additionalProperties: false },
)
export type CreateTestTapBody = Static<typeof createTestTapBody>

const verified = {
  chip: described(chipResource, "The chip that was tapped."),
  unit: described(unitResource, "The unit that the chip is paired to."),
  redirect_url: nullable(
    Type.String({
      description:
        "Where this tap is redirected: the redirect URL of the unit, product, collection or organization, or null.",
    }),
  ),
}

const signedReceipt = Type.String({
  pattern: "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$",
  description:
    "A compact JWS which says that the service has verified this tap, of which token and at which read, but never who owns it. The keys are at `/.well-known/jwks.json`.",
})

export const tapResponse = Type.Object(
  {
    id: described(id, "The id of the recorded tap."),
    ...verified,
    session_token: described(issuedSessionToken, "The session of the person who tapped."),
    receipt: described(nullable(signedReceipt), "The receipt of the tap if you asked for one, else null."),
  },
  { title: "Tap", additionalProperties: false },
)
export type TapResponse = Static<typeof tapResponse>

/** The response to a dry run. Generators drop a field that can only be null, so these are typed more widely. */
export const dryRunTapResponse = Type.Object(
  {
    id: described(nullable(id), "Null: no tap was recorded."),
    ...verified,
    session_token: described(nullable(issuedSessionToken), "Null: no session was started."),
    receipt: described(nullable(signedReceipt), "Null: there is no tap to certify."),
  },
  { title: "DryRunTap", additionalProperties: false },
)
export type DryRunTapResponse = Static<typeof dryRunTapResponse>

export const testTapResponse = Type.Object(
  {
    chip_id: chipId,
    e,
    count: Type.Integer({ minimum: 1, description: "The read counter in the emitted value." }),
  },
  { title: "TestTap", additionalProperties: false },
)
export type TestTap = Static<typeof testTapResponse>

export const tapReceipt = Type.Object(
  { receipt: signedReceipt },
  { title: "TapReceipt", additionalProperties: false },
)

/** A tap in the history. */
export const tapRecord = Type.Object(
  {
    id,
    chip_id: chipId,
    unit_id: unitId,
    is_test: Type.Boolean({ description: "Whether this is a tap of a test chip." }),
    counter: Type.Integer({ minimum: 0, description: "The chip's read counter at this tap." }),
    skipped: Type.Integer({
      minimum: 0,
      description: "How many reads since the previous recorded tap were never presented.",
    }),
    created_at: createdAt,
  },
  { title: "TapRecord", additionalProperties: false },
)
export type TapRecord = Static<typeof tapRecord>
