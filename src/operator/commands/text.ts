/** What a cell or field shows for a value: `-` for none. */
type Shown = string | number | boolean | Date | null | undefined
const none = "-"

/** A table with a header line and columns as wide as needed; empty columns are left out. */
export function table(header: string[], rows: Shown[][]): string {
  if (rows.length === 0) return "none"
  const columns = header
    .map((name, column) => [name, ...rows.map((row) => shown(row[column]))])
    .filter(([, ...cells]) => cells.some((cell) => cell !== none))
    .map(padded)
  return [header, ...rows]
    .map((_row, line) =>
      columns
        .map((column) => column[line])
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

function padded(cells: string[]): string[] {
  const width = cells.reduce((most, cell) => Math.max(most, Bun.stringWidth(cell)), 0)
  return cells.map((cell) => cell + " ".repeat(width - Bun.stringWidth(cell)))
}

/** A line per field: its name and its value. */
export function fields(values: Record<string, Shown>): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length))
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}`)
    .join("\n")
}

function shown(value: Shown): string {
  if (value === null || value === undefined || value === "") return none
  return value instanceof Date ? value.toISOString() : String(value)
}
