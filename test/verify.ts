import { existsSync, globSync } from "node:fs"
import { join } from "node:path"

/** Everything that must pass before a change is shared. The first failing step ends it. */
const steps: { name: string; command: string[] }[] = [
  { name: "format and lint", command: ["biome", "check", "--error-on-warnings", "."] },
  { name: "types", command: ["tsc", "-p", "."] },
  { name: "generated contracts", command: [process.execPath, "contracts/compile.ts", "--check"] },
  { name: "generated client", command: [process.execPath, "src/generate-client.ts", "--check"] },
  { name: "generated diagrams", command: [process.execPath, "src/diagrams.ts", "--check"] },
  // Tests spend much time waiting for blocks and processes, so three files run at once. They share servers.
  {
    name: "tests",
    command: [process.execPath, "test", "--parallel=3", "--no-isolate", "--timeout", "120000"],
  },
]

const root = join(import.meta.dir, "..")

async function verify(): Promise<number> {
  installSystemPackages()
  for (const { name, command } of steps) {
    const begin = performance.now()
    process.stdout.write(`▸ ${name}\n`)
    const exitCode = await run(command)
    const seconds = ((performance.now() - begin) / 1_000).toFixed(1)
    process.stdout.write(`${exitCode === 0 ? "✓" : "✗"} ${name} (${seconds} s)\n\n`)
    if (exitCode !== 0) return exitCode
  }
  process.stdout.write(`${tally.passed} passed, ${tally.failed} failed\n`)
  return 0
}

const LONGEST_SILENCE = 600_000

const tally = { passed: 0, failed: 0, heard: 0 }

/** Runs a command, forwards its output, and reads the test runner's counts from it. */
async function run([name, ...args]: string[]): Promise<number> {
  const path = join(root, "node_modules", ".bin", String(name))
  const child = Bun.spawn([existsSync(path) ? path : String(name), ...args], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1" },
  })
  tally.heard = performance.now()
  const watch = setInterval(() => {
    if (performance.now() - tally.heard < LONGEST_SILENCE) return
    process.stderr.write(
      `nothing was printed for 10 minutes: a test, or a process that it left behind, hangs\n`,
    )
    child.kill("SIGKILL")
  }, 1_000)
  const passedOn = Promise.all([passOn(child.stdout, process.stdout), passOn(child.stderr, process.stderr)])
  const exitCode = await child.exited
  clearInterval(watch)
  // A process that a test left behind may keep these streams open.
  await Promise.race([passedOn, Bun.sleep(5_000)])
  return exitCode
}

async function passOn(from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of from) {
    const text = decoder.decode(chunk, { stream: true })
    to.write(text)
    tally.heard = performance.now()
    tally.passed = Number(/^\s*(\d+) pass$/m.exec(text)?.[1] ?? tally.passed)
    tally.failed = Number(/^\s*(\d+) fail$/m.exec(text)?.[1] ?? tally.failed)
  }
}

/** Debian packages that the tests need, each with a file that shows whether it is installed. */
const systemPackages = {
  postgresql: "/usr/lib/postgresql/*/bin/initdb",
  "redis-server": "/usr/bin/redis-server",
  chromium: "/usr/bin/chromium",
}

function installSystemPackages(): void {
  const missing = Object.entries(systemPackages)
    .filter(([, file]) => globSync(file).length === 0)
    .map(([name]) => name)
  if (missing.length === 0) return
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    process.stderr.write(`the tests need these system packages: ${missing.join(", ")}; install them first\n`)
    process.exit(1)
  }
  process.stdout.write(`▸ installing ${missing.join(", ")}\n`)
  const options = {
    stdout: "ignore",
    stderr: "inherit",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  } as const
  // A new machine may still be installing something itself.
  const aptGet = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
  Bun.spawnSync([...aptGet, "update"], options)
  const { exitCode } = Bun.spawnSync(
    [...aptGet, "install", "-y", "--no-install-recommends", ...missing],
    options,
  )
  if (exitCode !== 0) process.exit(1)
}

process.exit(await verify())
