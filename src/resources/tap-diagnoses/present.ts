import type { Diagnosis } from "../../engine/sun/diagnosis/diagnose.ts"
import type { TapDiagnosis } from "./model.ts"

export function presentTapDiagnosis({ chip_id, verdict, checks, advice }: Diagnosis): TapDiagnosis {
  return { chip_id, verdict, checks, advice }
}
