import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Abi, Hex } from "viem"

export type Artifact = { readonly abi: Abi; readonly bytecode: Hex }

type CompilerOutput = {
  readonly errors?: readonly {
    readonly severity: string
    readonly formattedMessage: string
    readonly sourceLocation?: { readonly file: string }
  }[]
  readonly contracts?: Record<
    string,
    Record<string, { readonly abi: Abi; readonly evm: { readonly bytecode: { readonly object: string } } }>
  >
}

type Compiler = {
  compile(
    input: string,
    callbacks?: { import: (path: string) => { contents: string } | { error: string } },
  ): string
}

const root = join(import.meta.dir, "..")

/**
 * Compiles every `.sol` file of a folder with the production settings, and returns the contracts by name. Imports that
 * do not start with a dot come from `node_modules`. Warnings about the folder's own files count as errors.
 *
 * @throws Error with the compiler's messages
 */
export function compileFolder(folder: string): Record<string, Artifact> {
  const input = inputOf(folder)
  const output: CompilerOutput = JSON.parse(
    loadCompiler().compile(JSON.stringify(input), { import: readPackage }),
  )
  const errors = (output.errors ?? []).filter(
    ({ severity, sourceLocation }) => severity === "error" || (sourceLocation?.file ?? "") in input.sources,
  )
  if (errors.length > 0) throw new Error(errors.map((error) => error.formattedMessage).join("\n"))
  const contracts = Object.keys(input.sources).flatMap((file) =>
    Object.entries(output.contracts?.[file] ?? {}),
  )
  return Object.fromEntries(
    contracts.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]),
  )
}

/**
 * Returns the compiler's standard JSON input of the current contracts, with all sources, as explorers and Sourcify take
 * it to verify deployed contracts.
 */
export function verificationInput(): CompilerInput {
  const input = inputOf(import.meta.dir)
  const imported: CompilerInput["sources"] = {}
  const readAndKeep = (path: string) => {
    const found = readPackage(path)
    if ("contents" in found) imported[path] = { content: found.contents }
    return found
  }
  // Without outputs, the compiler only reads.
  loadCompiler().compile(JSON.stringify({ ...input, settings: {} }), { import: readAndKeep })
  return { ...input, sources: { ...input.sources, ...imported } }
}

function inputOf(folder: string): CompilerInput {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".sol"))
    .sort()
  return {
    language: "Solidity",
    sources: Object.fromEntries(
      files.map((file) => [file, { content: readFileSync(join(folder, file), "utf8") }]),
    ),
    settings: {
      evmVersion: "cancun",
      optimizer: { enabled: true, runs: 1_000_000 },
      metadata: { bytecodeHash: "none" },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  }
}

type CompilerInput = {
  readonly language: "Solidity"
  readonly sources: Record<string, { readonly content: string }>
  readonly settings: object
}

/** Loads the compiler of all contracts, with its JSON interface. */
export function loadCompiler(): Compiler {
  return createRequire(import.meta.url)("solc") as Compiler
}

function readPackage(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readFileSync(join(root, "node_modules", path), "utf8") }
  } catch {
    return { error: `${path} is not installed` }
  }
}

/**
 * Returns the text of each generated file: the current contracts, and the frozen first ones that chains may still have.
 */
export function generate(): Record<string, string> {
  const today = compileFolder(import.meta.dir)
  const first = compileFolder(join(import.meta.dir, "first"))
  return {
    "src/engine/chain/contracts.generated.ts": `${head}
${abiOf("factoryAbi", today.ServiceFactory)}
${abiOf("collectionAbi", today.ServiceCollection)}
${abiOf("deskAbi", today.ServiceDesk)}
/** Creation code of the factory, which deploys the collections' implementation itself. */
${bytecodeOf("factoryBytecode", today.ServiceFactory)}
${bytecodeOf("deskBytecode", today.ServiceDesk)}`,
    "src/engine/chain/first-contracts.generated.ts": `${head}
${abiOf("firstFactoryAbi", first.ServiceFactory)}
${abiOf("firstCollectionAbi", first.ServiceCollection)}
${bytecodeOf("firstFactoryBytecode", first.ServiceFactory)}`,
  }
}

const head = "// Written by contracts/compile.ts. Do not edit; run `bun contracts/compile.ts`.\n"

function abiOf(name: string, artifact: Artifact | undefined): string {
  if (!artifact) throw new Error(`contracts/ lacks the contract of ${name}`)
  return `export const ${name} = ${JSON.stringify(artifact.abi, null, 2)} as const\n`
}

function bytecodeOf(name: string, artifact: Artifact | undefined): string {
  if (!artifact) throw new Error(`contracts/ lacks the contract of ${name}`)
  return `export const ${name} =\n  "${artifact.bytecode}"\n`
}

function writeOrCheck(isCheck: boolean): void {
  for (const [file, text] of Object.entries(generate())) {
    const path = join(root, file)
    if (!isCheck) writeFileSync(path, text)
    else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
      process.stderr.write(`${file} differs from contracts/: run bun contracts/compile.ts\n`)
      process.exitCode = 1
    }
  }
}

/** Writes the generated files; with `--check` names those that differ; with `--input` prints what explorers take. */
if (import.meta.main) {
  const { argv } = process
  if (argv.includes("--input")) process.stdout.write(`${JSON.stringify(verificationInput())}\n`)
  else writeOrCheck(argv.includes("--check"))
}
