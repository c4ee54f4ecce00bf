import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { cycloneDx, licenceLines, shippedPackages } from "../../src/operator/shipped-packages.ts"

const root = join(import.meta.dir, "../..")
const shipped = shippedPackages(root)

/**
 * Licences that require only that their text is included. elkjs and the fonts, which are shipped unmodified, require
 * more.
 */
const permissive = ["MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Unlicense"]
const known = [...permissive, "EPL-2.0 OR GPL-3.0-or-later", "OFL-1.1"]

describe("the shipped software", () => {
  test("includes every production dependency and no development dependency", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const names = new Set(shipped.map(({ name }) => name))
    expect(Object.keys(dependencies).filter((name) => !names.has(name))).toEqual([])
    for (const name of ["@biomejs/biome", "typescript", "solc", "playwright-core"]) {
      expect(devDependencies).toHaveProperty([name])
      expect(names).not.toContain(name)
    }
  })

  test("has exactly the versions and hashes of bun.lock, nested packages included", () => {
    const lock = readFileSync(join(root, "bun.lock"), "utf8")
    for (const { name, version, integrity } of shipped) {
      expect(lock).toContain(`["${name}@${version}"`)
      expect(integrity).toMatch(/^sha512-.{86}==$/)
    }
  })

  test("has only licences that permit distribution", () => {
    expect(shipped.filter(({ licence }) => !known.includes(licence))).toEqual([])
    expect(licenceLines(shipped)).toStartWith("MIT: ")
  })
})

test("the CycloneDX document lists each package once, and refers only to packages that it lists", () => {
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
