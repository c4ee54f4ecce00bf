import { Type } from "@sinclair/typebox"
import { bound, flag, flagOf, instantOf, listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf } from "../../http/validate.ts"
import { chipId, pathId, unitId } from "../../platform/fields.ts"
import { refusedValues } from "../chips/refused-values.ts"
import { currentKey, ensureReceiptKey, signingKey } from "../receipts/keys.ts"
import { receiptOf } from "../receipts/service.ts"
import {
  createPublishedTapBody,
  createTapBody,
  createTestTapBody,
  dryRunTapResponse,
  tapReceipt,
  tapRecord,
  tapResponse,
  testTapResponse,
} from "./model.ts"
import { presentTap, presentTapRecord } from "./present.ts"
import { createTap, createTestTap, findTap, listTaps } from "./service.ts"

const checkTap = checkOf(createTapBody)
const checkPublishedTap = checkOf(createPublishedTapBody)

/** Returns whether a body, not yet validated, asks for a dry run. */
function isDryRun(body: unknown): boolean {
  return (body as { dry_run?: unknown }).dry_run === true
}

export const tapRoutes: Route[] = [
  writeRoute({
    operation: "createTap",
    isolation: "read committed",
    summary: "Verify a tap and get a session token",
    description:
      "Verifies the one-time value of a tap, records the tap exactly once and returns a session token for the person who tapped. With a publishable key the session lasts 600 seconds, and the origin of a web page must be on the CORS list. With `dry_run` nothing is recorded and the status is 200.",
    method: "POST",
    path: "/v1/taps",
    credentials: ["api_key", "publishable_key"],
    idempotent: true,
    body: createTapBody,
    checkBody: (body, { kind }) => (kind === "publishable_key" ? checkPublishedTap : checkTap)(body),
    moves_nothing: isDryRun,
    counts_refusals: refusedValues,
    status: 201,
    alsoStatus: 200,
    response: tapResponse,
    alsoResponse: dryRunTapResponse,
    errors: [
      "auth.forbidden",
      "chip.not_found",
      "unit.not_found",
      "chip.invalid_e_value",
      "chip.already_scanned",
      "quota.exceeded",
    ],
    async write(turn, { context, caller, body }) {
      const { service_secret, api_base_url } = context.config
      const outcome = await createTap(turn, service_secret, caller, body)
      const { tap, unit } = outcome
      if (!tap) return { body: presentTap(outcome), status: 200 }
      if (!body.receipt) return { body: presentTap(outcome) }
      const receipt = receiptOf(await signingKey(turn, service_secret), api_base_url, { tap, unit })
      return { body: presentTap(outcome, receipt) }
    },
  }),
  listRoute({
    operation: "listTaps",
    summary: "List verified taps",
    description:
      "The history of verified taps, newest first. Taps of test chips are left out unless `is_test` is true.",
    path: "/v1/taps",
    credentials: ["api_key"],
    plural: "taps",
    entries: "Taps, newest first.",
    item: tapRecord,
    filters: {
      chip_id: Type.Optional(chipId),
      unit_id: Type.Optional(unitId),
      created_after: Type.Optional(
        bound("Only taps recorded at this time or later (inclusive): ISO 8601 in UTC."),
      ),
      created_before: Type.Optional(
        bound("Only taps recorded before this time (exclusive): ISO 8601 in UTC."),
      ),
      is_test: Type.Optional(flag("`true`: only taps of test chips; `false`, the default: only others.")),
    },
    read: (context, caller, filters, page) =>
      listTaps(context.db.read, caller, {
        ...filters,
        created_after: instantOf(filters.created_after, "created_after"),
        created_before: instantOf(filters.created_before, "created_before"),
        is_test: flagOf(filters.is_test),
        page,
      }),
    present: presentTapRecord,
  }),
  readRoute({
    operation: "getTapReceipt",
    summary: "Get the receipt of a tap",
    description:
      "A compact JWS (`typ` `tap-receipt+jwt`, ES256) that anybody can verify with the keys at `/.well-known/jwks.json`, without asking the service. It is signed anew on each request, with the current key, and contains what is known by then, such as the serial once the unit is issued.",
    path: "/v1/taps/{tap_id}/receipt",
    params: { tap_id: pathId("The tap's id.") },
    credentials: ["api_key"],
    response: tapReceipt,
    errors: ["tap.not_found"],
    ensure: ensureReceiptKey,
    async read({ db, config }, caller, { params }) {
      const found = await findTap(db.read, caller, params.tap_id)
      const key = await currentKey(db.read, config.service_secret)
      return { body: { receipt: receiptOf(key, config.api_base_url, found) } }
    },
  }),
  writeRoute({
    operation: "createTestTap",
    isolation: "read committed",
    summary: "Get a value from a test chip, as a scan would",
    description:
      "Advances the read counter of a test chip and returns the value that a scan would emit. Send `chip_id` and `e` to `POST /v1/taps` to verify it like the value of any other chip.",
    method: "POST",
    path: "/v1/test-helpers/taps",
    credentials: ["api_key"],
    body: createTestTapBody,
    status: 201,
    response: testTapResponse,
    errors: ["chip.not_found", "chip.not_a_test_chip"],
    async write(turn, { context, caller, body }) {
      return { body: await createTestTap(turn, context.config.service_secret, caller, body) }
    },
  }),
]
