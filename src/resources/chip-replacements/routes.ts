import { listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { pathId } from "../../platform/fields.ts"
import { checkPairing } from "../chips/pairing.ts"
import { refusedValues } from "../chips/refused-values.ts"
import { chipReplacementResource, createChipReplacementBody } from "./model.ts"
import { presentChipReplacement } from "./present.ts"
import { createChipReplacement, getChipReplacement, listChipReplacements, readLockedChip } from "./service.ts"

export const chipReplacementRoutes: Route[] = [
  writeRoute({
    operation: "createChipReplacement",
    summary: "Give an unclaimed unit another chip",
    description:
      "Pairs an unpaired chip to the unit and retires the current one, once the chain has confirmed it. An encoded chip proves itself with a value that it emits; a unit with a test chip gets a new test chip. A claimed unit accepts only a chip that the chain already has for it, as after the service was restored from an older backup. Poll the chip replacement until it is `confirmed` or `failed`.",
    method: "POST",
    path: "/v1/units/{unit_id}/chip-replacements",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key"],
    idempotent: true,
    body: createChipReplacementBody,
    checkBody: formThen(checkOf(createChipReplacementBody), checkPairing),
    counts_refusals: refusedValues,
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
      "quota.exceeded",
    ],
    prepare: (context, caller, { params, body }) => readLockedChip(context, caller, params.unit_id, body),
    async write(turn, { context, caller, params, body, prepared: locked_chip_id }) {
      const { config, chains } = context
      const replacement = await createChipReplacement(
        turn,
        { secret: config.service_secret, chains },
        caller,
        { ...params, body, locked_chip_id },
      )
      const location = `/v1/units/${replacement.unit_id}/chip-replacements/${replacement.id}`
      return { body: presentChipReplacement(replacement), location }
    },
  }),
  listRoute({
    operation: "listChipReplacements",
    summary: "List a unit's chip replacements",
    description: "The unit's chip replacements and their outcomes, newest first.",
    path: "/v1/units/{unit_id}/chip-replacements",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key"],
    plural: "chip_replacements",
    entries: "Chip replacements, newest first.",
    item: chipReplacementResource,
    errors: ["unit.not_found"],
    read: (context, caller, _filters, page, params) =>
      listChipReplacements(context.db.read, caller, params.unit_id, page),
    present: presentChipReplacement,
  }),
  readRoute({
    operation: "getChipReplacement",
    summary: "Get a chip replacement",
    description: "One chip replacement. `confirmed` means that the unit has the new chip.",
    path: "/v1/units/{unit_id}/chip-replacements/{replacement_id}",
    params: { unit_id: pathId("The unit's id."), replacement_id: pathId("The chip replacement's id.") },
    credentials: ["api_key"],
    response: chipReplacementResource,
    errors: ["unit.not_found", "chip_replacement.not_found"],
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
