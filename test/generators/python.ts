import { join } from "node:path"
import type { Calls } from "./walk.ts"

const here = import.meta.dir
const program = join(here, "clients/openapi_generator.py")
const modules = ["urllib3", "dateutil", "six", "certifi"]

/**
 * Lists what openapi-generator and its Python client need but this machine lacks, with the package that provides it.
 */
export async function missingForPython(): Promise<string[]> {
  const missing = Bun.which("java") ? [] : ["java (apt-get install default-jre-headless)"]
  if (await findPython()) return missing
  const packages = modules.map((name) => `python3-${name}`).join(" ")
  return [...missing, `python3 with ${modules.join(", ")} (apt-get install python3 ${packages})`]
}

/**
 * Generates a Python client of the document and compiles it. Later releases of the generator are downloaded from
 * outside npm.
 */
export async function makePythonClient(
  document: string,
  folder: string,
  run: (command: string[]) => Promise<void>,
): Promise<void> {
  const packages = join(here, "node_modules")
  const jar = join(packages, "@openapitools/openapi-generator-cli/bin/openapi-generator.jar")
  const older = `${folder}.json`
  await run(["node", join(packages, ".bin/openapi-down-convert"), "-i", document, "-o", older])
  await Bun.write(older, JSON.stringify(mended(await Bun.file(older).json())))
  const options = ["-i", older, "-g", "python", "-o", folder, "--global-property", withoutTests]
  await run(["java", "-jar", jar, "generate", ...options])
  await run([(await findPython()) ?? "python3", "-m", "compileall", "-q", folder])
}

const withoutTests = "modelTests=false,apiTests=false"

type Node = Record<string, unknown>

/** The document in OpenAPI 3.0, without leftovers of 3.1 from its converter and what this generator cannot handle. */
function mended({ info, ...document }: { info: Node }): unknown {
  const { summary, ...told } = info
  return mendedNode({ ...document, info: told })
}

function mendedNode(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(mendedNode)
  if (typeof node !== "object" || node === null) return node
  const entries = Object.entries(mendedSchema(node as Node))
  return Object.fromEntries(entries.map(([key, value]) => [key, mendedNode(value)]))
}

function mendedSchema(node: Node): Node {
  const { const: only, enum: values, pattern, anyOf, ...others } = node
  // A single boolean becomes broken Python, and the generator fails at a time with a pattern.
  if (node.type === "boolean" || node.format === "date-time") return others
  if (Array.isArray(values)) return { ...node, enum: values.filter((value) => value !== null) }
  const isNull = ({ type }: Node) => type === "null"
  if (!Array.isArray(anyOf) || !anyOf.some(isNull)) return node
  return { ...others, nullable: true, allOf: anyOf.filter((each) => !isNull(each)) }
}

/** The journey's calls, each in a Python process of its own. */
export function pythonCalls(folder: string, apiKey: string, baseUrl: string): Calls {
  async function ask<Answer>(call: string, ...words: string[]): Promise<Answer> {
    return await askAs(apiKey, call, ...words)
  }
  async function askAs<Answer>(token: string, ...words: string[]): Promise<Answer> {
    const env = { ...process.env, PYTHONPATH: folder, BASE_URL: baseUrl, TOKEN: token }
    const child = Bun.spawn([(await findPython()) ?? "python3", program, ...words], { env, stderr: "pipe" })
    const [printed, complained] = await Promise.all([child.stdout.text(), child.stderr.text()])
    if ((await child.exited) !== 0) throw new Error(complained)
    return JSON.parse(printed)
  }
  return {
    createCollection: (name) => ask("create_collection", name),
    collectionStatus: (id) => ask("collection_status", id),
    createUnit: (collection_id) => ask("create_unit", collection_id),
    pairTestChip: (unit_id) => ask("pair_test_chip", unit_id),
    tokenStatus: (unit_id) => ask("token_status", unit_id),
    testTap: (chip_id) => ask("test_tap", chip_id),
    tap: ({ chip_id, e }) => ask("tap", chip_id, e),
    claim: (session, unit_id, recipient) => askAs(session, "claim", unit_id, recipient),
    claimStatus: (unit_id, claim_id) => ask("claim_status", unit_id, claim_id),
    codeOf: ({ chip_id, e }) => ask("code_of", chip_id, e),
  }
}

/** Debian's own Python is not always the first in PATH, and only that one has Debian's packages. */
async function findPython(): Promise<string | null> {
  for (const python of ["python3", "/usr/bin/python3"]) {
    if (!Bun.which(python)) continue
    const child = Bun.spawn([python, "-c", `import ${modules.join(", ")}`], { stderr: "ignore" })
    if ((await child.exited) === 0) return python
  }
  return null
}
