import { ChipUsageError, chipUsage, runChipCommand } from "./dev/tags/commands.ts"
import { dataDirOf, processEnvironment } from "./platform/config.ts"
import { complain, keepFilesPrivate, say } from "./platform/run.ts"

/** `bun run chip …`: software tags. Returns the exit code: 0 done, 1 refused, 2 wrong usage. */
async function runChip(words: string[]): Promise<number> {
  if (words.length === 0 || words.some((word) => word === "--help" || word === "-h")) {
    say(chipUsage)
    return 0
  }
  try {
    const { text, opens } = await runChipCommand(dataDirOf(processEnvironment), words)
    say(text)
    if (opens) openInBrowser(opens)
    return 0
  } catch (error) {
    complain(`chip: ${(error as Error).message}`)
    if (!(error instanceof ChipUsageError)) return 1
    complain(`\n${chipUsage}`)
    return 2
  }
}

function openInBrowser(url: string): void {
  const command = { darwin: ["open"], win32: ["cmd", "/c", "start", ""] }[process.platform as string] ?? [
    "xdg-open",
  ]
  try {
    Bun.spawn([...command, url], { stdio: ["ignore", "ignore", "ignore"] }).unref()
  } catch {
    complain("chip: there is no browser to open; the URL is above")
  }
}

keepFilesPrivate()
process.exitCode = await runChip(process.argv.slice(2))
