import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { cycloneDx, licenceLines, shippedPackages } from "../../src/operator/shipped-packages.ts"

const root = join(import.meta.dir, "../..")
const shipped = shippedPackages(root)

/** Licences that ask for nothing but their own text; what is not changed, elkjs and the fonts, has one that asks more. */
const permissive = ["MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Unlicense"]
const known = [...permissive, "EPL-2.0 OR GPL-3.0-or-later", "OFL-1.1"]

describe("what is shipped", () => {
  test("has every package that the project asks for in production, and none of development alone", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const names = new Set(shipped.map(({ name }) => name))
    expect(Object.keys(dependencies).filter((name) => !names.has(name))).toEqual([])
    for (const name of ["@biomejs/biome", "typescript", "solc", "playwright-core"]) {
      expect(devDependencies).toHaveProperty([name])
      expect(names).not.toContain(name)
    }
  })

  test("has the very versions and hashes of bun.lock, packages inside others included", () => {
    const lock = readFileSync(join(root, "bun.lock"), "utf8")
    for (const { name, version, integrity } of shipped) {
      expect(lock).toContain(`["${name}@${version}"`)
      expect(integrity).toMatch(/^sha512-.{86}==$/)
    }
  })

  test("is under licences that may be shipped", () => {
    expect(shipped.filter(({ licence }) => !known.includes(licence))).toEqual([])
    expect(licenceLines(shipped)).toStartWith("MIT: ")
  })
})

test("its CycloneDX document names each package once, and needs nothing that it does not name", () => {
  const { components, dependencies, ...head } = cycloneDx(root, shipped) as {
    components: { "bom-ref": string; purl: string }[]
    dependencies: { ref: string; dependsOn: string[] }[]
  }
  expect(head).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 })
  const references = components.map((component) => component["bom-ref"])
  expect(new Set(references).size).toBe(references.length)
  expect(references).toContain("pkg:npm/%40elysiajs/cors@1.4.2")
  const needed = dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
  expect(needed.filter((reference) => !references.includes(reference))).toEqual([])
  const elysia = dependencies.find(({ ref }) => ref.startsWith("pkg:npm/elysia@"))
  expect(elysia?.dependsOn.length).toBeGreaterThan(0)
})
