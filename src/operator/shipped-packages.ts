import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A package as it is shipped. */
type Shipped = { name: string; version: string; licence: string; integrity: string; needs: string[] }

/** Every installed package that production needs, directly or not, each version once, by name. */
export function shippedPackages(root: string): Shipped[] {
  const lock = readLock(root)
  const { dependencies = {}, optionalDependencies = {} } = lock.workspaces[""]
  const found = new Map<string, Shipped>()
  const open = Object.keys({ ...dependencies, ...optionalDependencies }).map((name) => ({ from: "", name }))
  for (let next = open.pop(); next; next = open.pop()) {
    const key = resolve(lock, next.from, next.name)
    if (key === null || found.has(key)) continue
    const shipped = readPackage(root, lock, key)
    // One for another system, so it is not installed.
    if (!shipped) continue
    found.set(key, shipped)
    for (const name of neededBy(lock, key)) open.push({ from: key, name })
  }
  // The same version may be in several places.
  const once = new Map([...found.values()].map((each) => [referenceOf(each), each]))
  return [...once.values()].sort((one, other) => (referenceOf(one) < referenceOf(other) ? -1 : 1))
}

/** The same as a CycloneDX document, reproducible for the same packages. */
export function cycloneDx(root: string, shipped: Shipped[]): Record<string, unknown> {
  const own = readJson(join(root, "package.json")) as Manifest & { license: string; engines: { bun: string } }
  const { bun } = own.engines
  const references = new Set(shipped.map(referenceOf))
  const ownReference = `pkg:generic/${own.name}@${own.version}`
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": ownReference,
        name: own.name,
        version: own.version,
        licenses: licencesOf(own.license),
      },
    },
    components: [
      {
        type: "platform",
        "bom-ref": `pkg:generic/bun@${bun}`,
        name: "bun",
        version: bun,
        licenses: licencesOf("MIT"),
        purl: `pkg:generic/bun@${bun}`,
      },
      ...shipped.map((each) => ({
        type: "library",
        "bom-ref": referenceOf(each),
        name: each.name,
        version: each.version,
        hashes: [
          {
            alg: "SHA-512",
            content: Buffer.from(each.integrity.replace("sha512-", ""), "base64").toString("hex"),
          },
        ],
        licenses: licencesOf(each.licence),
        purl: referenceOf(each),
      })),
    ],
    dependencies: shipped.map((each) => ({
      ref: referenceOf(each),
      dependsOn: each.needs.filter((need) => references.has(need)),
    })),
  }
}

type Entry = [locator: string, registry: string, needs: Needs, integrity: string]
type Needs = { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> }
type Lock = { workspaces: { "": Needs }; packages: Record<string, Entry> }

/** The lock file is JSON with trailing commas. */
function readLock(root: string): Lock {
  return JSON.parse(readFileSync(join(root, "bun.lock"), "utf8").replaceAll(/,(\s*[}\]])/g, "$1")) as Lock
}

/** The key of the package that `from` gets for `name`: the nearest one, as in `node_modules`. */
function resolve({ packages }: Lock, from: string, name: string): string | null {
  for (let names = namesIn(from); ; names = names.slice(0, -1)) {
    const key = [...names, name].join("/")
    if (packages[key]) return key
    if (names.length === 0) return null
  }
}

/** A key is a path of package names, of which scoped ones contain a slash themselves. */
function namesIn(key: string): string[] {
  return key.match(/(@[^/]+\/)?[^/]+/g) ?? []
}

function neededBy({ packages }: Lock, key: string): string[] {
  const { dependencies = {}, optionalDependencies = {} } = packages[key]?.[2] ?? {}
  return Object.keys({ ...dependencies, ...optionalDependencies })
}

function readPackage(root: string, lock: Lock, key: string): Shipped | null {
  const path = ["node_modules", namesIn(key).join("/node_modules/")].join("/")
  const file = join(root, path, "package.json")
  if (!existsSync(file)) return null
  const { name, version, license, licenses } = readJson(file) as Manifest
  const needs = neededBy(lock, key).flatMap((needed) => {
    const at = resolve(lock, key, needed)
    const [locator] = (at && lock.packages[at]) || []
    return locator ? [`pkg:npm/${encoded(locator)}`] : []
  })
  const integrity = lock.packages[key]?.[3] ?? ""
  return { name, version, licence: wordsOf(license, licenses), integrity, needs: [...new Set(needs)].sort() }
}

type Licence = string | { type: string }
type Manifest = { name: string; version: string; license?: Licence; licenses?: Licence[] }

function wordsOf(license: Licence | undefined, licenses: Licence[] = []): string {
  const all = license === undefined ? licenses : [license]
  return all.map((each) => (typeof each === "string" ? each : each.type)).join(" OR ") || "unknown"
}

/** An SPDX expression, or a plain name. */
function licencesOf(licence: string) {
  return / (OR|AND) /.test(licence)
    ? [{ expression: licence.replace(/^\(|\)$/g, "") }]
    : [{ license: { id: licence } }]
}

function referenceOf({ name, version }: Pick<Shipped, "name" | "version">): string {
  return `pkg:npm/${encoded(`${name}@${version}`)}`
}

function encoded(locator: string): string {
  return locator.replace(/^@/, "%40")
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"))
}

/** Each licence with its packages, the most used first. */
export function licenceLines(shipped: Shipped[]): string {
  const byLicence = Map.groupBy(shipped, ({ licence }) => licence)
  return [...byLicence]
    .sort(([, one], [, other]) => other.length - one.length)
    .map(
      ([licence, packages]) =>
        `${licence}: ${packages.map(({ name, version }) => `${name} ${version}`).join(", ")}`,
    )
    .join("\n")
}
