import { afterEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { migrate } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"

// The API as a process of its own, as an operator starts and stops it.

const heldNotice = ["--preload", join(import.meta.dir, "../harness/held-notice.ts")]
const children: Bun.Subprocess[] = []
const folders: string[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL")
    await child.exited
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "service-api-"))
  folders.push(folder)
  return folder
}

function start(settings: Record<string, string>, options: string[] = []) {
  const { SERVICE_SECRET, DATA_DIR, ...rest } = {
    SERVICE_SECRET: "a secret of tests that is long enough",
    DATA_DIR: newFolder(),
    ...settings,
  }
  const child = Bun.spawn([process.execPath, ...options, join(import.meta.dir, "../../src/main.ts")], {
    env: { PATH: String(process.env.PATH), HOST: "127.0.0.1", SERVICE_SECRET, DATA_DIR, ...rest },
    stdout: "pipe",
    stderr: "pipe",
  })
  children.push(child)
  return child
}

function holdPort() {
  return Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
}

async function failureOf(settings: Record<string, string>) {
  const child = start(settings)
  const [exitCode, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()])
  return { exitCode, lines: stderr.trim().split("\n") }
}

async function untilItAnswers(port: number): Promise<void> {
  while (!(await answers(port))) await Bun.sleep(25)
}

async function untilItRefuses(port: number): Promise<void> {
  while (await answers(port)) await Bun.sleep(25)
}

function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/health`).then(
    () => true,
    () => false,
  )
}

test("an invalid setting stops the start with one line that names it", async () => {
  expect(await failureOf({ SERVICE_SECRET: "short" })).toEqual({
    exitCode: 1,
    lines: [expect.stringContaining("SERVICE_SECRET")],
  })
})

test("a port in use stops the start with one line that names it", async () => {
  const held = holdPort()
  const failure = await failureOf({ PORT: `${held.port}` })
  held.stop(true)
  expect(failure).toEqual({ exitCode: 1, lines: [expect.stringMatching(new RegExp(`${held.port}.*PORT`))] })
})

test("a read-only database stops the start with one line that says so", async () => {
  const file = join(newFolder(), "file")
  writeFileSync(file, "")
  const [line, exitCode] = [expect.stringMatching(/database.+DATABASE_URL.+DATA_DIR/), 1]
  expect(await failureOf({ DATABASE_URL: `sqlite:${join(file, "service.db")}` })).toEqual({
    exitCode,
    lines: [line],
  })
  expect(await failureOf({ DATA_DIR: file })).toEqual({ exitCode, lines: [line] })
})

test.each(["SIGTERM", "SIGINT"] as const)("%s lets requests in progress finish", async (signal) => {
  const port = await freePort()
  const DATA_DIR = newFolder()
  const key = await issueKey(DATA_DIR)
  const child = start({ PORT: `${port}`, DATA_DIR }, heldNotice)
  const log = follow(child.stderr)
  await untilItAnswers(port)

  const kept = await fetch(`http://127.0.0.1:${port}/health`)
  expect(kept.headers.get("connection")).not.toBe("close")
  const answer = Promise.withResolvers<string>()
  const begun = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_socket, chunk) {
        const text = chunk.toString()
        if (text.startsWith("HTTP/1.1 100")) begun.resolve()
        else answer.resolve(text)
      },
      close: () => answer.resolve("closed without an answer"),
    },
  })
  socket.write(
    `POST /v1/collections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n`,
  )
  await begun.promise
  child.kill(signal)
  await log.until("stopping")
  // Responses during shutdown ask clients to close kept-alive connections.
  const last = await fetch(`http://127.0.0.1:${port}/health`)
  expect(last.headers.get("connection")).toBe("close")
  child.kill("SIGUSR2")
  await untilItRefuses(port)
  socket.write('{"name":"a"}')
  expect(await answer.promise).toStartWith("HTTP/1.1 400")
  expect(await child.exited).toBe(0)
  expect(await answers(port)).toBe(false)
})

/** Issues an API key for a new organization that has no chain to create a collection on. */
async function issueKey(folder: string): Promise<string> {
  const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
  const at = new Date()
  await migrate(db, at)
  const { key } = await db.transaction(async (tx) => {
    const turn = { tx, engine: db.engine, at, request_id: null, wake: () => {}, tell: async () => {} }
    const network = { default_chain_id: null, allowed_chain_ids: [] }
    const { id: organization_id } = await createOrganization(turn, { name: "Maker", ...network })
    return await issueApiKey(turn, { organization_id, name: null })
  })
  await db.close()
  return key
}

/** Reads a stream to its end, so that the process is never blocked by a full pipe, and reports when a text appears. */
function follow(stream: ReadableStream<Uint8Array>) {
  let printed = ""
  const waiting: { text: string; resolve: () => void }[] = []
  const read = async () => {
    for await (const chunk of stream) {
      printed += new TextDecoder().decode(chunk)
      for (const { text, resolve } of waiting) if (printed.includes(text)) resolve()
    }
  }
  read()
  return {
    until: (text: string) =>
      new Promise<void>((resolve) => {
        if (printed.includes(text)) resolve()
        waiting.push({ text, resolve })
      }),
  }
}
