import { existsSync } from "node:fs"
import { join } from "node:path"
import { engines } from "../package.json"
import { takeFile } from "./platform/file-lock.ts"

/**
 * Before each command of `package.json`: installs what `bun.lock` says and is not there yet, one command at a time, as
 * two at once would take files from under each other. Nothing here needs a package. Ends with 1 and one line where that
 * fails.
 */
function install(): number {
  if (Bun.version !== engines.bun)
    complain(
      `this is Bun ${Bun.version}, and all of this was tested with ${engines.bun}: npx -y bun@${engines.bun} run … has that`,
    )
  const isFirst = !existsSync(modules)
  const unlock = waitForOthers()
  if (isFirst) complain("installing the packages …")
  const command = [process.execPath, "install", "--frozen-lockfile", "--no-progress"]
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: root, stdout: "ignore", stderr: "pipe" })
  unlock()
  if (exitCode === 0) return 0
  const why = /^error: (.+)$/m.exec(stderr.toString())?.[1] ?? `bun install ended with ${exitCode}`
  complain(
    `the packages could not be installed: ${why}. Where the registry is reached and the disk has room, put package.json and bun.lock back, delete node_modules and try again`,
  )
  return 1
}

const root = join(import.meta.dir, "..")
const modules = join(root, "node_modules")

/** Answers how to let go of what the others wait for. */
function waitForOthers(): () => void {
  const file = join(modules, ".install.db")
  try {
    const unlock = takeFile(file, 500)
    if (unlock) return unlock
    complain("another command is installing the packages …")
    // Whoever waits longer than the slowest line takes goes on beside the other.
    return takeFile(file, 600_000) ?? (() => {})
  } catch {
    // A folder that cannot be written is one into which nobody installs.
    return () => {}
  }
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}

process.exit(install())
