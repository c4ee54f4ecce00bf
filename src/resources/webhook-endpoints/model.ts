import { type Static, Type } from "@sinclair/typebox"
import { webhookDeliveryStatuses, webhookEndpointStatuses } from "../../db/statuses.ts"
import { createdAt, described, failure, id, nullable, oneOf, status, text } from "../../platform/fields.ts"
import { eventType } from "../events/model.ts"

const url = Type.String({
  minLength: 1,
  maxLength: 2_048,
  description:
    "Where events are sent: an https URL that is reachable from the Internet. Redirects are not followed.",
  "x-shown": { format: "uri" },
})

const wantedTypes = nullable(
  Type.Array(eventType, {
    minItems: 1,
    maxItems: 50,
    description: "The types of events to send; null for all, which is the default.",
  }),
)

const note = nullable(text(256, "A note for people."))

export const createWebhookEndpointBody = Type.Object(
  { url, event_types: Type.Optional(wantedTypes), description: Type.Optional(note) },
  { title: "CreateWebhookEndpoint", additionalProperties: false },
)
export type CreateWebhookEndpointBody = Static<typeof createWebhookEndpointBody>

export const updateWebhookEndpointBody = Type.Object(
  {
    url: Type.Optional(url),
    event_types: Type.Optional(wantedTypes),
    description: Type.Optional(note),
    status: Type.Optional(
      oneOf(
        webhookEndpointStatuses,
        "`paused` stops deliveries; `enabled` continues with the events that were waiting. Events that happen during the pause are not sent by themselves: ask for a replay.",
      ),
    ),
  },
  { title: "UpdateWebhookEndpoint", additionalProperties: false, minProperties: 1 },
)
export type UpdateWebhookEndpointBody = Static<typeof updateWebhookEndpointBody>

const shown = {
  id,
  url,
  event_types: wantedTypes,
  description: nullable(Type.String({ description: "A note for people." })),
  status: status(webhookEndpointStatuses, {
    enabled: "events are sent to it.",
    paused:
      "no events are sent until you enable it again; `failure` says why if you did not pause it yourself.",
  }),
  failure,
  created_at: createdAt,
}

export const webhookEndpointResource = Type.Object(shown, {
  title: "WebhookEndpoint",
  additionalProperties: false,
})
export type WebhookEndpointResource = Static<typeof webhookEndpointResource>

export const createdWebhookEndpoint = Type.Object(
  {
    ...shown,
    secret: Type.String({
      pattern: "^whsec_[0-9A-Za-z+/=]+$",
      description: "The secret that signs deliveries (Standard Webhooks). It is shown only here.",
    }),
  },
  { title: "CreatedWebhookEndpoint", additionalProperties: false },
)
export type CreatedWebhookEndpoint = Static<typeof createdWebhookEndpoint>

export const webhookDelivery = Type.Object(
  {
    id,
    event_id: described(id, "The event, which is also the `webhook-id` of the delivery."),
    attempt: Type.Integer({
      minimum: 1,
      description:
        "The number of the attempt at this event; it starts at 1 again after a replay, and after the endpoint is enabled again.",
    }),
    status: oneOf(
      webhookDeliveryStatuses,
      "`delivered` if the endpoint responded with 2xx within 10 seconds.",
    ),
    response_status: nullable(
      Type.Integer({ description: "The HTTP status of the endpoint's response, or null if there was none." }),
    ),
    error: nullable(Type.String({ description: "Why it failed, for people, or null." })),
    milliseconds: Type.Integer({ minimum: 0, description: "How long the attempt took." }),
    created_at: createdAt,
  },
  { title: "WebhookDelivery", additionalProperties: false },
)
export type WebhookDelivery = Static<typeof webhookDelivery>

export const createWebhookSecretBody = Type.Object(
  {},
  { title: "CreateWebhookSecret", additionalProperties: false },
)

export const createWebhookTestBody = Type.Object(
  {},
  { title: "CreateWebhookTest", additionalProperties: false },
)

export const createReplayBody = Type.Object(
  {
    created_after: Type.Optional(
      Type.String({
        pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|\\+00:00)$",
        description: "All events since this time (inclusive): ISO 8601 in UTC.",
        "x-message": "must be a time in UTC such as 2026-01-31T12:00:00Z",
        "x-shown": { format: "date-time" },
      }),
    ),
    event_id: Type.Optional(described(id, "Only this event.")),
  },
  { title: "CreateWebhookReplay", additionalProperties: false, minProperties: 1, maxProperties: 1 },
)

export const webhookReplay = Type.Object(
  {
    endpoint_id: described(id, "The endpoint that the events are sent to."),
    created_after: nullable(
      Type.String({ description: "The time since which events are sent again; null for a single event." }),
    ),
    event_id: described(nullable(id), "The event that is sent again; null for all events since a time."),
    created_at: createdAt,
  },
  { title: "WebhookReplay", additionalProperties: false },
)
export type WebhookReplay = Static<typeof webhookReplay>
