import { type Static, Type } from "@sinclair/typebox"
import { checkNames, type Verdict, verdictAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import { chipId, described, extensible, nullable, oneOf } from "../../platform/fields.ts"

export const createTapDiagnosisBody = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: "The whole URL that a phone opened, or the one that it was redirected to.",
    }),
    file_settings: Type.Optional(
      Type.String({
        pattern: "^([0-9A-Fa-f]{2}){7,64}$",
        description: "The tag's response to GetFileSettings for file 02h, in hexadecimal, if you have it.",
        "x-message": "must be 7 to 64 bytes in hexadecimal",
      }),
    ),
  },
  { title: "CreateTapDiagnosis", additionalProperties: false },
)

const check = Type.Object(
  {
    name: extensible(oneOf(checkNames, "What was checked."), "KnownTapCheck"),
    passed: Type.Boolean({ description: "Whether it passed." }),
    detail: Type.String({ description: "What was found, in the terms of an encoding station." }),
  },
  { additionalProperties: false },
)

export const tapDiagnosis = Type.Object(
  {
    chip_id: described(nullable(chipId), "The chip that the URL names, or null."),
    verdict: extensible(
      oneOf(
        Object.keys(verdictAdvice) as Verdict[],
        "The result; `accepted` if the URL is genuine and new. The unit is not considered: a tap of a chip that is not paired yet, or was retired, still gets `unit.not_found`. Verdicts are added over time: `advice` says what to do about each.",
      ),
      "KnownTapVerdict",
    ),
    checks: Type.Array(check, {
      description:
        "The checks in order, up to the first that fails; only after a failed `case` or `key_version` they continue.",
    }),
    advice: Type.String({ description: "What to do about the verdict." }),
  },
  { title: "TapDiagnosis", additionalProperties: false },
)
export type TapDiagnosis = Static<typeof tapDiagnosis>
