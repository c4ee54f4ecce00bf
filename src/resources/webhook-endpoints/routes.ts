import { eventBody } from "../../engine/events/body.ts"
import { numberEvents } from "../../engine/events/numbering.ts"
import { instantOf, listRoute } from "../../http/list.ts"
import { NoContent, type Route, readRoute, writeRoute } from "../../http/route.ts"
import { pathId } from "../../platform/fields.ts"
import { eventResource } from "../events/model.ts"
import { checkedUrl } from "./address.ts"
import {
  createdWebhookEndpoint,
  createReplayBody,
  createWebhookEndpointBody,
  createWebhookSecretBody,
  createWebhookTestBody,
  updateWebhookEndpointBody,
  webhookDelivery,
  webhookEndpointResource,
  webhookReplay,
} from "./model.ts"
import { presentWebhookDelivery, presentWebhookEndpoint, presentWithSecret } from "./present.ts"
import {
  createWebhookEndpoint,
  createWebhookReplay,
  createWebhookTest,
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  listWebhookDeliveries,
  listWebhookEndpoints,
  rotateWebhookSecret,
  updateWebhookEndpoint,
} from "./service.ts"

const one = "/v1/webhook-endpoints/{webhook_endpoint_id}"
const params = { webhook_endpoint_id: pathId("The webhook endpoint's id.") }
const errors = ["webhook_endpoint.not_found"] as const

