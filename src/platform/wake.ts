/** Wake-ups from those who create work to those who do it. They are hints: the work itself is in the database. */
export type WakeUps = {
  /** Announces that a queue has work. Returns at once and never throws. */
  wake(queue: string): void
  /** Calls `callback` whenever the queue is woken. Returns a function that stops this. */
  onWake(queue: string, callback: () => void): () => void
  close(): Promise<void>
}

/** Creates wake-ups within one process. */
export function createWakeUps(): WakeUps {
  const listeners = new Map<string, Set<() => void>>()
  return {
    wake(queue) {
      for (const callback of listeners.get(queue) ?? []) callback()
    },
    onWake(queue, callback) {
      const callbacks = listeners.get(queue) ?? new Set()
      listeners.set(queue, callbacks.add(callback))
      return () => callbacks.delete(callback)
    },
    async close() {
      listeners.clear()
    },
  }
}
