const GROWTH_BYTES = 2 * 1_024 * 1_024

/**
 * Frees what a page of rows left behind, if it is much. Long commands call it after each page: left alone, the
 * collector lets a heap of 20 MB grow by 40 before it runs, and by far more while statements are built.
 */
export function collectGarbage(): void {
  if (process.memoryUsage.rss() < settledBytes + GROWTH_BYTES) return
  Bun.gc(true)
  settledBytes = process.memoryUsage.rss()
}

/** What the process held after the last collection. */
let settledBytes = 0
