/** Wake-ups from those who make work to those who do it. They carry no truth: the database does. */
export type WakeUps = {
  /** Says that a queue has work; returns at once and never fails. */
  wake(queue: string): void
  /** Calls `callback` whenever the queue is woken, until the returned function is called. */
  onWake(queue: string, callback: () => void): () => void
  close(): Promise<void>
}

/** Wake-ups inside one process. */
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
