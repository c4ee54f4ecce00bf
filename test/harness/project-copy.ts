import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"

/** A rule that is broken on purpose: texts in one file, each replaced once. */
export type BrokenRule = { name: string; file: string; replace: [from: string, to: string][] }

/** Copies the whole project, into memory if possible, with a link to its node_modules; returns the folder. */
export function copyProject(): string {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "project-"))
  const filter = (path: string) => !path.endsWith("node_modules")
  for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true, filter })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  return folder
}

export function removeCopy(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

/** Breaks the rule in a copy. Throws if the file no longer contains the text to replace. */
export function breakRule(folder: string, rule: BrokenRule): void {
  const path = join(folder, rule.file)
  writeFileSync(path, brokenText(readFileSync(path, "utf8"), rule))
}

function brokenText(text: string, { name, file, replace }: BrokenRule): string {
  let broken = text
  for (const [from, to] of replace) {
    if (!broken.includes(from)) throw new Error(`${name}: ${file} no longer has ${from}`)
    broken = broken.replace(from, () => to)
  }
  return broken
}

/** Rules whose files no longer contain the text to replace. */
export function outdated(rules: readonly BrokenRule[]): string[] {
  return rules.flatMap(({ name, file, replace }) => {
    const path = join(root, file)
    const text = existsSync(path) ? readFileSync(path, "utf8") : ""
    return replace.flatMap(([from]) => (text.includes(from) ? [] : [`${name}: ${file} has no ${from}`]))
  })
}

/** Rules whose broken files use a name that nothing declares: where work is tried again, nobody might notice. */
export function undeclared(rules: readonly BrokenRule[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "broken-"))
  try {
    const config = {
      javascript: { globals: ["Bun"] },
      linter: { rules: { preset: "none", correctness: { noUndeclaredVariables: "error" } } },
    }
    writeFileSync(join(folder, "biome.json"), JSON.stringify(config))
    for (const [index, rule] of rules.entries()) {
      const text = readFileSync(join(root, rule.file), "utf8")
      writeFileSync(join(folder, `${index}${extname(rule.file)}`), brokenText(text, rule))
    }
    const command = [
      join(root, "node_modules/.bin/biome"),
      "lint",
      "--reporter=json",
      "--max-diagnostics=none",
    ]
    const { stdout } = Bun.spawnSync([...command, "."], { cwd: folder })
    const { summary, diagnostics } = JSON.parse(stdout.toString()) as Report
    if (summary.unchanged !== rules.length + 1) throw new Error(`${summary.unchanged} files were checked`)
    return diagnostics.map(({ message, location }) => {
      return `${rules[Number.parseInt(location.path, 10)]?.name}: ${message}`
    })
  } finally {
    removeCopy(folder)
  }
}

type Report = {
  summary: { unchanged: number }
  diagnostics: { message: string; location: { path: string } }[]
}

export const root = join(import.meta.dir, "../..")
const parts = [
  ...["src", "workers", "machines", "migrations", "contracts", "clients", "test"],
  ...["package.json", "tsconfig.json", "bunfig.toml", "README.md", "CHANGELOG.md", "LICENSE", ".env.example"],
]
