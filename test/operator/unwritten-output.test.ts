import { Database } from "bun:sqlite"
import { afterAll, beforeAll, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runOperator } from "../../src/operator/commands/run-operator.ts"

let environment: { PATH: string | undefined; DATA_DIR: string; SERVICE_SECRET: string }
let organization: string[]

beforeAll(async () => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), "unwritten-"))
  environment = { PATH: process.env.PATH, DATA_DIR, SERVICE_SECRET: "a secret of tests that is long enough" }
  const { id } = (await run("organizations", "create", "--name", "Maker")).document
  organization = ["--organization", id]
})
afterAll(() => rmSync(environment.DATA_DIR, { recursive: true }))

/** Runs a command with `--json`. */
async function run(...words: string[]) {
  let printed = ""
  const print = (text: string) => {
    printed += text
  }
  expect(await runOperator(() => environment, { print, complain() {} }, [...words, "--json"])).toBe(0)
  return { document: JSON.parse(printed) }
}

/** Runs a command in a shell that sends its output elsewhere; `first` writes to the same place. */
async function runInShell(words: string[], to: string, first = "") {
  const program = join(import.meta.dir, "../../src/operator.ts")
  const line = `{ ${first} "${process.execPath}" "${program}" ${words.join(" ")}; } ${to}`
  const child = Bun.spawn(["bash", "-o", "pipefail", "-c", line], {
    ...{ env: environment, stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  })
  return [await child.exited, await child.stderr.text()]
}

test("a key that cannot be shown, because the disk is full or nobody reads, is named so that it can be revoked", async () => {
  // Writes until nothing reads any more.
  const filling = "trap '' PIPE; while echo; do :; done 2>/dev/null;"
  for (const [to, first, code] of [
    ["> /dev/full", "", "ENOSPC"],
    ["| true", filling, "EPIPE"],
  ] as const) {
    const [exitCode, said] = await runInShell(["keys", "issue", ...organization], to, first)
    const { keys } = (await run("keys", "list", ...organization)).document
    const { id } = keys.find(({ revoked_at }: { revoked_at: string | null }) => revoked_at === null)
    expect([exitCode, said]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^operator: .*${code}.*; key ${id} .*: run keys revoke ${id}\n$`)),
    ])
    await run("keys", "revoke", id)
  }
}, 30_000)

test("a list that breaks off is not followed by a second JSON document", async () => {
  let printed = ""
  let said = ""
  const print = (text: string) => {
    printed += text
    const database = new Database(join(environment.DATA_DIR, "service.db"))
    database.run("alter table chips rename to gone")
    database.close()
  }
  const complain = (text: string) => {
    said += text
  }
  const words = ["chips", "list", ...organization, "--json"]
  expect(await runOperator(() => environment, { print, complain }, words)).toBe(1)
  expect(printed).toBe('{\n  "chips": [')
  expect(said).toMatch(/^operator: no such table: chips\n$/)
})
