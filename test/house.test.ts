import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const root = dirname(import.meta.dir)
const ours = ["machines", "workers", "src"].flatMap(readFolder)
const others = ["test", "bench", "clients", "contracts"].flatMap(readFolder)

/**
 * The layers, and what each may import: those below it, never those above. Within a layer folders are ordered as well,
 * because no folders may form a circle.
 */
const layers = {
  "entry points": ["src/api", "src/operator", "src/dev", "workers", ...below("src/api"), "clients"],
  workers: [...below("src/resources"), "src/http"],
  "src/api": below("src/api"),
  "src/operator": below("src/operator"),
  "src/dev": [...below("src/dev"), "src/api", "src/operator", "workers", "clients"],
  "src/resources": below("src/resources"),
  "src/http": below("src/http"),
  "src/engine": below("src/engine"),
  "src/platform": ["src/db"],
  "src/db": [],
  machines: [],
} satisfies Record<string, string[]>

function below(layer: string): string[] {
  const order = ["src/resources", "src/http", "src/engine", "src/platform", "src/db"]
  return [...order.slice(order.indexOf(layer) + 1), "machines"]
}

describe("the layers:", () => {
  test("a file imports only its own layer or one below it", () => {
    const wrong = importsOf(ours).filter(({ from, to }) => {
      const mine = layerOf(from)
      return isOurs(to) && layerOf(to) !== mine && !(layers[mine] as string[]).includes(layerOf(to))
    })
    expect(wrong.map(told)).toEqual([])
  })

  test("no files import each other in a circle, types included", () => {
    expect(circles(importsOf(ours))).toEqual([])
  })

  test("no folders import each other in a circle", () => {
    const betweenFolders = importsOf(ours)
      .filter(({ from }) => dirname(from) !== "src")
      .map(({ from, to }) => ({ from: dirname(from), to: dirname(to) }))
    expect(circles(betweenFolders)).toEqual([])
  })

  test("an entry point is imported by nobody", () => {
    const imported = importsOf([...ours, ...others]).filter(({ to }) => dirname(to) === "src")
    expect(imported.map(told)).toEqual([])
  })
})

describe("forbidden imports:", () => {
  test("machines import XState and one another, nothing else", () => {
    const wrong = packagesOf(within("machines/")).filter(({ to }) => to !== "xstate")
    expect(wrong.map(told)).toEqual([])
  })

  test("src/http and the OpenAPI document import no resource", () => {
    const wrong = importsOf([...within("src/http/"), ...within("src/api/openapi/")])
    expect(wrong.filter(({ to }) => to.startsWith("src/resources/")).map(told)).toEqual([])
  })

  test("services and models import nothing of HTTP", () => {
    const files = ours.filter(({ path }) => /^src\/resources\/[^/]+\/(service|model|present)\.ts$/.test(path))
    expect(
      importsOf(files)
        .filter(({ to }) => to.startsWith("src/http/"))
        .map(told),
    ).toEqual([])
    expect(
      packagesOf(files)
        .filter(({ to }) => /^@?elysia/.test(to))
        .map(told),
    ).toEqual([])
  })

  test("routes import neither the schema nor drizzle", () => {
    const files = ours.filter(({ path }) => path.endsWith("/routes.ts"))
    expect(
      importsOf(files)
        .filter(({ to }) => to === "src/db/schema.ts")
        .map(told),
    ).toEqual([])
    expect(
      packagesOf(files)
        .filter(({ to }) => /^drizzle-orm/.test(to))
        .map(told),
    ).toEqual([])
  })

  test("a job imports no lane", () => {
    const wrong = importsOf(within("workers/jobs/")).filter(({ to }) => to.startsWith("src/engine/lanes/"))
    expect(wrong.map(told)).toEqual([])
  })
})

describe("done in one place:", () => {
  test("the environment is read in src/platform/config.ts", () => {
    const environment = /\bprocess\.env\b|\bBun\.env\b|\bimport\.meta\.env\b/
    expect(linesWith(environment, ["src/platform/config.ts"])).toEqual([])
  })

  test("the clock is read in src/engine/world.ts", () => {
    const clock = /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()/
    expect(linesWith(clock, ["src/engine/world.ts"])).toEqual([])
  })

  test("nothing is written to the console", () => {
    expect(linesWith(/\bconsole\.(log|error|warn|info|debug|trace)\b/, [])).toEqual([])
  })
})

