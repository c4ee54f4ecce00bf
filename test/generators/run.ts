import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { DevService } from "../../src/dev/start.ts"
import { newFolder, removeDevServices, startDev } from "../harness/dev-service.ts"
import { makePythonClient, missingForPython, pythonCalls } from "./python.ts"
import type { Calls } from "./walk.ts"
import { walk } from "./walk.ts"

/**
 * Has third-party generators generate clients from the document of a running service, compiles them, and runs the
 * journey with each. It takes about a minute and installs 300 MB, so it is not part of `verify`. The one for Python
 * needs Java and Python; without them it is skipped, and what is missing is printed.
 */
const generators: Record<string, (document: string, folder: string) => string[]> = {
  "openapi-typescript": (document, folder) => ["openapi-typescript", document, "-o", `${folder}/api.ts`],
  "hey-api": (document, folder) => ["openapi-ts", "-i", document, "-o", folder],
  orval: (_document, folder) => ["orval", "--config", `${folder}.config.mjs`],
  "swagger-typescript-api": (document, folder) => [
    "swagger-typescript-api",
    "generate",
    "-p",
    document,
    "-o",
    folder,
    "-n",
    "api.ts",
  ],
}

const here = import.meta.dir
const generated = join(here, "generated")

try {
  rmSync(generated, { recursive: true, force: true })
  mkdirSync(generated)
  await run([process.execPath, "install", "--frozen-lockfile", "--silent"])
  const { service } = await startDev(newFolder())
  const document = join(generated, "openapi.json")
  await Bun.write(document, await fetch(`${service.base_url}/openapi.json`))
  await Bun.write(
    join(generated, "orval.config.mjs"),
    `export default { service: {
      input: ${JSON.stringify(document)},
      output: { target: ${JSON.stringify(join(generated, "orval/api.ts"))}, client: "fetch",
        baseUrl: { getBaseUrlFromSpecification: true } },
    } }`,
  )
  for (const [name, command] of Object.entries(generators)) {
    const [tool = "", ...args] = command(document, join(generated, name))
    await run(["node", join(here, "node_modules/.bin", tool), ...args])
  }
  await run(["node", join(here, "node_modules/.bin/tsc"), "-p", "."])
  process.stdout.write("every generated client compiles\n")
  for (const name of Object.keys(generators)) {
    const { calls } = (await import(`./clients/${name}.ts`)) as {
      calls(apiKey: string, baseUrl: string): Calls
    }
    await walkWith(name, calls(service.api_key, service.base_url), service)
  }
  const missing = await missingForPython()
  if (missing.length > 0)
    process.stdout.write(`openapi-generator: left out, it needs ${missing.join(" and ")}\n`)
  else {
    const folder = join(generated, "openapi-generator")
    await makePythonClient(document, folder, run)
    await walkWith("openapi-generator", pythonCalls(folder, service.api_key, service.base_url), service)
  }
} finally {
  await removeDevServices()
}

async function walkWith(name: string, calls: Calls, { wallets }: DevService): Promise<void> {
  process.stdout.write(`${name}: ${await walk(calls, wallets[0]?.address ?? "")}\n`)
}

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { cwd: here, stdout: "pipe", stderr: "pipe" })
  const printed = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}\n${printed.join("")}`)
}
