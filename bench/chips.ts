import { Database as File } from "bun:sqlite"
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { encodeTag, linesOfManifest } from "../src/dev/tags/make-tag.ts"
import { readAddress } from "../src/dev/tags/software-tag.ts"
import { type BoxedTag, openTagBox, type TagBox } from "../src/dev/tags/tag-box.ts"
import { rolesOf } from "../src/engine/sun/key-schemes.ts"
import { startChild, stopChildren } from "./load/child.ts"
import { type Fixture, fillDatabase } from "./load/fixture.ts"
import { numberGiven, report } from "./report.ts"

/**
 * An order of tags from its manifest to the taps, with the peak memory of each command. Each tag is read twice and shows
 * its second address once more: two of three taps are recorded, and one is refused. `--chips` says how many tags.
 */
const chips = numberGiven("chips", 50_000)
const connections = 64
const budgetMegabytes = 150
const program = join(import.meta.dir, "../src/operator.ts")
const preload = join(import.meta.dir, "load/peak.ts")

const folder = mkdtempSync(join(tmpdir(), "bench-chips-"))
const manifest = join(folder, "order/manifest.jsonl")
const stock = join(folder, "stock.csv")
const commands: { command: string; seconds: number; peak_megabytes: number }[] = []
try {
  const station = await fillDatabase(join(folder, "station"), sqliteIn("station"), 0)
  await encode(station)
  const box = openTagBox(join(folder, "tags.db"))
  await fillBox(box)
  const brand = await fillDatabase(join(folder, "brand"), sqliteIn("brand"), 0)
  operator(brand, "chips import", "--organization", brand.organization_id, "--file", stock)
  operator(brand, "chips list", "--organization", brand.organization_id)
  operator(brand, "chips export", "--organization", brand.organization_id, "--file", join(folder, "out.csv"))
  pairAll(brand)
  const { port } = await startChild("src/main.ts", { ...brand.environment, LOG_LEVEL: "warn" })
  const taps = await tapAll(`http://127.0.0.1:${port}`, brand.api_key, box)
  box.close()
  tell(taps)
} finally {
  await stopChildren()
  rmSync(folder, { recursive: true, force: true })
}

type Taps = { answers: Record<string, number>; seconds: number }

function tell(taps: Taps): void {
  const recorded = taps.answers["201 recorded"] ?? 0
  const refused = taps.answers["409 chip.already_scanned"] ?? 0
  const others = Object.values(taps.answers).reduce((sum, count) => sum + count, 0) - recorded - refused
  const is_right = recorded === 2 * chips && refused === chips && others === 0
  const taps_per_second = Math.round((recorded + refused) / taps.seconds)
  const within = commands.every(({ peak_megabytes }) => peak_megabytes < budgetMegabytes)
  const lines = [
    ...commands.map(
      ({ command, seconds, peak_megabytes }) =>
        `${command.padEnd(14)} ${chips} chips  ${seconds.toFixed(1)} s  peak ${peak_megabytes.toFixed(0)} MB (budget ${budgetMegabytes})`,
    ),
    `${recorded} taps accepted, ${refused} repeats refused, ${others} other responses: ${taps_per_second} a second over HTTP`,
    ...(is_right ? [] : [`answers: ${JSON.stringify(taps.answers)}`]),
  ]
  report(
    { benchmark: "chips", chips, commands, is_within_budget: within, ...taps, is_right, taps_per_second },
    lines.map((line) => `${line}\n`).join(""),
  )
  if (!is_right || !within) process.exitCode = 1
}

function sqliteIn(name: string): string {
  return `sqlite:${join(folder, name, "service.db")}`
}

async function encode(station: Fixture): Promise<void> {
  const { organization_id } = station
  const named = ["--organization", organization_id, "--name", "Autumn", "--scheme", "an10922", "--json"]
  const { id } = JSON.parse(operator(station, "key-sets create", ...named))
  const order = ["--organization", organization_id, "--key-set", id, "--count", `${chips}`]
  const written = ["--url", "https://tap.example/t/{chip_id}", "--mac", "--out", join(folder, "order")]
  operator(station, "chips encode", ...order, ...written)
}

