import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { engines } from "../package.json"
import { takeFile } from "./platform/file-lock.ts"

/**
 * Before each command of `package.json`: installs what `bun.lock` says and is not there yet, one command at a time, as
 * two at once would take files from under each other. Nothing here needs a package. Answers the exit code: 1 with one
 * line where that fails.
 */
async function install(): Promise<number> {
  const isOtherBun = Bun.version !== engines.bun
  if (isOtherBun)
    complain(
      `this is Bun ${Bun.version}, and all of this was tested with ${engines.bun}: npx -y bun@${engines.bun} run … has that`,
    )
  const unlock = waitForOthers()
  const saying = setTimeout(complain, 1_000, "installing the packages …")
  const child = Bun.spawn([process.execPath, "install", "--frozen-lockfile", "--no-progress"], {
    cwd: root,
    stdout: "ignore",
    stderr: "pipe",
  })
  // What is told to end, ends with what it has started: the next command would install beside that.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal))
  // In words that an older Bun knows, too.
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
const changed = "Run bun install where package.json was changed on purpose, else put it and bun.lock back"
const unreached = "Where the registry is reached and the disk has room, delete node_modules and try again"

const root = join(import.meta.dir, "..")

/** Answers how to let go of what the others wait for. */
function waitForOthers(): () => void {
  const file = join(root, "node_modules/.install.db")
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

process.exit(await install())
