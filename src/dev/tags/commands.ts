import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { ManifestLine } from "../../engine/sun/encoding/manifest.ts"
import type { Mirrors } from "../../engine/sun/encoding/tag-address.ts"
import { rolesOf } from "../../engine/sun/key-schemes.ts"
import { EncodingRefused, encodeTag, linesOfManifest, makeTag } from "./make-tag.ts"
import { type BoxedTag, openTagBox, type TagBox } from "./tag-box.ts"
import { hasWire, type TapMistakes, TapRefused, tapTag } from "./tap-tag.ts"

/** What a command prints, and the address to open in the browser, if any. */
type ChipOutput = { text: string; opens: string | null }

/** Wrong usage: one line that names what is wrong. */
export class ChipUsageError extends Error {
  override name = "ChipUsageError"
}

export const chipUsage = `NTAG 424 DNA tags in software, kept in DATA_DIR/tags.db.

  chip new  [--count N] [--url TEMPLATE] [--mac] [--tamper]     makes tags, and prints how to import them
  chip new  --manifest FILE                                     encodes tags like a station, from a manifest of chips encode
  chip tap  [CHIP_ID] [FAULTS]                                  prints the URL that a phone would read
  chip open [CHIP_ID] [FAULTS]                                  opens that URL in the browser
  chip list                                                     lists the tags

FAULTS, as tags and phones go wrong:
  --replay N     the URL of an earlier read again: 1 the last one, 2 the one before it
  --skip N       N reads before this one that nobody presents
  --lower-case   everything in lower case
  --truncate     e is cut short
  --uid-only     e without the counter
  --wrong-key    made with other keys
  --tampered     from now on the tag's wire is broken; only for tags with --tamper

CHIP_ID may be left out if there is only one tag. TEMPLATE is like https://tap.example/t/{chip_id}.
`

/** Runs one command over the tags of a folder. Throws `ChipUsageError`, `TemplateError`, `EncodingRefused`, `TapRefused`. */
export async function runChipCommand(folder: string, words: string[]): Promise<ChipOutput> {
  const { values, positionals } = parsed(words)
  const [command = "", ...rest] = positionals
  const taken = Object.hasOwn(optionsOf, command) ? optionsOf[command] : undefined
  if (!taken) throw new ChipUsageError(`there is no command chip ${command}`.trimEnd())
  const untaken = Object.keys(values).find((name) => !taken.includes(name))
  if (untaken) throw new ChipUsageError(`chip ${command} does not take --${untaken}`)
  if (rest.length > (command === "tap" || command === "open" ? 1 : 0))
    throw new ChipUsageError(`chip ${command} does not take "${rest.at(-1)}"`)
  const box = openTagBox(join(folder, "tags.db"))
  try {
    if (command === "new") return await makeTags(box, folder, values)
    if (command === "list") return { text: listed(box), opens: null }
    const { url, counter } = tapTag(box, chosen(box, rest[0]), mistakesOf(values))
    return {
      text: command === "tap" ? url : `read ${counter}: ${url}`,
      opens: command === "open" ? url : null,
    }
  } finally {
    box.close()
  }
}

const options = {
  count: { type: "string" },
  url: { type: "string" },
  manifest: { type: "string" },
  mac: { type: "boolean" },
  tamper: { type: "boolean" },
  replay: { type: "string" },
  skip: { type: "string" },
  "lower-case": { type: "boolean" },
  "uid-only": { type: "boolean" },
  "wrong-key": { type: "boolean" },
  truncate: { type: "boolean" },
  tampered: { type: "boolean" },
} as const

const howItGoesWrong = ["replay", "skip", "lower-case", "uid-only", "wrong-key", "truncate", "tampered"]

const optionsOf: Record<string, readonly string[]> = {
  new: ["count", "url", "manifest", "mac", "tamper"],
  tap: howItGoesWrong,
  open: howItGoesWrong,
  list: [],
}

type Values = ReturnType<typeof parsed>["values"]

function parsed(words: string[]) {
  try {
    return parseArgs({ args: words, options, strict: true, allowPositionals: true })
  } catch (error) {
    throw new ChipUsageError((error as Error).message.split(/\n|\. /)[0])
  }
}

