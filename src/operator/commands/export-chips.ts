import { counted } from "../../platform/counted.ts"
import { inParts, writeWhole } from "../../platform/whole-file.ts"
import { type ExportedChip, exportedChips } from "../../resources/encodings/chip-export.ts"
import { type Command, formatOf, UsageError } from "./command.ts"

export const exportChips: Command = {
  name: "chips export",
  does: "writes all chips of an organization to a file, without keys",
  takes: "--organization ID --file F.csv|F.json",
  options: { organization: true, file: true },
  plan(values) {
    const file = values.required("file")
    const format = formatOf(file)
    if (!format) throw new UsageError("chips export takes a --file that ends with .csv or .json")
    return async ({ context }) => {
      const rows = exportedChips(context, values.required("organization"))
      const exported = await writeRows(file, format === "csv" ? csv : json, rows)
      return { document: { exported, file }, text: `${counted(exported, "chip is", "chips are")} in ${file}` }
    }
  },
}

type Format = { head: string; row(chip: ExportedChip, number: number): string; end: string }

const columns = [
  "chip_id",
  "uid",
  "is_test",
  "key_set_id",
  "key_version",
  "unit_id",
  "counter",
  "scan_count",
  "skipped_count",
  "refused_count",
  "tamper",
  "created_at",
  "paired_at",
  "retired_at",
] as const satisfies (keyof ExportedChip)[]

const csv: Format = {
  head: `${columns.join(",")}\n`,
  row: (chip) => `${columns.map((column) => chip[column] ?? "").join(",")}\n`,
  end: "",
}

const json: Format = {
  head: "[",
  row: (chip, number) => `${number === 0 ? "\n" : ",\n"}${JSON.stringify(chip)}`,
  end: "\n]\n",
}

/** Returns how many rows were written. */
async function writeRows(path: string, format: Format, rows: AsyncIterable<ExportedChip>): Promise<number> {
  let count = 0
  async function* texts() {
    yield format.head
    for await (const chip of rows) yield format.row(chip, count++)
    yield format.end
  }
  await writeWhole(path, inParts(texts()))
  return count
}
