import { createHash } from "node:crypto"
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Diagnosis } from "../../engine/sun/diagnosis/diagnose.ts"
import { faultsIn } from "../../engine/sun/diagnosis/verdicts.ts"
import { parseRecipients, writeManifest } from "../../engine/sun/encoding/write-manifest.ts"
import { newId } from "../../platform/ids.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import { countRegistered, linesOf, placeOrder } from "../../resources/encodings/service.ts"
import { type NamedTag, parseTags } from "../../resources/encodings/wanted-tags.ts"
import { requireOrganization } from "../../resources/organizations/service.ts"
import { diagnoserOf, type ScannedTag } from "../../resources/tap-diagnoses/service.ts"
import { type Command, UsageError, type Values, wholeNumber } from "./command.ts"
import { showProgress } from "./progress.ts"

export const encodingCommands: Command[] = [
  {
    name: "chips encode",
    does: "orders tags: registers chips and writes what the encoding station needs",
    takes:
      '--organization ID --key-set ID (--count N | --uids F.csv) --url "https://tap.example/t/{chip_id}" [--mac] [--tamper] --out DIR [--seal-to PUBLIC_KEY_FILE]',
    about: `Registers chips and writes DIR/manifest.jsonl: for each chip what the encoding station writes, the keys of its
five slots, and an order of writing that cannot brick a tag. Cut short, run the same command again: it goes on.
--mac adds c to the address; --tamper adds enc, the status of a TagTamper's wire, and with it c.
--uids takes the tags that lie ready: one UID a line, or a CSV with columns uid, chip_id or both. Chips that are known
are encoded anew with the newest keys of their set; one that was never paired has told no UID, so name it by chip_id.
--seal-to seals the manifest to public keys of age (age1…), as manifest.jsonl.age.`,
    options: {
      organization: true,
      "key-set": true,
      count: false,
      uids: false,
      url: true,
      out: true,
      "seal-to": false,
    },
    flags: ["mac", "tamper"],
    plan(values) {
      const tags = tagsOf(values)
      const recipients = recipientsOf(values)
      return async ({ context }) => {
        const folder = values.required("out")
        const order = {
          organization_id: values.required("organization"),
          key_set_id: values.required("key-set"),
          url_template: values.required("url"),
          mirrors: { mac: values.flag("mac") || values.flag("tamper"), tamper: values.flag("tamper") },
        }
        const id = orderIdOf(folder, { ...order, tags })
        const manifest = await placeOrder(context, { ...order, id, tags }, (done, total) =>
          showProgress("registering", done, total),
        ).catch(async (refusal) => {
          if ((await countRegistered(context.db.read, id)) === 0) forgetOrder(folder)
          throw refusal
        })
        const path = join(folder, recipients.length === 0 ? "manifest.jsonl" : "manifest.jsonl.age")
        await writeManifest(path, linesOf(context, manifest), recipients)
        const { key_set_id, key_version, size } = manifest
        return {
          document: {
            id,
            organization_id: manifest.organization_id,
            key_set_id,
            version: key_version,
            chips: size,
            manifest: path,
          },
          text: `${size} chips are registered with version ${key_version} of the key set; the station gets ${path}`,
        }
      }
    },
  },
  {
    name: "chips verify-encoding",
    does: "checks addresses of encoded tags, one verdict each",
    takes: "--organization ID --file scanned.txt",
    about: `One address a line, as a phone opened it; after it, if you like, what GetFileSettings answered for file 02h, in
hexadecimal. One verdict a line, and why; a tag that another line has told of otherwise is not as it should be. Moves
and counts nothing. Ends with 1 when a tag is not as it should be, and when there is none.`,
    options: { organization: true, file: true },
    plan:
      (values) =>
      async ({ context }) => {
        const organization = await requireOrganization(context.db.read, values.required("organization"))
        const judge = await diagnoserOf(context.db.read, context.config.service_secret, organization.id)
        const results: ReturnType<typeof presentVerdict>[] = []
        const conflictOf = conflictsInFile()
        let line = 0
        for await (const text of createInterface({ input: createReadStream(values.required("file")) })) {
          line++
          if (text.trim() === "") continue
          const scanned = scannedIn(text)
          const found = await judge(scanned)
          results.push(presentVerdict(line, found, conflictOf(line, scanned.url, found)))
        }
        const good = results.filter(({ is_good }) => is_good).length
        const lines = results.map(
          ({ line, chip_id, verdict, why, advice }) =>
            `line ${line}: ${chip_id ?? "no chip"} ${verdict}${why ? `, ${why}` : ""}${advice ? `\n  ${advice}` : ""}`,
        )
        return {
          document: { tags: results.length, good, results },
          isRefusal: good < results.length || results.length === 0,
          text:
            results.length === 0
              ? "the file has no addresses"
              : [...lines, `${good} of ${results.length} tags are as they should be`].join("\n"),
        }
      },
  },
  {
    name: "chips which-key",
    does: "tells which known key set and version opens an address; touches nothing",
    takes: "--organization ID --url URL",
    options: { organization: true, url: true },
    plan:
      (values) =>
      async ({ context }) => {
        const organization = await requireOrganization(context.db.read, values.required("organization"))
        const judge = await diagnoserOf(context.db.read, context.config.service_secret, organization.id)
        const found = await judge({ url: values.required("url"), file_settings: null })
        const { chip_id, verdict, opened_with } = found
        const key_set = opened_with && {
          id: opened_with.key_set_id,
          name: opened_with.name,
          version: opened_with.version,
        }
        return {
          document: { chip_id, verdict, key_set },
          isRefusal: key_set === null,
          text: key_set
            ? `opened by ${key_set.name} (${verdict})`
            : `opened by no key that is known here (${verdict})`,
        }
      },
  },
]