export const webhookEndpointRoutes: Route[] = [
  writeRoute({
    operation: "createWebhookEndpoint",
    summary: "Create a webhook endpoint",
    description:
      "Registers a URL of yours to which events are sent as they happen, signed according to Standard Webhooks with the `secret`, which only this response shows. At most 20 per organization. The URL must be reachable from the Internet; `http:` is accepted only for localhost, and only if the service is on localhost too.",
    method: "POST",
    path: "/v1/webhook-endpoints",
    credentials: ["api_key"],
    idempotent: true,
    body: createWebhookEndpointBody,
    status: 201,
    response: createdWebhookEndpoint,
    errors: ["quota.exceeded"],
    prepare: ({ config }, _caller, { body }) => checkedUrl(config, body.url),
    async write(turn, { context, caller, body, prepared: url }) {
      const { endpoint, secret } = await createWebhookEndpoint(turn, context.config.service_secret, caller, {
        body,
        url,
      })
      return {
        body: presentWithSecret(endpoint, secret),
        location: `/v1/webhook-endpoints/${endpoint.id}`,
      }
    },
  }),
  listRoute({
    operation: "listWebhookEndpoints",
    summary: "List webhook endpoints",
    description: "The organization's webhook endpoints, newest first, without their secrets.",
    path: "/v1/webhook-endpoints",
    credentials: ["api_key"],
    plural: "webhook_endpoints",
    entries: "Webhook endpoints, newest first.",
    item: webhookEndpointResource,
    read: (context, caller, _filters, page) => listWebhookEndpoints(context.db.read, caller, { page }),
    present: presentWebhookEndpoint,
  }),
  readRoute({
    operation: "getWebhookEndpoint",
    summary: "Get a webhook endpoint",
    description:
      "One webhook endpoint. It is `paused` if you paused it, or if ten attempts at one event failed.",
    path: one,
    params,
    credentials: ["api_key"],
    response: webhookEndpointResource,
    errors,
    async read(context, caller, { params }) {
      const endpoint = await getWebhookEndpoint(context.db.read, caller, params.webhook_endpoint_id)
      return { body: presentWebhookEndpoint(endpoint) }
    },
  }),
  writeRoute({
    operation: "updateWebhookEndpoint",
    summary: "Change, pause or enable a webhook endpoint",
    description:
      "Changes only the fields that are sent. An endpoint that is enabled again gets the events that were waiting when it was paused; for those that happened meanwhile, ask for a replay.",
    method: "PATCH",
    path: one,
    params,
    credentials: ["api_key"],
    body: updateWebhookEndpointBody,
    status: 200,
    response: webhookEndpointResource,
    errors,
    prepare: async ({ config }, _caller, { body }) =>
      body.url === undefined ? null : await checkedUrl(config, body.url),
    async write(turn, { caller, params, body, prepared: url }) {
      const endpoint = await updateWebhookEndpoint(turn, caller, params.webhook_endpoint_id, { body, url })
      return { body: presentWebhookEndpoint(endpoint) }
    },
  }),
  writeRoute({
    operation: "deleteWebhookEndpoint",
    summary: "Delete a webhook endpoint",
    description: "No more events are sent to it, and those that were waiting for it are discarded.",
    method: "DELETE",
    path: one,
    params,
    credentials: ["api_key"],
    status: 204,
    response: NoContent,
    errors,
    async write(turn, { caller, params }) {
      await deleteWebhookEndpoint(turn, caller, params.webhook_endpoint_id)
      return { body: null }
    },
  }),
  writeRoute({
    operation: "createWebhookSecret",
    summary: "Create a new secret for a webhook endpoint",
    description:
      "Creates a new signing secret, which only this response shows. The previous secret stays valid for 24 hours: during that time deliveries are signed with both, so that a receiver can change over without a gap. At most five secrets can be valid at a time: a sixth gets 429 `rate_limit.exceeded`, and `Retry-After` says when the oldest expires.",
    method: "POST",
    path: `${one}/secrets`,
    params,
    credentials: ["api_key"],
    idempotent: true,
    body: createWebhookSecretBody,
    status: 201,
    response: createdWebhookEndpoint,
    errors,
    async write(turn, { context, caller, params }) {
      const secret = context.config.service_secret
      const made = await rotateWebhookSecret(turn, secret, caller, params.webhook_endpoint_id)
      return { body: presentWithSecret(made.endpoint, made.secret) }
    },
  }),
  writeRoute({
    operation: "createWebhookTest",
    summary: "Send a test event to a webhook endpoint",
    description:
      "Records a `webhook_endpoint.test` event, which is sent only to this endpoint, whatever its `event_types`.",
    method: "POST",
    path: `${one}/tests`,
    params,
    credentials: ["api_key"],
    idempotent: true,
    body: createWebhookTestBody,
    status: 201,
    response: eventResource,
    errors: [...errors, "webhook_endpoint.paused"],
    async write(turn, { caller, params }) {
      const event = await createWebhookTest(turn, caller, params.webhook_endpoint_id)
      return { body: eventBody(event), location: `/v1/events/${event.id}` }
    },
  }),
  listRoute({
    operation: "listWebhookDeliveries",
    summary: "List the deliveries to a webhook endpoint",
    description: "Every attempt to deliver an event, newest first, with its result.",
    path: `${one}/deliveries`,
    params,
    credentials: ["api_key"],
    plural: "deliveries",
    entries: "Attempts, newest first.",
    item: webhookDelivery,
    errors,
    read: (context, caller, _filters, page, params) =>
      listWebhookDeliveries(context.db.read, caller, params.webhook_endpoint_id, { page }),
    present: presentWebhookDelivery,
  }),
  writeRoute({
    operation: "createWebhookReplay",
    summary: "Replay events to a webhook endpoint",
    description:
      "Sends one event again (`event_id`, of any type), or all events kept since a time (`created_after`), of the types that the endpoint asks for. Events that wait for another attempt are sent at once, and their attempts are counted from 1 again: with `event_id` those of the same unit, otherwise all. A paused endpoint gets the events once it is enabled. Events keep their ids, so a receiver can recognize those that it already has.",
    method: "POST",
    path: `${one}/replays`,
    params,
    credentials: ["api_key"],
    idempotent: true,
    body: createReplayBody,
    status: 201,
    response: webhookReplay,
    errors: [...errors, "event.not_found"],
    // Numbers events first: those just recorded would otherwise be left out.
    prepare: async (context, { organization_id }) => void (await numberEvents(context, organization_id)),
    async write(turn, { caller, params, body }) {
      const since = instantOf(body.created_after, "created_after")
      return { body: await createWebhookReplay(turn, caller, params.webhook_endpoint_id, { ...body, since }) }
    },
  }),
]
