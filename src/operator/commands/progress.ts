/** On a terminal only: one line with a bar that is overwritten. */
export function showProgress(step: string, done: number, total: number, things: string): void {
  if (!process.stderr.isTTY) return
  const filled = Math.round((done / total) * BAR_CELLS)
  const bar = `${"█".repeat(filled)}${"░".repeat(BAR_CELLS - filled)}`
  process.stderr.write(`\r\u001b[K${bar} ${step} ${done} of ${total} ${things}${done === total ? "\n" : ""}`)
}

const BAR_CELLS = 24

/** The same where nobody knows how many there are in all. */
export function showCount(kind: string, done: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${kind.replaceAll("_", " ")}: ${done}`)
}
