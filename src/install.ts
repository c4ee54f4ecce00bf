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
  const unlock = waitForOthers()
  const saying = setTimeout(complain, 1_000, "installing the packages …")
  const child = Bun.spawn([process.execPath, "install", "--frozen-lockfile", "--no-progress"], {
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
  const next = why.includes("frozen") ? changed : unreached
  complain(`the packages could not be installed: ${why}. ${isOtherBun ? otherBun : next}`)
  return 1
}

const otherBun = `Try it with Bun ${engines.bun}`
const changed = "If package.json was changed on purpose, run bun install; else restore it and bun.lock"
const unreached = "If the registry can be reached and the disk is not full, delete node_modules and try again"

const root = join(import.meta.dir, "..")

/** Returns the function that lets the others continue. */
function waitForOthers(): () => void {
  const file = join(root, "node_modules/.install.db")
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
