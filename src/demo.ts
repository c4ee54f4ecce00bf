import { existsSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { isFolderLocked, lockForDemo } from "./dev/data-lock.ts"
import { type Journey, runJourney } from "./dev/journey.ts"
import type { DevService } from "./dev/start.ts"
import { dataDirOf, processEnvironment } from "./platform/config.ts"
import { complain, keepFilesPrivate, reachThisMachineDirectly, say } from "./platform/run.ts"

async function main(): Promise<void> {
  keepFilesPrivate()
  reachThisMachineDirectly()
  const { values } = parseArgs({ options: { json: yesOrNo, help: { ...yesOrNo, short: "h" } } })
  if (values.help) return say(usage)
  const folder = dataDirOf(processEnvironment)
  const progress = createProgress(values.json)
  const unlock = await untilAlone(folder, progress)
  const own = (await isServed(folder, progress))
    ? null
    : await progress.step(`service started for this demo, as none runs in ${folder}`, () =>
        startOwnService(folder),
      )
  if (own === null) unlock()
  try {
    const find = async () => JSON.parse(readFileSync(join(folder, "dev.json"), "utf8")) as DevService
    const journey = await runJourney(find, progress)
    say(values.json ? JSON.stringify(journey, null, 2) : summary(journey, progress.elapsed()))
  } finally {
    own?.kill("SIGINT")
    await own?.exited
    unlock()
  }
}

const yesOrNo = { type: "boolean", default: false } as const

const usage = `bun run demo [--json]

The whole journey, step by step: collection, units, test chips, tap, claim, transfer, chip replacement.

It uses the dev service that runs with the same DATA_DIR (./data when unset), and starts one of its own when none runs.

  --json    prints one JSON document with the addresses and transaction hashes, and nothing else`

type Progress = ReturnType<typeof createProgress>

/** A line per step; on a terminal with the seconds so far. */
function createProgress(isQuiet: boolean) {
  const since = performance.now()
  const seconds = (from: number) => `${((performance.now() - from) / 1_000).toFixed(1)} s`
  return {
    async step<T>(name: string, work: () => Promise<T>): Promise<T> {
      if (isQuiet) return await work()
      const begin = performance.now()
      const live = process.stdout.isTTY
        ? setInterval(() => process.stdout.write(`\r  … ${name} ${seconds(begin)}`), 100)
        : undefined
      const value = await work().finally(() => clearInterval(live))
      process.stdout.write(`${process.stdout.isTTY ? "\r\x1b[K" : ""}  ✓ ${name} (${seconds(begin)})\n`)
      return value
    },
    note(text: string): void {
      if (!isQuiet) say(`${process.stdout.isTTY ? "\r\x1b[K" : ""}      ${text}`)
    },
    elapsed: () => seconds(since),
  }
}

/** The service of another demo ends with that demo, in the midst of this one: it is waited for. */
async function untilAlone(folder: string, progress: Progress): Promise<() => void> {
  const unlock = lockForDemo(folder)
  if (unlock) return unlock
  return await progress.step(`waited for another demo that uses ${folder}`, async () => {
    for (;;) {
      await Bun.sleep(200)
      const unlocked = lockForDemo(folder)
      if (unlocked) return unlocked
    }
  })
}

/** Whether a service runs in a folder, be it that it is only starting. */
async function isServed(folder: string, progress: Progress): Promise<boolean> {
  if (!(await isTaken(folder))) return false
  if (await runningService(folder)) return true
  return await progress.step(`waited for the service that uses ${folder}`, () => comesToRun(folder))
}

/** A service that was started just now locks its folder within a second. */
async function isTaken(folder: string): Promise<boolean> {
  for (let look = 0; look < 5; look++) {
    if (isFolderLocked(folder)) return true
    await Bun.sleep(200)
  }
  return false
}

/** Returns false if the service that has the folder ends first. */
async function comesToRun(folder: string): Promise<boolean> {
  const deadline = performance.now() + startPatienceMilliseconds
  while (performance.now() < deadline) {
    if (await runningService(folder)) return true
    if (!isFolderLocked(folder)) return false
    await Bun.sleep(200)
  }
  throw new Error(
    `the service that uses ${folder} does not accept the API key in dev.json there, or does not respond: start it again, or set DATA_DIR to another folder`,
  )
}

/** The running service of a folder, or null if there is none. Another one on its port does not know its API key. */
async function runningService(folder: string): Promise<DevService | null> {
  const path = join(folder, "dev.json")
  if (!existsSync(path)) return null
  const service = JSON.parse(readFileSync(path, "utf8")) as DevService
  const headers = { authorization: `Bearer ${service.api_key}` }
  const response = await fetch(`${service.base_url}/v1/settings`, { headers }).catch(() => null)
  return response?.ok ? service : null
}

const startPatienceMilliseconds = 120_000

async function startOwnService(folder: string) {
  // The one of an earlier service may name a port at which another service runs now.
  const left = join(folder, "dev.json")
  if (existsSync(left)) renameSync(left, join(folder, "dev.kept.json"))
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "dev.ts")], {
    env: {
      ...processEnvironment,
      DATA_DIR: folder,
      // The address of a service on PORT is not that of this one.
      API_BASE_URL: "",
      PORT: "0",
      OPERATOR_PORT: "0",
      DEV_CHAIN_PORT: "0",
      LOG_LEVEL: "error",
    },
    stdout: "ignore",
    stderr: "inherit",
  })
  // A signal to the demo alone would leave the service running, with its folder locked.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, async () => {
      child.kill("SIGINT")
      await child.exited
      process.exit(1)
    })
  const deadline = performance.now() + startPatienceMilliseconds
  while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
    if (await runningService(folder)) return child
    await Bun.sleep(200)
  }
  child.kill()
  throw new Error("the service for the demo did not start")
}

function summary({ collection, units, transactions, owner_on_chain }: Journey, elapsed: string): string {
  return `
The journey took ${elapsed}.

  collection         ${collection.address}
  serials            ${units.map(({ serial }) => serial).join(", ")}
  issuance           ${transactions.issuance.join(", ")}
  claim              ${transactions.claim}
  transfer           ${transactions.transfer}
  chip replacement   ${transactions.chip_replacement}
  owner now          ${owner_on_chain}`
}

try {
  await main()
} catch (error) {
  complain(`the demo stopped: ${(error as Error).message}`)
  process.exit(1)
}
