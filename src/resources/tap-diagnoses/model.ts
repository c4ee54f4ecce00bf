import { type Static, Type } from "@sinclair/typebox"
import { checkNames, type Verdict, verdictAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import { chipId, described, extensible, nullable, oneOf } from "../../platform/fields.ts"

export const createTapDiagnosisBody = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: "The whole address that a phone opened, or the one it was redirected to.",
    }),
    file_settings: Type.Optional(
      Type.String({
        pattern: "^([0-9A-Fa-f]{2}){7,64}$",
        description: "What GetFileSettings answered for file 02h of the tag, in hexadecimal, if you have it.",
        "x-message": "must be 7 to 64 bytes in hexadecimal",
      }),
    ),
  },
  { title: "CreateTapDiagnosis", additionalProperties: false },
)

const check = Type.Object(
  {
    name: extensible(oneOf(checkNames, "What was looked at."), "KnownTapCheck"),
    passed: Type.Boolean({ description: "Whether it passed." }),
    detail: Type.String({ description: "What was found, in the encoding station's terms." }),
  },
  { additionalProperties: false },
)

export const tapDiagnosis = Type.Object(
  {
    chip_id: described(nullable(chipId), "The chip that the address names, or null."),
    verdict: extensible(
      oneOf(
        Object.keys(verdictAdvice) as Verdict[],
        "The result; `accepted` if the address is a new one of this chip. The chip's unit is not considered: a tap of a chip that is not paired yet, or was retired, still gets `unit.not_found`. Verdicts are added over time: `advice` says what to do about each.",
      ),
      "KnownTapVerdict",
    ),
    checks: Type.Array(check, {
      description:
        "The checks in order, up to the first that fails, except that a failed `case` or `key_version` does not end them.",
    }),
    advice: Type.String({ description: "What to do about it." }),
  },
  { title: "TapDiagnosis", additionalProperties: false },
)
export type TapDiagnosis = Static<typeof tapDiagnosis>
