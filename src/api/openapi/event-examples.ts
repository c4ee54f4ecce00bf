/** The examples of events and webhook endpoints, about the unit, collection and claim of the other examples. */
export function eventExamplesOf({ unit_id, collection_id, claim, page }: Story) {
  const event = {
    id: "0199fc1b-2f4a-7b18-8c5d-3e7a9f1b2c09",
    type: "claim.claimed",
    created_at: "2026-09-12T17:31:09.000Z",
    unit_id,
    collection_id,
    is_test: true,
    data: claim,
  }

  const listedEvents = { events: [event], pagination: page }

  const streamedEvent = `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

  const createWebhookEndpoint = {
    url: "https://shop.example/webhooks/units",
    event_types: ["claim.claimed", "ownership.changed"],
    description: "Who owns what, for the shop",
  }

  const webhookEndpoint = {
    id: "0199c2e3-5d17-7f42-b9a8-6c1e0d4f3b10",
    url: "https://shop.example/webhooks/units",
    event_types: ["claim.claimed", "ownership.changed"],
    description: "Who owns what, for the shop",
    status: "enabled",
    failure: null,
    created_at: "2026-09-01T07:30:00.000Z",
  }

  const createdWebhookEndpoint = {
    ...webhookEndpoint,
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1nT8qPzq3Vc=",
  }

  const rotatedWebhookEndpoint = {
    ...webhookEndpoint,
    secret: "whsec_plJ3nmyCDGBKInavdOK15jsl4Tz0cX7vQdYb1mWk9Hs=",
  }

  const listedWebhookEndpoints = { webhook_endpoints: [webhookEndpoint], pagination: page }

  const updateWebhookEndpoint = { status: "enabled" }

  const testEvent = {
    id: "0199c2e4-0a6b-7d93-a1f4-8b2c5e7d9f11",
    type: "webhook_endpoint.test",
    created_at: "2026-09-01T07:31:00.000Z",
    unit_id: null,
    collection_id: null,
    is_test: true,
    data: webhookEndpoint,
  }

  const delivery = {
    id: "0199fc1b-2f9e-7c05-9d3a-1b6f4e8a7c12",
    event_id: event.id,
    attempt: 1,
    status: "delivered",
    response_status: 204,
    error: null,
    milliseconds: 84,
    created_at: "2026-09-12T17:31:09.000Z",
  }

  const listedDeliveries = { deliveries: [delivery], pagination: page }

  const createReplay = { created_after: "2026-09-12T00:00:00.000Z" }

  const replay = {
    endpoint_id: webhookEndpoint.id,
    created_after: "2026-09-12T00:00:00.000Z",
    event_id: null,
    created_at: "2026-09-13T08:00:00.000Z",
  }

  return {
    listEvents: { response: listedEvents },
    streamEvents: { response: streamedEvent },
    getEvent: { response: event },
    createWebhookEndpoint: { request: createWebhookEndpoint, response: createdWebhookEndpoint },
    listWebhookEndpoints: { response: listedWebhookEndpoints },
    getWebhookEndpoint: { response: webhookEndpoint },
    updateWebhookEndpoint: { request: updateWebhookEndpoint, response: webhookEndpoint },
    deleteWebhookEndpoint: {},
    createWebhookSecret: { request: {}, response: rotatedWebhookEndpoint },
    createWebhookTest: { request: {}, response: testEvent },
    listWebhookDeliveries: { response: listedDeliveries },
    createWebhookReplay: { request: createReplay, response: replay },
  }
}

type Story = {
  unit_id: string
  collection_id: string
  claim: object
  page: { limit: number; has_more: boolean; next_cursor: null }
}
