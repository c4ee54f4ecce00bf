import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { guidesFor, runbooks } from "../../src/api/docs/guides.ts"
import { operationsOf } from "../../src/api/docs/reference.ts"
import { typeScriptOf } from "../../src/api/docs/snippets.ts"
import { openApiDocument } from "../../src/api/openapi/document.ts"
import { api, routes } from "../../src/api/routes.ts"
import type { DevService } from "../../src/dev/start.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { commands } from "../../src/operator/commands/commands.ts"
import { startDevHere } from "../harness/dev-service.ts"

const root = join(import.meta.dir, "../..")
const folder = mkdtempSync(join(tmpdir(), "service api "))
/** Inside the project, so that its packages can be resolved. */
const program = join(root, "node_modules/.cache", `guides-${process.pid}`)
let dev: { service: DevService; stop(): Promise<void> }

beforeAll(async () => {
  mkdirSync(program, { recursive: true })
  const quiet = { DATA_DIR: folder, PORT: "0", OPERATOR_PORT: "0", DEV_CHAIN_PORT: "0", LOG_LEVEL: "error" }
  dev = await startDevHere({ ...process.env, ...quiet })
}, 60_000)
afterAll(async () => {
  await dev.stop()
  for (const each of [folder, program]) rmSync(each, { recursive: true, force: true })
})

