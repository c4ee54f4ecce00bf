const GROWTH_BYTES = 2 * 1_024 * 1_024

/**
 * Frees what a page of rows left behind, if the process has grown by 2 MiB. Long commands call it after each page: by
 * itself the collector lets a heap of 20 MB grow by 40 MB, and far more while statements are built.
 */
export function collectGarbage(): void {
  if (process.memoryUsage.rss() < settledBytes + GROWTH_BYTES) return
  Bun.gc(true)
  settledBytes = process.memoryUsage.rss()
}

/** The process's memory after the last collection. */
let settledBytes = 0
