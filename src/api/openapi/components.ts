import { failures } from "../../../machines/failures.ts"
import { eventTypes } from "../../engine/events/types.ts"
import { checkNames, verdictAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import type { CredentialKind } from "../../platform/caller.ts"
import { type ErrorCode, errorCatalogue } from "../../platform/errors.ts"
import type { JsonSchema } from "./schemas.ts"

/** The headers of responses. */
export const headers: Record<string, unknown> = {
  "X-Request-Id": header("The id of the request: quote it when you ask for support.", {
    type: "string",
    pattern: "^req_[0-9a-f-]{36}$",
  }),
  "X-RateLimit-Limit": header("How many requests the tightest rate-limit bucket holds.", {
    type: "integer",
    minimum: 0,
  }),
  "X-RateLimit-Remaining": header("How many requests that bucket has left.", { type: "integer", minimum: 0 }),
  "X-RateLimit-Reset": header("When that bucket is full again, in Unix seconds.", {
    type: "integer",
    minimum: 0,
  }),
  "Retry-After": header("Whole seconds to wait before sending the same request again.", {
    type: "integer",
    minimum: 1,
  }),
  "Idempotent-Replayed": header(
    "`true` if this is the stored response to an earlier request with the same key.",
    {
      type: "string",
      const: "true",
    },
  ),
  Location: header("The URL of what was created.", { type: "string" }),
  "WWW-Authenticate": header("The expected authentication scheme.", { type: "string", const: "Bearer" }),
}

function header(description: string, schema: JsonSchema) {
  return { description, schema }
}

/** Each kind of credential is a security scheme of its own. */
export const schemeNames: Record<CredentialKind, string> = {
  api_key: "apiKey",
  session_token: "sessionToken",
  publishable_key: "publishableKey",
}

export const securitySchemes = {
  apiKey: bearer("An API key, `end_sk_…`: for servers only, with access to the whole organization."),
  sessionToken: bearer("A session token, `end_sess_…`: returned by a tap, bound to one chip and one unit."),
  publishableKey: bearer(
    "A publishable key, `end_pk_live_…`: safe in browser code, for `POST /v1/taps` only.",
  ),
}

function bearer(description: string) {
  return { type: "http", scheme: "bearer", description }
}

/** Values known today. Callers must expect others, so schemas allow any string beside these. */
export const knownWords: Record<string, JsonSchema> = {
  KnownErrorCode: {
    type: "string",
    description: "Every `error.code` known today. Each has a page: `{docs_url}/errors/{code}`.",
    enum: Object.keys(errorCatalogue),
  },
  KnownFailureCode: {
    type: "string",
    description: "Every `failure.code` known today. Each has a page: `{docs_url}/errors/{code}`.",
    enum: Object.keys(failures),
  },
  KnownEventType: {
    type: "string",
    description: "Every type of event known today.",
    enum: [...eventTypes],
  },
  KnownTapVerdict: {
    type: "string",
    description: "Every verdict of a tap diagnosis known today.",
    enum: Object.keys(verdictAdvice),
  },
  KnownTapCheck: {
    type: "string",
    description: "Every check of a tap diagnosis known today.",
    enum: [...checkNames],
  },
}

/** The one form of every refusal. */
export const errorSchema: JsonSchema = {
  type: "object",
  description: "Every error has this form, whatever the endpoint or status.",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message", "request_id", "doc_url"],
      properties: {
        code: {
          anyOf: [{ $ref: "#/components/schemas/KnownErrorCode" }, { type: "string" }],
          description: "A stable code. Codes are added over time: treat an unknown one as a generic failure.",
        },
        message: {
          type: "string",
          description: "For people. The wording may change: never match on it.",
        },
        request_id: {
          type: "string",
          pattern: "^req_[0-9a-f-]{36}$",
          description: "The id of the request, the same as in `X-Request-Id`.",
        },
        doc_url: { type: "string", format: "uri", description: "The page about this code." },
        details: {
          type: "object",
          description: "Present only on `validation.failed`.",
          required: ["formErrors", "fieldErrors"],
          properties: {
            formErrors: {
              type: "array",
              items: { type: "string" },
              description: "What is wrong with the request as a whole.",
            },
            fieldErrors: {
              type: "object",
              additionalProperties: { type: "array", items: { type: "string" } },
              description: "What is wrong with each top-level field.",
            },
          },
        },
      },
    },
  },
}

/** A response with this code, as it is on the wire. */
export function errorExample(code: ErrorCode, docs_url: string) {
  const { title } = errorCatalogue[code]
  const error = {
    code,
    message: title,
    request_id: "req_3f2b8c1e-9d4a-4e6b-8a7c-5d1f0e2b3c4d",
    doc_url: `${docs_url}/errors/${code}`,
  }
  const details = {
    formErrors: [],
    fieldErrors: { e: ["must be a string of 32 upper-case hexadecimal digits"] },
  }
  return { summary: title, value: { error: code === "validation.failed" ? { ...error, details } : error } }
}
