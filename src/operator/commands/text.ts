/** What a cell or field shows for a value: `-` for none. */
type Shown = string | number | boolean | Date | null | undefined

/** A table with a header line and columns as wide as they must be. */
export function table(header: string[], rows: Shown[][]): string {
  if (rows.length === 0) return "none"
  const lines = [header, ...rows.map((row) => row.map(shown))]
  const widths = header.map((_name, column) =>
    lines.reduce((width, line) => Math.max(width, Bun.stringWidth(line[column] ?? "")), 0),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

/** One line for each field: its name and its value. */
export function fields(values: Record<string, Shown>): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length))
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}`)
    .join("\n")
}

function shown(value: Shown): string {
  if (value === null || value === undefined || value === "") return "-"
  return value instanceof Date ? value.toISOString() : String(value)
}