/** The guides are one story: later guides use what earlier ones created. */
describe("the guides, run from first to last", () => {
  test.concurrent("work in bash as printed", async () => {
    const printed = await inBash(blocksOf("bash").join("\n"))
    expect(printed.match(/"status":"claimed"/g)).toHaveLength(3)
    // A transfer and a metadata refresh.
    expect(printed.match(/"status":"confirmed"/g)).toHaveLength(2)
    expect(printed).toContain("https://shop.example/jackets/1?service_chip_id=")
  }, 90_000)

  test.concurrent("come after the README's first requests, which work in bash, too", async () => {
    const [, block = ""] = /^## First requests\n[\s\S]*?```sh\n([\s\S]*?)^```$/m.exec(await readme()) ?? []
    const printed = await inBash(block.replace("http://localhost:3000", dev.service.base_url))
    expect(printed.match(/"status":"claimed"/g)).toHaveLength(1)
  }, 90_000)

  test("contain no shell command that bash cannot parse", async () => {
    const child = Bun.spawn(["bash", "-n"], { stdin: new Blob([blocksOf("sh").join("\n")]), stderr: "pipe" })
    expect(await new Response(child.stderr).text()).toBe("")
  })

  test("have no comments after commands, which an interactive zsh passes on as arguments", async () => {
    const sections = /^## Run it\n[\s\S]*?(?=^## How it is built)/m.exec(await readme())?.[0] ?? ""
    const first = [...sections.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text)
    expect(first).not.toEqual([])
    expect([...blocksOf("bash", "sh"), ...first].join("\n")).not.toMatch(/ # |^#/m)
  })

  test("work in TypeScript with either kind of wallet, and every operation's snippet compiles", async () => {
    const wallets = ["viem", "wagmi"] as const
    for (const [index, wallet] of wallets.entries())
      await Bun.write(join(program, `${wallet}.ts`), storyOf(wallet, index))
    await Bun.write(join(program, "operations.ts"), operationSnippets())
    await Bun.write(join(program, "tsconfig.json"), JSON.stringify(compilerSettings))
    expect(await run([join(root, "node_modules/.bin/tsc"), "-p", program])).toBe("")
    const told = await Promise.all(
      wallets.map((wallet) => run([process.execPath, join(program, `${wallet}.ts`)])),
    )
    expect(told).toEqual(["confirmed\n", "confirmed\n"])
  }, 120_000)
})

test("every operator command in guides, runbooks and the README exists and accepts the options shown", async () => {
  const guides = guidesFor({ api_base_url: dev.service.base_url })
  const texts = [...guides, ...runbooks()].map(({ markdown }) => markdown)
  const lines = [...texts, await readme()].join("\n").replaceAll("\\\n", " ").split("\n")
  const shown = lines
    .map(
      (line) =>
        /^[^`]*bun (?:run operator|src\/operator\.ts) +([^\s`#|;)][^`#|;)]*)$/.exec(
          line.replace(/ [#|].*/, ""),
        )?.[1],
    )
    .filter((text) => text !== undefined)
  const known = shown.map((text) => {
    const words =
      text.match(/"[^"]*"|[^\s[\]]+/g)?.filter((word) => !["--json", "--help"].includes(word)) ?? []
    const command = commands.find(({ name }) => name.split(" ").every((word, index) => word === words[index]))
    if (!command) throw new Error(`there is no command: ${text}`)
    if (!text.includes("--help")) parseValues(command, words.slice(command.name.split(" ").length))
    return command.name
  })
  // Commands that register a sign-in, create products, and order and import tags.
  for (const name of ["identity set", "products create", "chips encode", "chips import"])
    expect(known).toContain(name)
})

/** Returns what commands print. All of them must succeed without a warning. */
async function inBash(commands: string): Promise<string> {
  const { api_key, chain } = dev.service
  const here = commands.replace("end_sk_…", api_key).replace("http://127.0.0.1:8545", chain.rpc_url)
  const child = Bun.spawn(["timeout", "80", "bash", "-eu"], {
    stdin: new Blob([here]),
    stdout: "pipe",
    stderr: "pipe",
  })
  const printed = await new Response(child.stdout).text()
  expect(await new Response(child.stderr).text()).toBe("")
  expect(await child.exited).toBe(0)
  return printed
}

function readme(): Promise<string> {
  return Bun.file(join(root, "README.md")).text()
}

/** Returns the code blocks of all guides in some languages, in order. */
function blocksOf(...languages: string[]): string[] {
  return guidesFor({ api_base_url: dev.service.base_url }).flatMap(({ markdown }) =>
    [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
      .filter(([, language = ""]) => languages.includes(language))
      .map(([, , text = ""]) => text),
  )
}

/**
 * Returns a module with a guide's code and what the guide expects the reader to have: a wallet, as viem's client or in
 * wagmi, which is configured for another chain only.
 */
function storyOf(wallet: "viem" | "wagmi", index: number): string {
  const { wallets, chain, api_key } = dev.service
  const lines = blocksOf("ts", wallet).join("\n").replaceAll("end_sk_…", api_key).split("\n")
  const imports = new Set(lines.filter((line) => line.startsWith("import ")))
  return `import { connect, createConfig, mock } from "@wagmi/core"
import { createWalletClient, custom, http } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry, mainnet } from "viem/chains"
${[...imports].join("\n")}

const account = privateKeyToAccount("${wallets[index]?.private_key}")
const rpc = http("${chain.rpc_url}")({})
let chainId = "0x1"
const known = new Set([chainId])
const wallet = createWalletClient({
  account,
  chain: mainnet,
  transport: custom({
    async request({ method, params }) {
      if (method === "eth_chainId") return chainId
      if (method === "wallet_addEthereumChain") return void known.add(params[0].chainId)
      if (method !== "wallet_switchEthereumChain") return await rpc.request({ method, params })
      const unknown = { code: 4902, message: "Unrecognized chain ID" }
      // As MetaMask on phones says it.
      if (!known.has(params[0].chainId)) throw { code: -32603, message: "", data: { originalError: unknown } }
      chainId = params[0].chainId
    },
  }),
})
const connector = mock({ accounts: [account.address] })
const chainHere = { ...foundry, rpcUrls: { default: { http: ["${chain.rpc_url}"] } } } as const
const chains = [mainnet, chainHere]
const wagmiConfig = createConfig({
  chains: [mainnet, chainHere],
  connectors: [connector],
  transports: { [mainnet.id]: http("http://127.0.0.1:9"), [foundry.id]: http("${chain.rpc_url}") },
})
await connect(wagmiConfig, { connector: wagmiConfig.connectors[0] ?? connector, chainId: mainnet.id })

${lines.filter((line) => !line.startsWith("import ")).join("\n")}
console.log(moved.status)
process.exit(0)
`
}

/** Wraps each operation's TypeScript snippet in a function. */
function operationSnippets(): string {
  const base = "https://api.brand.test"
  const document = openApiDocument(api, { api_base_url: base, docs_url: `${base}/docs` })
  const names = new Set(routes.flatMap(({ params }) => Object.keys(params.properties)))
  return `import { dataOf, type ServiceClient } from "service-api-client"
declare const api: ServiceClient, visitor: ServiceClient
declare const ${[...names].map((name) => `${name}: string`).join(", ")}
${operationsOf(document)
  .map(
    (asked) =>
      `export async function ${asked.operation.operationId}() {\n${typeScriptOf(asked)}\nreturn result\n}`,
  )
  .join("\n")}
`
}

const compilerSettings = {
  compilerOptions: {
    target: "ES2022",
    module: "Preserve",
    moduleResolution: "bundler",
    lib: ["ES2022", "DOM", "DOM.Iterable"],
    types: ["bun"],
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    paths: {
      "service-api-client": [join(root, "clients/typescript/client.ts")],
      "service-api-client/*": [join(root, "clients/typescript/*.ts")],
    },
  },
  files: ["viem.ts", "wagmi.ts", "operations.ts"],
}

/** Returns what a command prints. Throws with its whole output if it fails. */
async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: program, stdout: "pipe", stderr: "pipe" })
  const printed = await new Response(child.stdout).text()
  const complaint = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`${printed}${complaint}`)
  return printed
}