function tagsOf(values: Values): { count: number } | { named: NamedTag[] } {
  const count = wholeNumber(values, "count", 1)
  const file = values.option("uids")
  if (file !== null && count === null) return { named: parseTags(readFileSync(file, "utf8")) }
  if (count !== null && file === null) return { count }
  throw new UsageError("chips encode takes either --count or --uids")
}

function recipientsOf(values: Values): string[] {
  const file = values.option("seal-to")
  return file === null ? [] : parseRecipients(readFileSync(file, "utf8"))
}

/**
 * The id of the order that a folder is for, drawn the first time and written down before anything is registered, so that
 * the same command goes on with the same order however it was cut short.
 */
function orderIdOf(folder: string, order: object): string {
  mkdirSync(folder, { recursive: true })
  const path = orderFile(folder)
  const digest = createHash("sha256").update(JSON.stringify(order)).digest("hex")
  if (existsSync(path)) {
    const known = JSON.parse(readFileSync(path, "utf8")) as { id: string; digest: string }
    if (known.digest === digest) return known.id
    throw new UsageError(`${folder} has the manifest of another order: give --out another folder`)
  }
  const id = newId()
  writeFileSync(`${path}.part`, `${JSON.stringify({ id, digest })}\n`, { flush: true })
  renameSync(`${path}.part`, path)
  return id
}

/** A refused order leaves its folder free for the next one. */
function forgetOrder(folder: string): void {
  rmSync(orderFile(folder), { force: true })
}

function orderFile(folder: string): string {
  return join(folder, "order.json")
}

function scannedIn(line: string): ScannedTag {
  const [url = "", ...settings] = line.trim().split(/\s+/)
  return { url, file_settings: settings.length === 0 ? null : Buffer.from(settings.join(""), "hex") }
}

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

/** What contradicts an earlier line of the same file: an address twice, a chip with two tags, a tag with two chips. */
function conflictsInFile() {
  const firstLines = new Map<string, number>()
  const chips = new Map<string, { line: number; uid: string }>()
  const tags = new Map<string, { line: number; chip_id: string }>()
  return (line: number, address: string, { chip_id, uid: bytes }: Diagnosis): string | null => {
    const firstLine = firstLines.get(address.toUpperCase())
    if (firstLine) return `the same address as in line ${firstLine}: read each tag by itself`
    firstLines.set(address.toUpperCase(), line)
    if (chip_id === null || bytes === null) return null
    const uid = upperHex(bytes)
    const chip = chips.get(chip_id)
    if (chip && chip.uid !== uid)
      return `another tag than in line ${chip.line} says that it is this chip: two were encoded with one line of the manifest`
    const tag = tags.get(uid)
    if (tag && tag.chip_id !== chip_id)
      return `the tag of chip ${tag.chip_id} in line ${tag.line}: it was encoded twice`
    chips.set(chip_id, { line, uid })
    tags.set(uid, { line, chip_id })
    return null
  }
}
