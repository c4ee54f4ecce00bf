import { setup } from "xstate"

type SessionTokenInput = { ttl_seconds: number }

type SessionTokenEvent = { type: "REVOKE" }

/** A session token: valid until it expires or is revoked. */
export const sessionTokenMachine = setup({
  types: {
    input: {} as SessionTokenInput,
    context: {} as { ttl_seconds: number },
    events: {} as SessionTokenEvent,
  },
  delays: { ttl: ({ context }) => context.ttl_seconds * 1000 },
}).createMachine({
  id: "session-token",
  context: ({ input }) => ({ ttl_seconds: input?.ttl_seconds ?? 0 }),
  initial: "valid",
  states: {
    valid: {
      after: { ttl: "expired" },
      on: { REVOKE: "revoked" },
    },
    expired: { type: "final" },
    revoked: { type: "final" },
  },
})
