import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import * as compiler from "@typescript/typescript6"
import { plugin } from "bun"
import { openApiDocument } from "./api/openapi/document.ts"
import { api } from "./api/routes.ts"
import { complain, say } from "./platform/run.ts"

const root = join(import.meta.dir, "..")
const path = join(root, "clients/typescript/api.generated.ts")

/** Writes the types of the TypeScript client, or with `--check` says whether they are those of the document. */
async function main(): Promise<number> {
  const generated = await clientTypes()
  const name = relative(root, path)
  if (!process.argv.includes("--check")) {
    writeFileSync(path, generated)
    say(`wrote ${name}`)
    return 0
  }
  if (existsSync(path) && readFileSync(path, "utf8") === generated) return 0
  complain(`${name} is not what the routes say: run bun run client`)
  return 1
}

async function clientTypes(): Promise<string> {
  // The generator builds syntax trees with the compiler's API, which TypeScript 7 does not have.
  plugin({
    name: "typescript with an API",
    setup(build) {
      build.module("typescript", () => ({ exports: { ...compiler, default: compiler }, loader: "object" }))
    },
  })
  const { default: typesOf, astToString } = await import("openapi-typescript")
  const base = "https://api.example.com"
  const document = openApiDocument(api, { api_base_url: base, docs_url: `${base}/docs` })
  const syntax = await typesOf(JSON.stringify(document), { alphabetize: false, rootTypes: false })
  return `// Generated from the routes by \`bun run client\`. Do not edit.\n\n${astToString(syntax)}`
}

process.exit(await main())
