const GROWTH_BYTES = 2 * 1_024 * 1_024

/**
 * Gives back what a page of rows has left behind, where it is much. Long work of commands asks for it after each page:
 * left to itself the collector lets a heap of 20 MB grow by 40 before it looks, and building statements by far more.
 */
export function collectGarbage(): void {
  if (process.memoryUsage.rss() < settledBytes + GROWTH_BYTES) return
  Bun.gc(true)
  settledBytes = process.memoryUsage.rss()
}

/** What the process held after the last time. */
let settledBytes = 0
