/** How much one process sends to webhook endpoints at the same time, and who may send how much of it. */
export type Room = {
  /** How much one endpoint may have on its way. */
  share(): number
  /** Takes a place for one delivery, where there is one. */
  enter(): boolean
  leave(): void
}

/** Of the 256 requests that the runtime lets out of a process at once: chains are asked through the others. */
const places = 128

/**
 * Endpoints at work have equal shares, and one share is left for whoever comes: those that take long to answer hold up
 * neither each other nor anybody else. `atWork` counts the endpoints.
 */
export function createRoom(atWork: () => number): Room {
  let taken = 0
  return {
    share: () => Math.max(Math.floor(places / (atWork() + 1)), 1),
    enter() {
      if (taken >= places) return false
      taken += 1
      return true
    },
    leave() {
      taken -= 1
    },
  }
}
