import { closeSync, openSync, readFileSync, readSync } from "node:fs"
import { type Context, inTurn } from "../../platform/context.ts"
import { counted } from "../../platform/counted.ts"
import { parseChipId } from "../../platform/ids.ts"
import { chipLines } from "../../resources/chip-stock/file.ts"
import { importChips } from "../../resources/chip-stock/import.ts"
import { presentStockChip } from "../../resources/chip-stock/present.ts"
import { moveChips, pagesOfStock, retireChip } from "../../resources/chip-stock/service.ts"
import { signalsOf } from "../../resources/chips/signals.ts"
import { requireOrganization } from "../../resources/organizations/service.ts"
import { type Command, formatOf, UsageError, type Values } from "./command.ts"
import { showProgress } from "./progress.ts"

export const chipCommands: Command[] = [
  {
    name: "chips import",
    does: "imports chips that were encoded elsewhere, with their keys",
    takes: "--organization ID --file F.json|F.csv",
    about: `The file has one chip per line or entry: chip_id, uid, meta_key and file_key in hexadecimal. Optional are counter,
the last counter seen, and how the tag is configured: mac and tamper, true or false, and mac_input, the part of the URL that
c covers, with {e} and {enc} for the values; it is empty by default, or {enc}&c= with tamper.
The whole file is checked first: if one line is wrong, nothing is imported.
A long file is stored in parts. If that is interrupted, run the same command again: it continues where it stopped.
Chips already imported with the same values are counted as already_imported and stay as they are. For chips that were
never paired or tapped, other keys, mac, tamper and mac_input, and a higher counter, replace the stored ones, and another
uid if the keys are the same. Other values for any other chip are an error, but keys that can no longer be decrypted are
replaced.`,
    options: { organization: true, file: true },
    plan(values) {
      const organization_id = values.required("organization")
      const file = values.required("file")
      const format = formatOf(file)
      if (!format) throw new UsageError("chips import takes a --file that ends with .json or .csv")
      return async ({ context }) => {
        await requireOrganization(context.db.read, organization_id)
        const lines = { [Symbol.iterator]: () => chipLines(piecesOf(file), format) }
        const { imported, replaced, changed, already_imported } = await importChips(
          context,
          organization_id,
          lines,
          (step, done, total) => showProgress(step, done, total, "chips"),
        )
        const before = already_imported === 0 ? "" : `, ${already_imported} had been imported before`
        const anew =
          replaced === 0 ? "" : `, the keys of ${replaced} could not be decrypted and were replaced`
        const otherwise = changed === 0 ? "" : `, ${changed} that were never used were changed`
        return {
          document: { organization_id, imported, replaced, changed, already_imported },
          text: `${counted(imported, "chip was", "chips were")} imported${anew}${otherwise}${before}`,
        }
      }
    },
  },
  {
    name: "chips list",
    does: "lists an organization's chips, without keys",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const { id } = await requireOrganization(context.db.read, values.required("organization"))
        const pages = presentedStock(context, id)
        return { pieces: { json: jsonPieces(pages), text: textPieces(pages) } }
      },
  },
  {
    name: "chips retire",
    does: "retires an unpaired chip for good",
    takes: "CHIP_ID --organization ID",
    argument: "CHIP_ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const input = { organization_id: values.required("organization"), chip_id: values.argument }
        const row = await inTurn(context, null, (turn) => retireChip(turn, input))
        const chip = presentStockChip({ ...row, ...(await signalsOf(context.db.read, row.chip_id)) })
        return { document: chip, text: `chip ${chip.chip_id} was retired at ${chip.retired_at}` }
      },
  },
  {
    name: "chips move",
    does: "moves unpaired chips to another organization",
    takes: "--from ORGANIZATION --to ORGANIZATION (--chip CHIP_ID | --file F)",
    about: `Moves chips that were never paired to another organization, with their keys and counters. The file has one chip id
per line. Either all are moved or none; chips that are already there stay.`,
    options: { from: true, to: true, chip: false, file: false },
    plan(values) {
      const chipIds = chipIdsIn(values)
      return async ({ context }) => {
        const input = { from: values.required("from"), to: values.required("to"), chip_ids: chipIds }
        const moved = await inTurn(context, null, (turn) => moveChips(turn, input))
        const there = chipIds.length - moved
        const before = there === 0 ? "" : `, ${there} were already there`
        return {
          document: { from: input.from, to: input.to, moved, already_moved: there },
          text: `${counted(moved, "chip was", "chips were")} moved${before}`,
        }
      }
    },
  },
]

