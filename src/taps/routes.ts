import { Type } from "@sinclair/typebox"
import { chipId, id } from "../fields.ts"
import { Flag, flagOf, Instant, instantOf, listRoute } from "../http/list.ts"
import { type Route, writeRoute } from "../http/route.ts"
import * as examples from "../openapi/examples.ts"
import {
  createTapBody,
  createTestTapBody,
  presentTap,
  presentTapRecord,
  tapRecord,
  tapResponse,
  testTapResponse,
} from "./model.ts"
import { createTap, createTestTap, listTaps } from "./service.ts"

export const tapRoutes: Route[] = [
  writeRoute({
    operation: "createTap",
    summary: "Verify a tap and get a session token",
    description:
      "Verifies the one-time value of a tap, records the tap exactly once and answers a session token for the person who tapped. With a publishable key the session lasts 600 seconds, and the page's origin must be registered. With `dry_run` nothing is recorded and the answer has status 200.",
    method: "POST",
    path: "/v1/taps",
    credentials: ["api_key", "publishable_key"],
    idempotent: true,
    body: createTapBody,
    status: 201,
    alsoStatus: 200,
    response: tapResponse,
    errors: [
      "auth.forbidden",
      "chip.not_found",
      "unit.not_found",
      "chip.invalid_e_value",
      "chip.already_scanned",
      "quota.exceeded",
    ],
    example: {
      request: examples.createTap,
      response: examples.tap,
      also: { request: examples.dryRunTap, response: examples.dryTap },
    },
    async write(turn, context, caller, { body }) {
      const outcome = await createTap(turn, context.config.service_secret, caller, body)
      return { body: presentTap(outcome), status: outcome.tap ? 201 : 200 }
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
    item: tapRecord,
    filters: {
      chip_id: Type.Optional(chipId),
      unit_id: Type.Optional(id),
      created_after: Type.Optional(Instant),
      created_before: Type.Optional(Instant),
      is_test: Type.Optional(Flag),
    },
    example: { response: examples.listedTaps },
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
  writeRoute({
    operation: "createTestTap",
    summary: "Let a test chip emit a value, as a scan would",
    description:
      "Advances the read counter of a test chip and answers the value that a scan would carry. Send `chip_id` and `e` to `POST /v1/taps` to verify it like that of any chip.",
    method: "POST",
    path: "/v1/test-helpers/taps",
    credentials: ["api_key"],
    body: createTestTapBody,
    status: 201,
    response: testTapResponse,
    errors: ["chip.not_found", "chip.not_a_test_chip"],
    example: { request: examples.createTestTap, response: examples.testTap },
    async write(turn, context, caller, { body }) {
      return { body: await createTestTap(turn, context.config.service_secret, caller, body) }
    },
  }),
]
