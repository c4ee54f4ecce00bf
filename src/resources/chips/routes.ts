import { Type } from "@sinclair/typebox"
import { flag, flagOf, listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { pathChipId } from "../../platform/fields.ts"
import {
  chipListItem,
  chipsInOrder,
  observedChipResource,
  type PairChipsInBulkBody,
  type PairedChipResource,
  pairChipBody,
  pairChipsInBulkBody,
  pairedChipResource,
  pairedChips,
} from "./model.ts"
import { checkPairing, checkPairings } from "./pairing.ts"
import { presentChip, presentListedChip, presentObservedChip } from "./present.ts"
import { refusedValues } from "./refused-values.ts"
import { type ChipView, getChip, listChips, pairChip, pairChipsInBulk } from "./service.ts"

export const chipRoutes: Route[] = [
  writeRoute({
    operation: "pairChip",
    summary: "Pair a chip to a unit",
    description:
      "Binds a chip to a unit and starts the issuance of the unit's token: poll the unit until `collection.token.status` is `active`. An encoded chip proves itself with a value that it emits, which cannot be used as a tap afterwards. With `is_test` the service creates a test chip, which needs no hardware.",
    method: "POST",
    path: "/v1/chips",
    credentials: ["api_key"],
    idempotent: true,
    body: pairChipBody,
    checkBody: formThen(checkOf(pairChipBody), checkPairing),
    counts_refusals: refusedValues,
    status: 201,
    response: pairedChipResource,
    errors: [
      "unit.not_found",
      "chip.not_found",
      "collection.not_active",
      "chip.already_paired",
      "chip.already_scanned",
      "chip.invalid_e_value",
      "quota.exceeded",
    ],
    async write(turn, { context, caller, body }) {
      const chip = await pairChip(turn, context.config.service_secret, caller, body)
      return { body: presentPairedChip(chip), location: `/v1/chips/${chip.chip_id}` }
    },
  }),
  writeRoute({
    operation: "pairChipsInBulk",
    summary: "Pair up to 100 chips to units of one collection",
    description:
      "All units must belong to one collection. They are issued in the order given, in one transaction on chain. Either all chips are paired or none.",
    method: "POST",
    path: "/v1/chips/bulk",
    credentials: ["api_key"],
    idempotent: true,
    body: pairChipsInBulkBody,
    checkBody: formThen(checkOf(pairChipsInBulkBody), (body: PairChipsInBulkBody) =>
      checkPairings(body.chips),
    ),
    counts_refusals: refusedValues,
    status: 201,
    response: pairedChips,
    errors: [
      "unit.not_found",
      "chip.not_found",
      "chip.bulk_mixed_collections",
      "chip.bulk_pending",
      "collection.not_active",
      "chip.already_paired",
      "chip.already_scanned",
      "chip.invalid_e_value",
      "quota.exceeded",
    ],
    async write(turn, { context, caller, body }) {
      const chips = await pairChipsInBulk(turn, context.config.service_secret, caller, body)
      return { body: { chips: chips.map(presentPairedChip) } }
    },
  }),
  listRoute({
    operation: "listChips",
    summary: "List chips",
    description:
      "The organization's chips, newest first: both encoded chips and test chips, unless you filter by `is_test`.",
    path: "/v1/chips",
    credentials: ["api_key"],
    plural: "chips",
    entries: chipsInOrder,
    item: chipListItem,
    filters: { is_test: Type.Optional(flag("`true`: only test chips; `false`: only others.")) },
    read: (context, caller, { is_test }, page) =>
      listChips(context.db.read, caller, { is_test: flagOf(is_test), page }),
    present: presentListedChip,
  }),
  readRoute({
    operation: "getChip",
    summary: "Get a chip",
    description:
      "One chip with its unit; `unit` is null if the chip is not paired. Unlike the chip in a tap, it includes the counts of reads that were never presented and of refused values.",
    path: "/v1/chips/{chip_id}",
    params: { chip_id: pathChipId },
    credentials: ["api_key"],
    response: observedChipResource,
    errors: ["chip.not_found"],
    async read(context, caller, { params }) {
      return { body: presentObservedChip(await getChip(context.db.read, caller, params.chip_id)) }
    },
  }),
]

function presentPairedChip(view: ChipView): PairedChipResource {
  const { unit, ...chip } = presentChip(view)
  if (!unit) throw new Error(`chip ${chip.chip_id} was paired and has no unit`)
  return { ...chip, unit }
}
