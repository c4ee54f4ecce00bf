import { afterAll, afterEach, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { withDevEnvironment } from "../../src/dev/environment.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import type { Environment } from "../../src/platform/config.ts"
import { newFolder, removeDevServices, startDevHere } from "../harness/dev-service.ts"

// What a dev service leaves in its folder for the other commands, from one start to the next.

setDefaultTimeout(60_000)

const [first, second] = ["the first secret of these tests, long", "the second secret of these tests, long"]
const quiet = { PORT: "0", DEV_CHAIN_PORT: "0", OPERATOR_PORT: "0", LOG_LEVEL: "silent" }

let stops: (() => Promise<void>)[] = []
const stopAll = async () => {
  for (const stop of stops.splice(0)) await stop()
}
afterEach(stopAll)
afterAll(removeDevServices)

/** Starts the service of a folder in place of the one before. */
async function startIn(folder: string, environment: Environment): Promise<void> {
  await stopAll()
  stops = [(await startDevHere({ ...quiet, DATA_DIR: folder, ...environment })).stop]
}

/** Runs a command that is given nothing but the folder; answers its exit code and what it complained of. */
async function operator(folder: string, ...words: string[]): Promise<[code: number, complaint: string]> {
  let complaint = ""
  const terminal = {
    print() {},
    complain(text: string) {
      complaint += text
    },
  }
  return [await runOperator(() => withDevEnvironment({ DATA_DIR: folder }), terminal, words), complaint]
}

test("beside a dev service whose secret is rotated, the operator's commands need nothing but its folder", async () => {
  const folder = newFolder()
  const left = () => readFileSync(join(folder, "environment.json"), "utf8")
  await startIn(folder, { SERVICE_SECRET: first })
  await startIn(folder, { SERVICE_SECRET: second, SERVICE_SECRET_PREVIOUS: first })
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
  expect(statSync(join(folder, "environment.json")).mode & 0o777).toBe(0o600)
  const [code] = await operator(folder, "secrets", "rewrap")
  expect(code).toBe(0)
  await startIn(folder, { SERVICE_SECRET: second })
  expect(left()).not.toContain(first)
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
})

test("a start that is refused for its secret takes the only copy of the right one from nobody", async () => {
  const folder = newFolder()
  await startIn(folder, {})
  await expect(startIn(folder, { SERVICE_SECRET: second })).rejects.toThrow(
    "SERVICE_SECRET is not the one that this database was written with",
  )
  expect(await operator(folder, "organizations", "list")).toEqual([0, ""])
  await startIn(folder, {})
})
