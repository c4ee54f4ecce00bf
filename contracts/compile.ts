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
    callbacks: { import: (path: string) => { contents: string } | { error: string } },
  ): string
}

const root = join(import.meta.dir, "..")
/** Where the generated text belongs. */
export const generatedFile = join(root, "src/chain/contracts.generated.ts")

/**
 * Compiles every `.sol` file of a folder, with the settings of production, and answers each contract by its name.
 * Imports that do not start with a dot come from `node_modules`. Warnings about the folder's own files count as errors.
 *
 * @throws Error with the compiler's own messages
 */
export function compileFolder(folder: string): Record<string, Artifact> {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".sol"))
    .sort()
  const input = {
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
  const compiler = createRequire(import.meta.url)("solc") as Compiler
  const output: CompilerOutput = JSON.parse(compiler.compile(JSON.stringify(input), { import: readPackage }))
  const errors = (output.errors ?? []).filter(
    ({ severity, sourceLocation }) => severity === "error" || files.includes(sourceLocation?.file ?? ""),
  )
  if (errors.length > 0) throw new Error(errors.map((error) => error.formattedMessage).join("\n"))
  const contracts = files.flatMap((file) => Object.entries(output.contracts?.[file] ?? {}))
  return Object.fromEntries(
    contracts.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]),
  )
}

function readPackage(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readFileSync(join(root, "node_modules", path), "utf8") }
  } catch {
    return { error: `${path} is not installed` }
  }
}

/** The text of `src/chain/contracts.generated.ts`. */
export function generate(): string {
  const { ServiceFactory, ServiceCollection } = compileFolder(import.meta.dir)
  if (!ServiceFactory || !ServiceCollection)
    throw new Error("contracts/ lacks ServiceFactory or ServiceCollection")
  return `// Written by contracts/compile.ts. Do not edit; run \`bun contracts/compile.ts\`.

export const factoryAbi = ${JSON.stringify(ServiceFactory.abi, null, 2)} as const

export const collectionAbi = ${JSON.stringify(ServiceCollection.abi, null, 2)} as const

/** Creation code of the factory, which deploys the collections' implementation itself. */
export const factoryBytecode =
  "${ServiceFactory.bytecode}"
`
}

if (import.meta.main) {
  const generated = generate()
  if (!process.argv.includes("--check")) writeFileSync(generatedFile, generated)
  else if (!existsSync(generatedFile) || readFileSync(generatedFile, "utf8") !== generated) {
    process.stderr.write(
      "src/chain/contracts.generated.ts differs from contracts/: run bun contracts/compile.ts\n",
    )
    process.exitCode = 1
  }
}