/** The ids of `--chip` or of the lines of `--file`. */
function chipIdsIn(values: Values): string[] {
  const [chip, file] = [values.option("chip"), values.option("file")]
  if ((chip === null) === (file === null)) throw new UsageError("chips move takes either --chip or --file")
  const given = chip === null ? readFileSync(file ?? "", "utf8").split(/\r?\n/) : [chip]
  const ids = given
    .map((line) => line.trim())
    .filter((line) => line !== "" && line.toLowerCase() !== "chip_id")
  const wrong = ids.find((id) => !parseChipId(id))
  if (wrong !== undefined)
    throw new UsageError(`"${wrong.slice(0, 20)}" is not a chip id of 10 hexadecimal digits`)
  return [...new Set(ids.map((id) => id.toUpperCase()))]
}

type StockChip = ReturnType<typeof presentStockChip>

async function* presentedStock(context: Context, organizationId: string): AsyncGenerator<StockChip[]> {
  for await (const page of pagesOfStock(context, organizationId)) yield page.map(presentStockChip)
}

async function* jsonPieces(pages: AsyncIterable<StockChip[]>): AsyncGenerator<string> {
  yield '{\n  "chips": ['
  let isFirst = true
  for await (const chips of pages) {
    yield `${isFirst ? "" : ","}${chips.map((chip) => `\n    ${JSON.stringify(chip)}`).join()}`
    isFirst = false
  }
  yield isFirst ? "]\n}\n" : "\n  ]\n}\n"
}

async function* textPieces(pages: AsyncIterable<StockChip[]>): AsyncGenerator<string> {
  let isFirst = true
  for await (const chips of pages) {
    yield `${isFirst ? lineOf(listColumns) : ""}${chips.map((chip) => lineOf(cellsOf(chip))).join("")}`
    isFirst = false
  }
  if (isFirst) yield "none\n"
}

const listColumns = [
  "CHIP ID",
  "TEST",
  "COUNTER",
  "SCANS",
  "SKIPPED",
  "REFUSED",
  "UNIT",
  "RESERVED FOR",
  "RETIRED",
]
/** Later pages are not known yet, so the columns are as wide as they may have to be. */
const listWidths = [10, 4, 8, 8, 8, 8, 36, 36, 24]

function cellsOf(chip: StockChip): string[] {
  const { chip_id, is_test, counter, scan_count, skipped_count, refused_count } = chip
  const counts = [counter, scan_count, skipped_count, refused_count].map(String)
  const { unit_id, reserved_for, retired_at } = chip
  return [chip_id, is_test ? "yes" : "no", ...counts, unit_id ?? "-", reserved_for ?? "-", retired_at ?? "-"]
}

function lineOf(cells: string[]): string {
  return `${cells
    .map((cell, column) => cell.padEnd(listWidths[column] ?? 0))
    .join("  ")
    .trimEnd()}\n`
}

/** A file in pieces, however long it is. */
function* piecesOf(path: string): Generator<string> {
  const decoder = new TextDecoder("utf-8")
  const bytes = Buffer.alloc(PIECE_BYTES)
  const file = openSync(path, "r")
  try {
    for (let read = readSync(file, bytes); read > 0; read = readSync(file, bytes))
      yield decoder.decode(bytes.subarray(0, read), { stream: true })
    yield decoder.decode()
  } finally {
    closeSync(file)
  }
}

const PIECE_BYTES = 65_536
