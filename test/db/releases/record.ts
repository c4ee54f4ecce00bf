import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, relative } from "node:path"
import { migrationNames } from "../../../src/db/migrate.ts"

// Records a release's statements in a file named after its newest migration; test/db/previous-release.test.ts checks
// them against the newest schema. Both engines execute the same. Run it (`bun test/db/releases/record.ts`, some
// minutes) on the commit of the release, before the first migration after it is added. The file may be deleted once no
// process of that release can be running.

/** Together these execute nearly every statement; those that they miss are printed. */
const suites = [
  "dev/imported-chips",
  "dev/shop",
  "engine/actors",
  "engine/engine",
  "engine/faults",
  "engine/found-serials",
  "engine/lost-serials",
  "engine/owners",
  "engine/reap-expired",
  "engine/restored",
  "events/feed",
  "events/reaping",
  "events/webhooks",
  "http/bad-inputs",
  "http/day-two",
  "http/idempotency",
  "http/lists",
  "http/tenant-fence",
  "operator/compare-chain",
  "operator/console",
  "operator/encode-chips",
  "operator/inspect",
  "operator/metrics",
  "operator/operator",
  "operator/secrets",
  "operator/webhooks",
  "resources/chip-import",
  "resources/chip-replacements",
  "resources/chips",
  "resources/claims",
  "resources/customers",
  "resources/metadata",
  "resources/receipts",
  "resources/tap-redirects",
  "resources/taps",
  "resources/transfers",
  "resources/units",
]

const root = join(import.meta.dir, "../../..")
const release = basename(migrationNames().at(-1) ?? "", ".sql")

type Note = { place: string; statement: string }

async function record(): Promise<void> {
  const notes = await watchSuites()
  const statements = [...new Set(notes.map(({ statement }) => representative(statement)))].sort()
  const file = join(import.meta.dir, `${release}.sql`)
  const heading = `-- What the release whose newest migration is ${release} asks. Made by test/db/releases/record.ts.`
  writeFileSync(file, `${[heading, ...statements.map((statement) => `${statement};`)].join("\n")}\n`)
  const seen = new Set(notes.map(({ place }) => place))
  const unseen = placesOfQueries().filter((place) => !seen.has(place))
  process.stdout.write(`${statements.length} statements: ${relative(root, file)}\n`)
  if (unseen.length > 0)
    process.stdout.write(`asked by no suite, at least not on its own: ${unseen.join(", ")}\n`)
}

async function watchSuites(): Promise<Note[]> {
  const folder = mkdtempSync(join(tmpdir(), "statements-"))
  const files = suites.map((suite) => `./test/${suite}.test.ts`)
  try {
    const run = Bun.spawn([process.execPath, "test", "--timeout", "120000", ...files], {
      cwd: root,
      env: {
        ...process.env,
        STATEMENTS_FOLDER: folder,
        BUN_OPTIONS: `--preload=${join(import.meta.dir, "note-statements.ts")}`,
      },
      stdout: "inherit",
      stderr: "inherit",
    })
    if ((await run.exited) !== 0) throw new Error("a suite failed: record a release whose tests pass")
    return notesIn(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What `note-statements.ts` has noted in its folder. */
export function notesIn(folder: string): Note[] {
  return readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"))
    .map((line) => JSON.parse(line))
}

/**
 * One statement for all that differ only in the number of inserted rows or listed values. In a query that is built once,
 * one placeholder stands for a whole list.
 */
export function representative(statement: string): string {
  let params = 0
  return statement
    .replace(/ values (\([^()]*\))(?:, \([^()]*\))+/, " values $1")
    .replaceAll(/ in (?:\(\$\d+(?:, \$\d+)+\)|\$\d+)/g, " in ($1)")
    .replaceAll(/\$\d+/g, () => `$${++params}`)
}

/**
 * Where the source begins a query, as `note-statements.ts` names it. src/db is left out: it only maintains the tables.
 */
export function placesOfQueries(): string[] {
  const query = /\b(?:tx|queries|read|db)\s*\.(?:select|selectDistinct|insert|update|delete|execute)\(/g
  return [...new Bun.Glob("{src,workers}/**/*.ts").scanSync(root)]
    .filter((path) => !path.startsWith("src/db/"))
    .sort()
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8")
      return [...text.matchAll(query)].map((found) => {
        const before = text.slice(0, found.index + found[0].length)
        return `${path}:${before.split("\n").length}`
      })
    })
}

if (import.meta.main) await record()
