import { readFileSync } from "node:fs"
import { inTurn } from "../context.ts"
import { parseChipFile } from "../organizations/chip-file.ts"
import { presentStockChip } from "../organizations/model.ts"
import {
  importChips,
  listChipsOfOrganization,
  requireOrganization,
  retireChip,
  sealChips,
} from "../organizations/service.ts"
import { type Command, UsageError } from "./command.ts"
import { table } from "./text.ts"

export const chipCommands: Command[] = [
  {
    name: "chips import",
    takes: "--organization ID --file F.json|F.csv",
    options: { organization: true, file: true },
    plan(values) {
      const organization_id = values.required("organization")
      const file = values.required("file")
      const format = formatOf(file)
      return async ({ context }) => {
        await requireOrganization(context.db.read, organization_id)
        const lines = parseChipFile(readFileSync(file, "utf8"), format)
        const { service_secret } = context.config
        const sealed = sealChips(service_secret, lines, (done) => showProgress("sealing", done, lines.length))
        const imported = await inTurn(context, null, (turn) =>
          importChips(turn, organization_id, sealed, (done) => showProgress("storing", done, lines.length)),
        )
        return { document: { organization_id, imported }, text: `${imported} chips are imported` }
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
function showProgress(doing: string, done: number, total: number): void {
  if (!process.stderr.isTTY) return
  process.stderr.write(`\r\u001b[K${doing} ${done} of ${total} chips${done === total ? "\n" : ""}`)
}
