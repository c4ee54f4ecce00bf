import { assign, setup } from "xstate"
import { type EffectFailure, failure } from "./failures.ts"

type WebhookEndpointEvent =
  | { type: "PAUSE" }
  | { type: "ENABLE" }
  | { type: "GAVE_UP"; last_error: string }
  | { type: "DELETE" }

/**
 * A webhook endpoint: enabled until its organization pauses it, or until every attempt to deliver one event has failed.
 */
export const webhookEndpointMachine = setup({
  types: {
    input: {} as Record<string, never>,
    context: {} as { failure: EffectFailure | null },
    events: {} as WebhookEndpointEvent,
  },
  actions: {
    recordFailure: assign((_, { last_error }: { last_error: string }) => ({
      failure: failure("webhook_endpoint.given_up", last_error),
    })),
    forgetFailure: assign({ failure: null }),
  },
}).createMachine({
  id: "webhook-endpoint",
  context: { failure: null },
  initial: "enabled",
  states: {
    enabled: {
      on: {
        PAUSE: "paused",
        GAVE_UP: { target: "paused", actions: { type: "recordFailure", params: ({ event }) => event } },
        DELETE: "deleted",
      },
    },
    paused: {
      on: { ENABLE: { target: "enabled", actions: "forgetFailure" }, DELETE: "deleted" },
    },
    deleted: { type: "final" },
  },
})
