import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const root = dirname(import.meta.dir)
const ours = ["machines", "workers", "src"].flatMap(readFolder)

describe("who may know whom:", () => {
  test("machines import XState and one another, nothing else", () => {
    expect(
      importsOf(within("machines/"), (target) => target !== "xstate" && !target.startsWith("machines/")),
    ).toEqual([])
  })

  test("services and models know nothing of HTTP", () => {
    const files = ours.filter(({ path }) => /^src\/[^/]+\/(service|model)\.ts$/.test(path))
    expect(
      importsOf(files, (target) => target.startsWith("src/http/") || isPackage(target, "elysia")),
    ).toEqual([])
  })

  test("routes know nothing of SQL", () => {
    const files = ours.filter(({ path }) => /(^|\/)routes\.ts$/.test(path))
    const isSql = (target: string) => target === "src/db/schema.ts" || isPackage(target, "drizzle-orm")
    expect(importsOf(files, isSql)).toEqual([])
  })

  test("nothing in src imports workers, but the processes that run them", () => {
    const files = within("src/").filter(({ path }) => !["src/dev.ts", "src/work.ts"].includes(path))
    expect(importsOf(files, (target) => target.startsWith("workers/"))).toEqual([])
  })

  test("the service imports nothing of its tests and benchmarks", () => {
    expect(importsOf(ours, (target) => /^(test|bench)\//.test(target))).toEqual([])
  })
})

describe("what is done in one place:", () => {
  test("the environment is read in src/config.ts", () => {
    expect(linesWith(/\bprocess\.env\b|\bBun\.env\b|\bimport\.meta\.env\b/, ["src/config.ts"])).toEqual([])
  })

  test("the clock is read in src/context.ts", () => {
    expect(linesWith(/\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()/, ["src/context.ts"])).toEqual([])
  })

  test("nothing is written to the console", () => {
    expect(linesWith(/\bconsole\.(log|error|warn|info|debug|trace)\b/, [])).toEqual([])
  })
})

type SourceFile = { path: string; text: string }

function readFolder(folder: string): SourceFile[] {
  return [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(root)]
    .filter((path) => !path.endsWith(".generated.ts"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))
}

function within(folder: string): SourceFile[] {
  return ours.filter(({ path }) => path.startsWith(folder))
}

/** Each import of these files, of types too, whose target is a wrong one: a path from the root, or a package. */
function importsOf(files: SourceFile[], isWrong: (target: string) => boolean): string[] {
  const specifier = /\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(specifier)]
      .map(([, target = ""]) => (target.startsWith(".") ? normalize(join(dirname(path), target)) : target))
      .filter(isWrong)
      .map((target) => `${path} imports ${target}`),
  )
}

function isPackage(target: string, name: string): boolean {
  return target === name || target.startsWith(`${name}/`) || target.startsWith(`@${name}`)
}

/** Each line of code, comments aside, that holds a pattern where it may not be. */
function linesWith(pattern: RegExp, exceptions: string[]): string[] {
  return ours
    .filter(({ path }) => !exceptions.includes(path))
    .flatMap(({ path, text }) =>
      withoutComments(text)
        .split("\n")
        .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
    )
}

function withoutComments(text: string): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ""))
    .replaceAll(/(^|\s)\/\/.*$/gm, "")
}
