/** What a cell or field shows for a value: `-` for none. */
type Shown = string | number | boolean | Date | null | undefined
const none = "-"

/** The field of a row that a column shows, or what it makes of the row. */
type Column<Row> = ShownField<Row> | ((row: Row) => Shown)
type ShownField<Row> = { [Name in keyof Row]: Row[Name] extends Shown ? Name : never }[keyof Row]

/** A table of rows by the titles of its columns, which are as wide as needed; empty ones are left out. */
export function table<Row extends object>(
  rows: readonly Row[],
  columns: Readonly<Record<string, Column<Row>>>,
): string {
  if (rows.length === 0) return "none"
  const filled = Object.entries(columns)
    .map(([title, column]) => [title, ...rows.map((row) => shown(valueIn(row, column)))])
    .filter(([, ...cells]) => cells.some((cell) => cell !== none))
    .map(padded)
  return Array.from({ length: rows.length + 1 }, (_, line) =>
    filled
      .map((cells) => cells[line])
      .join("  ")
      .trimEnd(),
  ).join("\n")
}

function valueIn<Row extends object>(row: Row, column: Column<Row>): Shown {
  return typeof column === "function" ? column(row) : (row[column] as Shown)
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
