import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import type { Diagnosis } from "../../engine/sun/diagnosis/diagnose.ts"
import { faultsIn } from "../../engine/sun/diagnosis/verdicts.ts"
import type { Context } from "../../platform/context.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import { requireOrganization } from "../../resources/organizations/service.ts"
import { diagnoserOf, type ScannedTag } from "../../resources/tap-diagnoses/service.ts"
import type { Command } from "./command.ts"

export const encodingChecks: Command[] = [
  {
    name: "chips verify-encoding",
    does: "checks URLs of encoded tags, with a verdict on each",
    takes: "--organization ID --file scanned.txt",
    about: `The file has one URL per line, as a phone opened it, optionally followed by the response to GetFileSettings for file
02h, in hexadecimal. Prints a verdict and its reason for each line; a tag that contradicts an earlier line is wrong too.
Changes and counts nothing. Exits with 1 if any tag is wrong, or if there is none.`,
    options: { organization: true, file: true },
    plan:
      (values) =>
      async ({ context }) => {
        const judge = await diagnoserFor(context, values.required("organization"))
        const results = await verdictsOn(values.required("file"), judge)
        const good = results.filter(({ is_good }) => is_good).length
        const summary = `${good} of ${results.length} tags are right`
        return {
          document: { tags: results.length, good, results },
          isRefusal: good < results.length || results.length === 0,
          text:
            results.length === 0 ? "the file has no URLs" : [...results.map(verdictText), summary].join("\n"),
        }
      },
  },
  {
    name: "chips which-key",
    does: "shows which key set and version a tag's URL was made with; changes nothing",
    takes: "--organization ID --url URL",
    options: { organization: true, url: true },
    plan:
      (values) =>
      async ({ context }) => {
        const judge = await diagnoserFor(context, values.required("organization"))
        const found = await judge({ url: values.required("url"), file_settings: null })
        const { chip_id, verdict, opened_with } = found
        const key_set = opened_with && {
          id: opened_with.key_set_id,
          name: opened_with.key_set_name ?? opened_with.name,
          version: opened_with.version,
        }
        return {
          document: { chip_id, verdict, key_set },
          isRefusal: key_set === null,
          text: openerText(found),
        }
      },
  },
]

type Diagnoser = Awaited<ReturnType<typeof diagnoserOf>>

async function diagnoserFor({ db, config }: Context, organizationId: string): Promise<Diagnoser> {
  const { id } = await requireOrganization(db.read, organizationId)
  return await diagnoserOf(db.read, config.service_secret, id)
}

/** A verdict for each line of the file that is not blank. */
async function verdictsOn(file: string, judge: Diagnoser): Promise<PresentedVerdict[]> {
  const verdicts: PresentedVerdict[] = []
  const conflictOf = conflictsInFile()
  let line = 0
  for await (const text of createInterface({ input: createReadStream(file) })) {
    line++
    if (text.trim() === "") continue
    const scanned = scannedIn(text)
    const found = await judge(scanned)
    verdicts.push(presentVerdict(line, found, conflictOf(line, scanned.url, found)))
  }
  return verdicts
}

function verdictText({ line, chip_id, verdict, why, advice }: PresentedVerdict): string {
  return `line ${line}: ${chip_id ?? "no chip"} ${verdict}${why ? `, ${why}` : ""}${advice ? `\n  ${advice}` : ""}`
}

function openerText({ verdict, checks, opened_with, is_tried }: Diagnosis): string {
  if (opened_with) return `made with ${opened_with.name} (${verdict})`
  if (is_tried) return `made with no known key (${verdict})`
  return `not tried: ${verdict}, ${checks.at(-1)?.detail}`
}

function scannedIn(line: string): ScannedTag {
  const [url = "", ...settings] = line.trim().split(/\s+/)
  return { url, file_settings: settings.length === 0 ? null : Buffer.from(settings.join(""), "hex") }
}

type PresentedVerdict = ReturnType<typeof presentVerdict>

function presentVerdict(
  line: number,
  { chip_id, verdict, checks, advice }: Diagnosis,
  conflict: string | null,
) {
  const [fault] = faultsIn(checks)
  const wire = checks.find(({ name, passed }) => name === "file_content" && passed)
  const told = [conflict, (fault ?? checks.findLast(({ passed }) => !passed))?.detail, wire?.detail]
  return {
    line,
    chip_id,
    verdict,
    is_good: !fault && conflict === null,
    why: told.filter((each) => each).join("; ") || null,
    advice: fault ? advice : null,
  }
}

/** What contradicts an earlier line of the file: an address twice, a chip on two tags, a tag with two chips. */
function conflictsInFile() {
  const firstLines = new Map<string, number>()
  const chips = new Map<string, { line: number; uid: string }>()
  const tags = new Map<string, { line: number; chip_id: string }>()
  return (line: number, address: string, { chip_id, uid: bytes }: Diagnosis): string | null => {
    const firstLine = firstLines.get(address.toUpperCase())
    if (firstLine) return `the same URL as in line ${firstLine}: read each tag separately`
    firstLines.set(address.toUpperCase(), line)
    if (chip_id === null || bytes === null) return null
    const uid = upperHex(bytes)
    const chip = chips.get(chip_id)
    if (chip && chip.uid !== uid)
      return `the tag in line ${chip.line} is another one with the same chip id: two tags were encoded with one line of the manifest`
    const tag = tags.get(uid)
    if (tag && tag.chip_id !== chip_id)
      return `the same tag as chip ${tag.chip_id} in line ${tag.line}: it was encoded twice`
    chips.set(chip_id, { line, uid })
    tags.set(uid, { line, chip_id })
    return null
  }
}
