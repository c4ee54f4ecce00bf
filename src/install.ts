import { accessSync, constants, existsSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { engines } from "../package.json"
import { takeFile } from "./platform/file-lock.ts"

/**
 * Runs before each command of `package.json`: installs the missing packages of `bun.lock`, one command at a time,
 * because parallel installs break each other. Needs no package itself. Returns the exit code.
 */
async function install(): Promise<number> {
  const isOtherBun = Bun.version !== engines.bun
  if (isOtherBun)
    complain(
      `this is Bun ${Bun.version}, but the service was tested with ${engines.bun}: use npx -y bun@${engines.bun} run …`,
    )
  const isLocked = isOfSomeoneElse(modules)
  const unlock = waitForOthers()
  const saying = setTimeout(complain, 1_000, "installing the packages …")
  const options = ["--frozen-lockfile", "--no-progress", ...(isLocked ? onlyCheck : [])]
  const child = Bun.spawn([process.execPath, "install", ...options], {
    cwd: root,
    stdout: "ignore",
    stderr: "pipe",
  })
  // Signals are passed on, or the next command would install in parallel with an orphan.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal))
  // With what an older Bun knows too.
  const said = stripVTControlCharacters(await new Response(child.stderr).text())
  const exitCode = await child.exited
  clearTimeout(saying)
  unlock()
  if (exitCode === 0) return 0
  if (child.signalCode !== null) return 1
  const why = /^error: (.+)$/m.exec(said)?.[1] ?? `bun install ended with ${exitCode}`
  const next = isLocked ? ofTheirOwner : why.includes("frozen") ? changed : unreached
  complain(`the packages could not be installed: ${why}. ${isOtherBun ? otherBun : next}`)
  return 1
}

const otherBun = `Try it with Bun ${engines.bun}`
const changed = "If package.json was changed on purpose, run bun install; else restore it and bun.lock"
const unreached = "If the registry can be reached and the disk is not full, delete node_modules and try again"

const ofTheirOwner =
  "This user may not write in node_modules: run bun install --frozen-lockfile as the user who may"

const root = join(import.meta.dir, "..")
const modules = join(root, "node_modules")

/** Returns whether the folder exists but may not be written, as for a service's own user or in a container. */
function isOfSomeoneElse(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return false
  } catch {
    return existsSync(folder)
  }
}

/**
 * Checks the packages that an image has. Bun needs a folder for its cache even then, which such a user often lacks; any
 * that exists will do.
 */
const onlyCheck = ["--production", "--omit=peer", "--ignore-scripts", "--cache-dir=node_modules"]

/** Returns the function that lets the others continue. */
function waitForOthers(): () => void {
  const file = join(modules, ".install.db")
  try {
    const unlock = takeFile(file, 500)
    if (unlock) return unlock
    complain("another command is installing the packages …")
    // After longer than the slowest connection needs, it installs anyway.
    return takeFile(file, 600_000) ?? (() => {})
  } catch {
    // Nobody installs into a folder that cannot be written.
    return () => {}
  }
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}

process.exit(await install())
