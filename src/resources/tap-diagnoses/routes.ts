import { type Route, writeRoute } from "../../http/route.ts"
import { createTapDiagnosisBody, tapDiagnosis } from "./model.ts"
import { presentTapDiagnosis } from "./present.ts"
import { diagnoserOf } from "./service.ts"

export const tapDiagnosisRoutes: Route[] = [
  writeRoute({
    operation: "createTapDiagnosis",
    summary: "Find out why a tag does not verify",
    description:
      "Takes the URL that a phone opened and says which check fails and why, in the terms of an encoding station, and what to do. It consumes and counts nothing. The verdict on a good URL is `accepted`.",
    method: "POST",
    path: "/v1/tap-diagnoses",
    credentials: ["api_key"],
    body: createTapDiagnosisBody,
    status: 200,
    response: tapDiagnosis,
    async write(turn, { context, caller, body }) {
      const judge = await diagnoserOf(turn.tx, context.config.service_secret, caller.organization_id)
      const file_settings = body.file_settings === undefined ? null : Buffer.from(body.file_settings, "hex")
      return { body: presentTapDiagnosis(await judge({ url: body.url, file_settings })) }
    },
  }),
]
