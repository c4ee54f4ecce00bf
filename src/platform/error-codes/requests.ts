import type { ErrorEntries } from "./entry.ts"

/** Errors that any request can cause. */
export const requestErrors = {
  "validation.failed": {
    status: 400,
    retryable: false,
    title: "The request is not valid.",
    happened:
      "The body, the URL or a header does not have the form that the operation expects. Nothing was recorded. `details.fieldErrors` says what is wrong with each top-level field, and `details.formErrors` what is wrong with the request as a whole.",
    fix: "Read `details` and correct the fields that it names. Unknown fields and parameters are rejected too, so check their spelling. A cursor is valid only for the list and the filters that it came from.",
    operation: "createTap",
    related: ["request.unsupported_media_type", "request.too_large"],
  },
  "auth.unauthorized": {
    status: 401,
    retryable: false,
    title: "The credential is missing, malformed or of the wrong kind.",
    happened:
      "The `Authorization` header is missing or malformed, the key is unknown, revoked or expired, or the credential is of a kind that this operation does not accept.",
    fix: "Send exactly one header `Authorization: Bearer <token>`. The message says which kind the operation needs: an API key starts with `end_sk_`, a session token with `end_sess_`, a publishable key with `end_pk_live_`. Claims and transfers are made with a session token, never with an API key.",
    operation: "getSettings",
    related: ["session_token.invalid_or_expired", "auth.forbidden"],
  },
  "auth.forbidden": {
    status: 403,
    retryable: false,
    title: "The credential does not permit this.",
    happened:
      "The credential is valid but does not permit this: the page's origin is not on the organization's CORS list, a publishable key asked for a `dry_run`, or the organization is suspended.",
    fix: "For calls from a browser, register the page's origin with `PUT /v1/settings/cors-origins`; it takes effect within a minute. Send `dry_run` from your server, with an API key. If the organization is suspended, ask the operator of the service.",
    operation: "replaceCorsOrigins",
    related: ["auth.unauthorized", "session_token.wrong_chip"],
  },
  "session_token.invalid_or_expired": {
    status: 401,
    retryable: false,
    title: "The session token is unknown, expired or revoked.",
    happened:
      "The session token is unknown, expired or revoked. Sessions last 600 seconds unless the tap asked for another `ttl`, and end when the unit gets another chip.",
    fix: "Let the person tap the chip again and use the new session token. A token cannot be extended or recovered.",
    operation: "createTap",
    related: ["auth.unauthorized", "session_token.wrong_chip"],
  },
  "session_token.wrong_chip": {
    status: 403,
    retryable: false,
    title: "The session token belongs to another chip.",
    happened:
      "The session token belongs to another chip than that of this unit. It may be the token of another unit, or the unit's chip was replaced after the tap.",
    fix: "Compare `scope.unit_id` of the session with the unit in the path. Tap the chip of this unit and use the session token of that tap.",
    operation: "getCurrentSessionToken",
    related: ["session_token.invalid_or_expired", "unit.not_found"],
  },
  "not_found.resource": {
    status: 404,
    retryable: false,
    title: "There is nothing at this URL.",
    happened: "No operation, page or public document has this URL.",
    fix: "Compare the path with the list of operations. Nearly all begin with `/v1`, and only `/` ends with a slash. A public document of a token exists once the token is issued.",
    operation: "getWelcome",
    related: ["request.method_not_allowed", "unit.not_found", "chip.not_found"],
  },
  "request.method_not_allowed": {
    status: 405,
    retryable: false,
    title: "This path does not support this method.",
    happened: "The path exists but does not support this method.",
    fix: "Use one of the methods in the `Allow` header.",
    operation: "listUnits",
    related: ["not_found.resource"],
  },
  "request.too_large": {
    status: 413,
    retryable: false,
    title: "The body is larger than 64 KiB.",
    happened: "The body is larger than 64 KiB.",
    fix: "Send less at once: pair fewer chips in one bulk request, or store large attributes elsewhere and send a URL.",
    operation: "pairChipsInBulk",
    related: ["validation.failed"],
  },
  "request.unsupported_media_type": {
    status: 415,
    retryable: false,
    title: "The body is not plain JSON.",
    happened: "The `Content-Type` is not `application/json`, or the body is compressed.",
    fix: "Send `Content-Type: application/json` and the body uncompressed, in UTF-8.",
    operation: "createUnit",
    related: ["validation.failed"],
  },
  "rate_limit.exceeded": {
    status: 429,
    retryable: true,
    title: "Too many requests; wait and try again.",
    happened:
      "There were more requests than the limit of this credential, chip or IP address allows; or more work of the organization would wait for the chain than the operator allows; or something was requested again too soon, such as a sixth secret of a webhook endpoint within a day. Nothing was recorded. Refused credentials and refused `e` values have limits of their own.",
    fix: "Wait for the number of seconds in `Retry-After` and send the same request again. Spread bulk work over time, and watch `X-RateLimit-Remaining`.",
    operation: "listTaps",
    related: ["quota.exceeded", "auth.unauthorized"],
  },
  "quota.exceeded": {
    status: 403,
    retryable: false,
    title: "The organization has used up its quota.",
    happened:
      "The organization has reached its limit of units, collections, chips, webhook endpoints or taps per month. Retrying does not help.",
    fix: "Ask the operator of the service for a larger quota. The limit of 20 webhook endpoints is fixed: delete one.",
    operation: "getSettings",
    related: ["rate_limit.exceeded"],
  },
  "idempotency.key_conflict": {
    status: 409,
    retryable: false,
    title: "The idempotency key was used for another request.",
    happened:
      "The `Idempotency-Key` was used within the last 24 hours for another operation, another path or another body.",
    fix: "Use a new key for each new thing that you create, and send exactly the same body when you retry. A UUID for each thing works well.",
    operation: "createUnit",
    related: ["idempotency.in_progress"],
  },
  "idempotency.in_progress": {
    status: 409,
    retryable: true,
    title: "A request with this idempotency key is still running.",
    happened: "An earlier request with the same `Idempotency-Key` is still running.",
    fix: "Wait for the number of seconds in `Retry-After` and send the same request again: it gets the response of the first one.",
    operation: "createUnit",
    related: ["idempotency.key_conflict"],
  },
} as const satisfies ErrorEntries

/** Errors of the service itself, listed last. */
export const internalErrors = {
  "internal.error": {
    status: 500,
    retryable: true,
    title: "Something unexpected happened; try again later.",
    happened:
      "Something went wrong in the service. Status 503 means that it is temporarily unavailable, for example because its database is.",
    fix: "Send the same request again with the same `Idempotency-Key`, after the number of seconds in `Retry-After` if it is set, else with exponential backoff. If the error persists, tell support the `request_id`.",
    operation: "getHealth",
    related: ["rate_limit.exceeded", "idempotency.in_progress"],
  },
} as const satisfies ErrorEntries
