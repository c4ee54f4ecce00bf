import { checkPairing } from "../chips/pairing.ts"
import { type Route, readRoute, writeRoute } from "../http/route.ts"
import { checkOf, formThen } from "../http/validate.ts"
import * as examples from "../openapi/examples.ts"
import {
  type CreateChipReplacementBody,
  chipReplacementResource,
  createChipReplacementBody,
  presentChipReplacement,
} from "./model.ts"
import { createChipReplacement, getChipReplacement } from "./service.ts"

export const chipReplacementRoutes: Route[] = [
  writeRoute({
    operation: "createChipReplacement",
    summary: "Give an unclaimed unit another chip",
    description:
      "Pairs an unpaired chip to the unit and retires the current one, once the chain has confirmed. An encoded chip proves itself with a value of its own; units with a test chip get a fresh test chip. Poll the chip replacement until `confirmed` or `failed`.",
    method: "POST",
    path: "/v1/units/{unit_id}/chip-replacements",
    credentials: ["api_key"],
    idempotent: true,
    body: createChipReplacementBody,
    checkBody: formThen(checkOf(createChipReplacementBody), (body: CreateChipReplacementBody) =>
      checkPairing({ unit_id: "", ...body }),
    ),
    status: 201,
    response: chipReplacementResource,
    errors: [
      "unit.not_found",
      "unit.not_minted",
      "unit.issuance_pending",
      "chip_replacement.locked",
      "claim.in_progress",
      "chip_replacement.in_progress",
      "chip.not_found",
      "chip.already_paired",
      "chip.invalid_e_value",
      "chip.already_scanned",
    ],
    example: { request: examples.createChipReplacement, response: examples.chipReplacement },
    async write(turn, context, caller, { params, body }) {
      const { service_secret } = context.config
      const replacement = await createChipReplacement(
        turn,
        service_secret,
        context.chains,
        caller,
        params.unit_id,
        body,
      )
      const location = `/v1/units/${replacement.unit_id}/chip-replacements/${replacement.id}`
      return { body: presentChipReplacement(replacement), location }
    },
  }),
  readRoute({
    operation: "getChipReplacement",
    summary: "Get a chip replacement",
    description: "One chip replacement. `confirmed` means that the new chip has taken over.",
    path: "/v1/units/{unit_id}/chip-replacements/{replacement_id}",
    credentials: ["api_key"],
    response: chipReplacementResource,
    errors: ["unit.not_found", "chip_replacement.not_found"],
    example: { response: examples.settledChipReplacement },
    async read(context, caller, { params }) {
      const replacement = await getChipReplacement(
        context.db.read,
        caller,
        params.unit_id,
        params.replacement_id,
      )
      return { body: presentChipReplacement(replacement) }
    },
  }),
]
