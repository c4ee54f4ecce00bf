import { readFileSync } from "node:fs"
import { inTurn } from "../context.ts"
import { parseChipFile } from "../organizations/chip-file.ts"
import { importChips } from "../organizations/chip-import.ts"
import { presentStockChip } from "../organizations/model.ts"
import { listChipsOfOrganization, requireOrganization, retireChip } from "../organizations/service.ts"
import { type Command, UsageError } from "./command.ts"
import { table } from "./text.ts"

export const chipCommands: Command[] = [
  {
    name: "chips import",
    takes: "--organization ID --file F.json|F.csv",
    about: `The file has one chip in each line or entry: chip_id, uid, meta_key and file_key in hexadecimal, and optionally
the last counter that was seen. It is checked as a whole first: with one wrong line nothing is imported.
A long file is stored in parts. If that is cut short, run the same command again: it goes on where it stopped.
Chips that are stored alike are left as they are and counted as already_imported; a chip that is stored with
other values refuses the file.`,
    options: { organization: true, file: true },
    plan(values) {
      const organization_id = values.required("organization")
      const file = values.required("file")
      const format = formatOf(file)
      return async ({ context }) => {
        await requireOrganization(context.db.read, organization_id)
        const lines = parseChipFile(readFileSync(file, "utf8"), format)
        const { imported, already_imported } = await importChips(
          context,
          organization_id,
          lines,
          showProgress,
        )
        const before = already_imported === 0 ? "" : `, ${already_imported} were imported before`
        return {
          document: { organization_id, imported, already_imported },
          text: `${imported} chips are imported${before}`,
        }
      }
    },
  },
  {
    name: "chips list",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const rows = await listChipsOfOrganization(context.db.read, values.required("organization"))
        const chips = rows.map(presentStockChip)
        return {
          document: { chips },
          text: table(
            ["CHIP ID", "TEST", "UNIT", "COUNTER", "SCANS", "RESERVED FOR", "RETIRED"],
            chips.map((chip) => [
              chip.chip_id,
              chip.is_test ? "yes" : "no",
              chip.unit_id,
              chip.counter,
              chip.scan_count,
              chip.reserved_for,
              chip.retired_at,
            ]),
          ),
        }
      },
  },
  {
    name: "chips retire",
    takes: "CHIP_ID --organization ID",
    argument: "CHIP_ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const input = { organization_id: values.required("organization"), chip_id: values.argument }
        const chip = presentStockChip(await inTurn(context, null, (turn) => retireChip(turn, input)))
        return { document: chip, text: `chip ${chip.chip_id} is retired since ${chip.retired_at}` }
      },
  },
]

function formatOf(file: string): "json" | "csv" {
  const ending = /\.(json|csv)$/i.exec(file)?.[1]?.toLowerCase()
  if (ending === "json" || ending === "csv") return ending
  throw new UsageError("chips import takes a --file that ends with .json or .csv")
}

/** On a terminal only: one line that is written over. */
function showProgress(step: string, done: number, total: number): void {
  if (!process.stderr.isTTY) return
  process.stderr.write(`\r\u001b[K${step} ${done} of ${total} chips${done === total ? "\n" : ""}`)
}