async function makeTags(box: TagBox, folder: string, values: Values): Promise<ChipOutput> {
  if (values.manifest !== undefined) {
    if (Object.keys(values).length > 1)
      throw new ChipUsageError("chip new --manifest takes no other option: the manifest describes the tags")
    return { text: await encodeTags(box, values.manifest), opens: null }
  }
  const count = wholeNumber(values.count ?? "1", "count", 1)
  const template = values.url ?? `${baseUrlOf(folder)}/t/{chip_id}`
  const mirrors = { mac: values.mac ?? false, tamper: values.tamper ?? false }
  const made = Array.from({ length: count }, () => makeTag(template, mirrors))
  box.put(made)
  const file = newFileIn(folder)
  const rows = made.map((tag) => importedRow(tag, mirrors))
  writeFileSync(file, [`${importedColumns}\n`, ...rows].join(""), { mode: 0o600 })
  const ids = made.map(({ chip_id }) => chip_id).join("\n")
  const next = `${organizationHint(folder)} --file '${file}'`
  return { text: `${ids}\n\nImport them: bun run operator chips import --organization ${next}`, opens: null }
}

/** Returns the path of a file that is not there yet: earlier ones may still have to be imported. */
function newFileIn(folder: string): string {
  for (let number = 1; ; number++) {
    const file = join(folder, number === 1 ? "tags.csv" : `tags-${number}.csv`)
    if (!existsSync(file)) return file
  }
}

const PART_TAGS = 1_000

/**
 * Encodes a manifest like a station, part by part; a tag that refuses does not stop the others. Throws
 * `EncodingRefused`.
 */
async function encodeTags(box: TagBox, manifest: string): Promise<string> {
  const tally = { made: 0, anew: 0, known: 0 }
  const part: BoxedTag[] = []
  const refusals: EncodingRefused[] = []
  try {
    for await (const line of linesOfManifest(manifest)) {
      const present = box.find(line.chip_id)
      const tag = encodedOrRefused(present, line)
      if (tag instanceof EncodingRefused) {
        refusals.push(tag)
        continue
      }
      tally[present === null ? "made" : tag === present ? "known" : "anew"]++
      if (tag !== present) part.push(tag)
      if (part.length === PART_TAGS) box.put(part.splice(0))
    }
  } finally {
    box.put(part)
  }
  const done = `tags encoded: ${tally.made}; encoded again: ${tally.anew}; unchanged: ${tally.known}`
  const [first] = refusals
  if (first) throw new EncodingRefused(`${done}; refused: ${refusals.length}. ${first.message}`)
  return done
}

function encodedOrRefused(present: BoxedTag | null, line: ManifestLine): BoxedTag | EncodingRefused {
  try {
    return encodeTag(present, line)
  } catch (error) {
    if (error instanceof EncodingRefused) return error
    throw error
  }
}

const importedColumns = "chip_id,uid,meta_key,file_key,mac,tamper"

/** A line of the file that `chips import` takes. */
function importedRow({ chip_id, uid, keys }: BoxedTag, { mac, tamper }: Mirrors): string {
  const { meta_read, file_read } = rolesOf.explicit
  return `${[chip_id, uid, keys[meta_read], keys[file_read], mac || tamper, tamper].join(",")}\n`
}

function listed(box: TagBox): string {
  const rows = [...box.list()].map(
    (tag) =>
      `${tag.chip_id}  uid ${tag.uid}  ${tag.counter} reads${hasWire(tag) ? `  wire ${tag.tamper}` : ""}`,
  )
  return rows.length === 0 ? "there are no tags yet: chip new makes one" : rows.join("\n")
}

function chosen(box: TagBox, named: string | undefined): string {
  if (named !== undefined) return named.toUpperCase()
  const [first, second] = box.list()
  if (!first) throw new TapRefused("there are no tags yet: chip new makes one")
  if (second) throw new ChipUsageError("there are several tags: name one of those that chip list shows")
  return first.chip_id
}

function mistakesOf(values: Values): TapMistakes {
  return {
    replay: wholeNumber(values.replay ?? "0", "replay", 0),
    skip: wholeNumber(values.skip ?? "0", "skip", 0),
    lower_case: values["lower-case"] ?? false,
    uid_only: values["uid-only"] ?? false,
    wrong_key: values["wrong-key"] ?? false,
    truncate: values.truncate ?? false,
    tampered: values.tampered ?? false,
  }
}

function wholeNumber(text: string, name: string, least: number): number {
  if (/^\d{1,7}$/.test(text) && Number(text) >= least) return Number(text)
  throw new ChipUsageError(`--${name} takes a whole number of at least ${least}, not "${text}"`)
}

/** The address of this folder's dev service, or its default. */
function baseUrlOf(folder: string): string {
  return devService(folder)?.base_url ?? "http://localhost:3000"
}

function organizationHint(folder: string): string {
  return devService(folder)?.organization_id ?? "ID"
}

function devService(folder: string): { base_url: string; organization_id: string } | null {
  const path = join(folder, "dev.json")
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null
}
