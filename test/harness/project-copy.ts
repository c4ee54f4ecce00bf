import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

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
export function breakRule(folder: string, { name, file, replace }: BrokenRule): void {
  const path = join(folder, file)
  let text = readFileSync(path, "utf8")
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`${name}: ${file} no longer has ${from}`)
    text = text.replace(from, () => to)
  }
  writeFileSync(path, text)
}

/** Rules whose files no longer contain the text to replace. */
export function outdated(rules: readonly BrokenRule[]): string[] {
  return rules.flatMap(({ name, file, replace }) => {
    const path = join(root, file)
    const text = existsSync(path) ? readFileSync(path, "utf8") : ""
    return replace.flatMap(([from]) => (text.includes(from) ? [] : [`${name}: ${file} has no ${from}`]))
  })
}

export const root = join(import.meta.dir, "../..")
const parts = [
  ...["src", "workers", "machines", "migrations", "contracts", "clients", "test"],
  ...["package.json", "tsconfig.json", "bunfig.toml", "README.md", "CHANGELOG.md", "LICENSE", ".env.example"],
]
