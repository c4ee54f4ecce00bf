import { afterEach, expect, test } from "bun:test"
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { engines, dependencies as packages, scripts } from "../../package.json"
import { takeFile } from "../../src/platform/file-lock.ts"

// The installation check before each command of a checkout.

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

test("every command first installs what it needs, except the one that needs it installed", () => {
  const others = Object.entries(scripts).filter(([, script]) => !script.startsWith("bun src/install.ts && "))
  expect(others.map(([name]) => name)).toEqual(["format"])
})

test("a command that starts while another one installs says so, and waits for it", async () => {
  const folder = await checkout()
  const unlock = takeFile(lockOf(folder), 0)
  const { stderr, exited } = install(folder)
  const { value } = await stderr.getReader().read()
  expect(value && new TextDecoder().decode(value)).toBe("another command is installing the packages …\n")
  expect(await Promise.race([exited, Bun.sleep(500)])).toBeUndefined()
  unlock?.()
  expect(await exited).toBe(0)
}, 20_000)

test("a command that installs locks out others, says that it takes long, and ends together with its installer", async () => {
  const folder = await checkout({ "no-such-package": "1.0.0" })
  const asked = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const silent = Bun.serve({
    port: 0,
    fetch({ signal }) {
      asked.resolve()
      signal.addEventListener("abort", () => left.resolve())
      return new Promise<Response>(() => {})
    },
  })
  const command = install(folder, silent.url.href)
  await asked.promise
  expect(takeFile(lockOf(folder), 0)).toBeNull()
  const { value } = await command.stderr.getReader().read()
  expect(value && new TextDecoder().decode(value)).toBe("installing the packages …\n")
  command.kill("SIGTERM")
  expect(await command.exited).toBe(1)
  await left.promise
  takeFile(lockOf(folder), 0)?.()
  await silent.stop(true)
}, 20_000)

test("a command whose packages cannot be downloaded says why in one line, and what to do", async () => {
  const folder = await checkout({ "no-such-package": "1.0.0" })
  const { stderr, exited } = install(folder)
  expect(await exited).toBe(1)
  expect(await stderr.text()).toMatch(
    /the packages could not be installed: ConnectionRefused .+\. If .+ delete node_modules and try again\n$/,
  )
}, 20_000)

test("a command of a user without a home, who may not write in a complete checkout, runs", async () => {
  const folder = await completeCheckout()
  expect(await installAsOther(folder)).toEqual({ code: 0, said: "" })
}, 20_000)

test("a command of a user who may not write in an incomplete checkout says who has to complete it", async () => {
  const folder = await completeCheckout()
  rmSync(join(folder, "node_modules/jose"), { recursive: true })
  const { code, said } = await installAsOther(folder)
  expect(said).toMatch(
    /^the packages could not be installed: .+\. This user may not .+: run bun install --frozen-lockfile as .+\n$/,
  )
  expect(code).toBe(1)
}, 20_000)

test("a command run with another version of Bun says so and continues", async () => {
  const folder = await checkout({}, "1.0.0")
  const { stderr, exited } = install(folder)
  expect(await exited).toBe(0)
  expect(await stderr.text()).toStartWith(
    `this is Bun ${Bun.version}, but the service was tested with 1.0.0: use npx -y bun@1.0.0`,
  )
}, 20_000)

test("a command run with another version of Bun whose packages cannot be downloaded names the right version", async () => {
  const folder = await checkout({ "no-such-package": "1.0.0" }, "1.0.0")
  const { stderr, exited } = install(folder)
  expect(await exited).toBe(1)
  expect(await stderr.text()).toEndWith(". Try it with Bun 1.0.0\n")
}, 20_000)

async function checkout(dependencies: Record<string, string> = {}, bun = engines.bun): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "install-"))
  folders.push(folder)
  mkdirSync(join(folder, "src/platform"), { recursive: true })
  for (const file of ["src/install.ts", "src/platform/file-lock.ts"])
    copyFileSync(join(import.meta.dir, "../..", file), join(folder, file))
  await Bun.write(join(folder, "package.json"), JSON.stringify({ engines: { bun }, dependencies }))
  return folder
}

/** A checkout with one package, as if its owner had installed it. */
async function completeCheckout(): Promise<string> {
  const dependencies = { jose: packages.jose }
  const folder = await checkout(dependencies)
  const project = join(import.meta.dir, "../..")
  const [entry] = /^ +"jose": \[.+$/m.exec(readFileSync(join(project, "bun.lock"), "utf8")) ?? []
  const lock = `{ "lockfileVersion": 2, "workspaces": { "": ${JSON.stringify({ dependencies })} }, "packages": { ${entry} } }`
  await Bun.write(join(folder, "bun.lock"), lock)
  cpSync(join(project, "node_modules/jose"), join(folder, "node_modules/jose"), { recursive: true })
  return folder
}

/** As a user without rights, which root without its capabilities is, and with a home that cannot be made. */
async function installAsOther(folder: string) {
  const modules = join(folder, "node_modules")
  chmodSync(modules, 0o555)
  const powerless = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all"] : []
  const { stderr, exited } = Bun.spawn([...powerless, process.execPath, "src/install.ts"], {
    cwd: folder,
    stderr: "pipe",
    env: { PATH: process.env.PATH, HOME: join(modules, "home") },
  })
  const ended = { code: await exited, said: await stderr.text() }
  chmodSync(modules, 0o755)
  return ended
}

function lockOf(folder: string): string {
  return join(folder, "node_modules/.install.db")
}

/** Without a registry, unless one is given. */
function install(folder: string, registry = "http://127.0.0.1:9/") {
  return Bun.spawn([process.execPath, "src/install.ts"], {
    cwd: folder,
    stderr: "pipe",
    env: { ...process.env, BUN_CONFIG_REGISTRY: registry },
  })
}
