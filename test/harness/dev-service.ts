import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startServer } from "../../src/api/server.ts"
import { type DevService, startDev as startDevWith } from "../../src/dev/start.ts"
import { startOperatorPort } from "../../src/operator/port/start.ts"
import type { Environment } from "../../src/platform/config.ts"
import { startWorkers } from "../../workers/start.ts"

export const root = join(import.meta.dir, "../..")

const folders: string[] = []
const children: Bun.Subprocess[] = []

/** A folder that is removed at the end, whose path contains spaces, as real ones may. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "service api "))
  folders.push(folder)
  return folder
}

/** A development service in its own process, and what it printed. */
type StartedDev = { child: Bun.Subprocess; service: DevService; greeting: string }

/** Starts the development service as its user does, on free ports, and waits until it is ready. */
export async function startDev(folder: string, environment: Environment = {}): Promise<StartedDev> {
  const child = Bun.spawn([process.execPath, join(root, "src/dev.ts")], {
    env: {
      ...process.env,
      ...environment,
      DATA_DIR: folder,
      PORT: "0",
      DEV_CHAIN_PORT: "0",
      OPERATOR_PORT: "0",
      LOG_LEVEL: "error",
    },
    stdout: "pipe",
    stderr: "inherit",
  })
  children.push(child)
  let greeting = ""
  for await (const chunk of child.stdout) {
    greeting += new TextDecoder().decode(chunk)
    if (greeting.includes("nothing is lost"))
      return { child, service: JSON.parse(readFileSync(join(folder, "dev.json"), "utf8")), greeting }
  }
  throw new Error(`the service ended before it was ready: ${greeting}`)
}

/** The same inside the test's process. */
export function startDevHere(environment: Environment) {
  return startDevWith(environment, { startServer, startWorkers, startOperatorPort })
}

/** Stops a service as Ctrl-C does and returns its exit code. */
export async function stopGently(child: Bun.Subprocess): Promise<number> {
  child.kill("SIGINT")
  return await child.exited
}

/** Kills what was started and removes the folders; for `afterAll`. */
export async function removeDevServices(): Promise<void> {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL")
    await child.exited
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}
