import type { WebhookDeliveryRow, WebhookEndpointRow } from "../../db/event-schema.ts"
import type { CreatedWebhookEndpoint, WebhookDelivery, WebhookEndpointResource } from "./model.ts"

type EventTypes = WebhookEndpointResource["event_types"]

export function presentWebhookEndpoint(endpoint: WebhookEndpointRow): WebhookEndpointResource {
  return {
    id: endpoint.id,
    url: endpoint.url,
    event_types: endpoint.event_types as EventTypes,
    description: endpoint.description,
    status: endpoint.status,
    failure: endpoint.failure,
    created_at: endpoint.created_at.toISOString(),
  }
}

export function presentWithSecret(endpoint: WebhookEndpointRow, secret: string): CreatedWebhookEndpoint {
  return { ...presentWebhookEndpoint(endpoint), secret }
}

export function presentWebhookDelivery(delivery: WebhookDeliveryRow): WebhookDelivery {
  return {
    id: delivery.id,
    event_id: delivery.event_id,
    attempt: delivery.attempt,
    status: delivery.status,
    response_status: delivery.response_status,
    error: delivery.error,
    milliseconds: delivery.milliseconds,
    created_at: delivery.created_at.toISOString(),
  }
}