describe("sizes:", () => {
  test("no file has more than 400 lines", () => {
    const lines = ({ text }: SourceFile) => text.split("\n").length - 1
    expect(ours.filter((file) => lines(file) > 400).map(({ path }) => path)).toEqual([])
  })

  test("src holds at most twelve files of its own", () => {
    expect(ours.filter(({ path }) => dirname(path) === "src").length).toBeLessThanOrEqual(12)
  })

  test("nothing is exported that nobody imports", () => {
    const wanted = new Set([...ours, ...others].flatMap(importedNames))
    const idle = ours.flatMap(({ path, text }) =>
      exportedNames(text)
        .filter((name) => !wanted.has(`${path} ${name}`) && !wanted.has(`${path} *`))
        .map((name) => `${path} exports ${name}`),
    )
    expect(idle).toEqual([])
  })
})

type SourceFile = { path: string; text: string }
type Import = { from: string; to: string }

function readFolder(folder: string): SourceFile[] {
  return [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(root)]
    .filter((path) => !path.endsWith(".generated.ts"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))
}

function within(folder: string): SourceFile[] {
  return ours.filter(({ path }) => path.startsWith(folder))
}

/** What files import, types included, as paths from the root. */
function importsOf(files: SourceFile[]): Import[] {
  return files.flatMap(({ path, text }) =>
    specifiersOf(text)
      .filter((target) => target.startsWith("."))
      .map((target) => ({ from: path, to: normalize(join(dirname(path), target)) })),
  )
}

function packagesOf(files: SourceFile[]): Import[] {
  return files.flatMap(({ path, text }) =>
    specifiersOf(text)
      .filter((target) => !target.startsWith("."))
      .map((target) => ({ from: path, to: target })),
  )
}

function specifiersOf(text: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, target = ""]) => target)
}

function isOurs(path: string): boolean {
  return /^(src|machines|workers|clients)\//.test(path)
}

function layerOf(path: string): keyof typeof layers {
  const [top = "", second = "", third] = path.split("/")
  const isEntryPoint = (top === "src" && third === undefined) || path === "workers/main.ts"
  return (isEntryPoint ? "entry points" : top === "src" ? `${top}/${second}` : top) as keyof typeof layers
}

function told({ from, to }: Import): string {
  return `${from} imports ${to}`
}

/** The strongly connected components of more than one place (Tarjan, SIAM J. Comput. 1972). */
function circles(imports: Import[]): string[] {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of imports) if (from !== to) next.set(from, (next.get(from) ?? new Set()).add(to))
  const numbers = new Map<string, number>()
  const stack: string[] = []
  const found: string[] = []

  function visit(place: string): number {
    const mine = numbers.size
    let lowest = mine
    numbers.set(place, mine)
    stack.push(place)
    for (const other of next.get(place) ?? []) {
      const number = numbers.get(other)
      if (number === undefined) lowest = Math.min(lowest, visit(other))
      else if (stack.includes(other)) lowest = Math.min(lowest, number)
    }
    if (lowest < mine) return lowest
    const circle = stack.splice(stack.indexOf(place))
    if (circle.length > 1) found.push(circle.sort().join(", "))
    return lowest
  }

  for (const place of next.keys()) if (!numbers.has(place)) visit(place)
  return found.sort()
}

function exportedNames(text: string): string[] {
  return [...text.matchAll(/^export (?:async )?(?:function\*?|const|let|type|class) (\w+)/gm)].map(
    ([, name = ""]) => name,
  )
}

/** `path name` for each name that a file imports, `path *` if it imports a whole file. */
function importedNames({ path, text }: SourceFile): string[] {
  const imports = /\bimport\s+(?:type\s+)?(?:\{([^}]*)\}|(\*) as \w+)\s+from\s+["'](\.[^"']+)["']/g
  const later = /\bimport\(\s*["'`](\.[^"'`]+)["'`]\s*\)/g
  const at = (target: string) => normalize(join(dirname(path), target))
  const named = [...text.matchAll(imports)].flatMap(([, names, all, target = ""]) =>
    (all ?? names ?? "")
      .split(",")
      .map((name) =>
        name
          .trim()
          .replace(/^type /, "")
          .replace(/ as .*/, ""),
      )
      .filter((name) => name !== "")
      .map((name) => `${at(target)} ${name}`),
  )
  return [...named, ...[...text.matchAll(later)].map(([, target = ""]) => `${at(target)} *`)]
}

/** Each line of code, without comments, that matches the pattern outside the exceptions. */
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