/** Runs a command in a process of its own and notes what it took; returns what it printed. */
function operator(made: Fixture, command: string, ...words: string[]): string {
  const begin = performance.now()
  const peakFile = join(folder, "peak")
  const child = Bun.spawnSync(
    [process.execPath, "--preload", preload, program, ...command.split(" "), ...words],
    {
      env: { PATH: process.env.PATH, ...made.environment, PEAK_FILE: peakFile },
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  if (child.exitCode !== 0) throw new Error(`operator ${command} ends with ${child.exitCode}`)
  const seconds = (performance.now() - begin) / 1_000
  const peak_megabytes = Number(readFileSync(peakFile, "utf8"))
  if (command.startsWith("chips")) commands.push({ command, seconds, peak_megabytes })
  return child.stdout.toString()
}

/** Puts the manifest's tags into a box, and what is known of them, as a factory tells it, into a file to import. */
async function fillBox(box: TagBox): Promise<void> {
  const { meta_read, file_read } = rolesOf.an10922
  writeFileSync(stock, "chip_id,uid,meta_key,file_key,mac\n")
  let tags: BoxedTag[] = []
  const put = () => {
    box.put(tags)
    const rows = tags.map(({ chip_id, uid, keys }) => [chip_id, uid, keys[meta_read], keys[file_read], true])
    appendFileSync(stock, rows.map((row) => `${row.join(",")}\n`).join(""))
    tags = []
  }
  for await (const line of linesOfManifest(manifest)) if (tags.push(encodeTag(null, line)) === 1_000) put()
  put()
}

/** Each chip on a unit of its own, past the service: issuing tokens is not what is measured here. */
function pairAll({ organization_id, collection_id }: Fixture): void {
  const file = new File(join(folder, "brand/service.db"))
  const at = "2026-01-01T00:00:00.000Z"
  const unit = "'0192f000-0000-7000-8000-00' || lower(chip_id)"
  file.exec("pragma foreign_keys = on")
  file.exec(`insert into units (id, organization_id, collection_id, external_id, token_status, serial, claimed, created_at)
    select ${unit}, '${organization_id}', '${collection_id}', chip_id, 'active', row_number() over (order by chip_id), 0,
    '${at}' from chips`)
  file.exec(`update chips set unit_id = ${unit}, paired_at = '${at}'`)
  file.close()
}

async function tapAll(base: string, key: string, box: TagBox): Promise<Taps> {
  const waiting = [...box.list()].map(({ chip_id }) => chip_id)
  const answers: Record<string, number> = {}
  async function tap(address: string): Promise<void> {
    const url = new URL(address)
    const body = {
      chip_id: url.pathname.split("/").at(-1),
      e: url.searchParams.get("e"),
      c: url.searchParams.get("c"),
    }
    const response = await fetch(`${base}/v1/taps`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    const answered = (await response.json()) as { error?: { code: string } }
    const outcome = `${response.status} ${answered.error?.code ?? "recorded"}`
    answers[outcome] = (answers[outcome] ?? 0) + 1
  }
  async function playOn(): Promise<void> {
    for (let chip = waiting.pop(); chip !== undefined; chip = waiting.pop()) {
      const [first, second] = [addressOf(chip, 1), addressOf(chip, 2)]
      for (const address of [first, second, second]) await tap(address)
    }
  }
  /** Its reads are counted here: a box that commits each of them to the disk would be measured with the service. */
  function addressOf(chip: string, read: number): string {
    const tag = box.find(chip)
    if (!tag) throw new Error(`the tag ${chip} is not in the box`)
    return readAddress(tag, read)
  }
  const begin = performance.now()
  await Promise.all(Array.from({ length: connections }, playOn))
  return { answers, seconds: (performance.now() - begin) / 1_000 }
}
