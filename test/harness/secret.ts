import type { Secret } from "../../src/platform/sealing.ts"

/** The secret of a service that was never rotated. */
export function neverRotated(current: string): Secret {
  return { current, previous: null }
}
