import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Webhook } from "standardwebhooks"
import { useBrowser } from "../harness/browser.ts"

const root = join(import.meta.dir, "../..")
const modules = join(root, "node_modules")
const folder = mkdtempSync(join(tmpdir(), "service api "))
const project = join(folder, "project")

/** The first attempt connects to a port where nothing listens; the response to the second is reported. */
const program = `import { createClient, dataOf, ServiceError } from "service-api-client"
import { waitForUnit } from "service-api-client/wait-for"

export async function run(base_url: string): Promise<string> {
  const addresses = ["http://localhost:1", base_url]
  const api = createClient({ base_url: () => addresses.shift() ?? base_url, token: "end_sk_test" })
  const unit = await dataOf(api.POST("/v1/units", { body: { collection_id: "c", name: "Jacket 1" } }))
  const issued = await waitForUnit(api, unit.id, { interval_milliseconds: 5 })
  try {
    await dataOf(api.GET("/v1/units"))
    return "no refusal"
  } catch (error) {
    if (error instanceof ServiceError) return issued.id + " " + error.code
    throw error
  }
}
`

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1nT8qPzq3Vc="
const event = (number: number) => ({ id: `e${number}`, type: "unit.created" })
const sentAt = new Date()
const sentBody = JSON.stringify(event(3))
const sentHeaders = {
  "webhook-id": "e3",
  "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1_000)),
  "webhook-signature": new Webhook(secret).sign("e3", sentAt, sentBody),
}

/** The first stream breaks before its first event; the second continues where the first left off. */
const eventsProgram = `import { createClient } from "service-api-client"
import { verifyWebhook } from "service-api-client/webhooks"

export async function run(base_url: string): Promise<string> {
  const api = createClient({ base_url, token: "end_sk_test" })
  const ids: string[] = []
  for await (const event of api.events.list()) ids.push(event.id)
  for await (const event of api.events.stream()) {
    ids.push(event.id)
    break
  }
  const sent = await verifyWebhook(${JSON.stringify(sentBody)}, ${JSON.stringify(sentHeaders)}, "${secret}")
  const forged = await verifyWebhook("{}", ${JSON.stringify(sentHeaders)}, "${secret}").catch(String)
  return [...ids, sent.id, forged].join(" ")
}
`

/** A server that returns just what the programs need. */
let server: Bun.Server<undefined>
const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" }
const file = async (path: string) =>
  new Response(Bun.file(path), { headers: { "content-type": "text/javascript" } })

beforeAll(async () => {
  cpSync(join(root, "clients/typescript"), join(folder, "package"), { recursive: true })
  mkdirSync(join(project, "node_modules"), { recursive: true })
  symlinkSync(modules, join(folder, "node_modules"))
  const packed = await output(
    ["npm", "pack", "--silent", "--offline", "--pack-destination", folder],
    "package",
  )
  await output(["tar", "xzf", packed.trim().split("\n").at(-1) ?? ""], ".", "--one-top-level=packed")
  cpSync(join(folder, "packed/package"), join(project, "node_modules/service-api-client"), {
    recursive: true,
  })
  server = Bun.serve({
    hostname: "localhost",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === "/page") return new Response(page, { headers: { "content-type": "text/html" } })
      if (pathname === "/program.js") return await file(join(project, "program.js"))
      if (pathname === "/openapi-fetch.js") return await file(join(modules, "openapi-fetch/dist/index.mjs"))
      if (pathname.startsWith("/client/"))
        return await file(join(project, "node_modules/service-api-client/dist", pathname.slice(8)))
      if (request.method === "OPTIONS") return new Response(null, { headers: cors })
      if (pathname === "/v1/events")
        return Response.json({ events: [event(1)], pagination: { has_more: false } }, { headers: cors })
      if (pathname === "/v1/events/stream") {
        const from = request.headers.get("last-event-id")
        const text =
          from === null ? ": here\nid: e1\n\n" : `id: e2\ndata: ${JSON.stringify({ ...event(2), from })}\n\n`
        return new Response(text, { headers: { ...cors, "content-type": "text/event-stream" } })
      }
      if (pathname === "/v1/units/u")
        return Response.json({ id: "u", collection: { token: { status: "active" } } }, { headers: cors })
      if (request.method === "GET")
        return Response.json({ error: { code: "auth.unauthorized" } }, { status: 401, headers: cors })
      const { name } = (await request.json()) as { name: string }
      return Response.json({ id: name === "Jacket 1" ? "u" : "?" }, { status: 201, headers: cors })
    },
  })
}, 60_000)
afterAll(() => {
  server.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

const page = `<!doctype html><title>Client</title><p id="told"></p>
<script type="importmap">{"imports": {"service-api-client": "/client/client.js",
  "service-api-client/wait-for": "/client/wait-for.js", "openapi-fetch": "/openapi-fetch.js"}}</script>
<script type="module">
import { run } from "/program.js"
run(location.origin).catch(String).then((text) => { document.getElementById("told").textContent = text })
</script>`

describe("the packed client", () => {
  test("compiles in a project of its own, with its own types and no platform types", async () => {
    await Bun.write(join(project, "package.json"), JSON.stringify({ type: "module" }))
    await Bun.write(join(project, "program.ts"), program)
    await Bun.write(join(project, "events.ts"), eventsProgram)
    const options = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--strict"]
    const printed = await output(
      [join(modules, ".bin/tsc"), ...options, "program.ts", "events.ts"],
      "project",
    )
    expect(printed).toBe("")
  }, 60_000)

  test("has the types of its exports for a TypeScript that does not read `exports`, as with `commonjs`", async () => {
    const { exports, types, typesVersions } = await Bun.file(
      join(folder, "packed/package/package.json"),
    ).json()
    const { "*": older } = typesVersions
    const found = { ".": types, "./wait-for": older["wait-for"][0], "./webhooks": older.webhooks[0] }
    const wanted = Object.entries(exports as Record<string, { types: string }>).map(([name, { types }]) => [
      name,
      types,
    ])
    expect(found).toEqual(Object.fromEntries(wanted))
  })

  test.each(["node", process.execPath])(
    "runs on %s and survives a lost connection",
    async (runtime) => {
      const call = `const { run } = await import("./program.js"); console.log(await run(process.argv.at(-1)))`
      await Bun.write(join(project, "main.js"), call)
      const printed = await output([runtime, "main.js", `http://localhost:${server.port}`], "project")
      expect(printed).toBe("u auth.unauthorized\n")
    },
    30_000,
  )

  test.each(["node", process.execPath])(
    "lists and streams events and verifies webhooks on %s",
    async (runtime) => {
      const call = `const { run } = await import("./events.js"); console.log(await run(process.argv.at(-1))); process.exit(0)`
      await Bun.write(join(project, "watch.js"), call)
      const printed = await output([runtime, "watch.js", `http://localhost:${server.port}`], "project")
      expect(printed).toBe("e1 e2 e3 WebhookError: no signature of the webhook is right\n")
    },
    30_000,
  )

  describe("in a browser", () => {
    const { newPage } = useBrowser()
    test("runs as ES modules, without a bundler", async () => {
      const { page } = await newPage()
      await page.goto(`http://localhost:${server.port}/page`)
      await page.locator("#told", { hasText: "u auth.unauthorized" }).waitFor()
    }, 60_000)

    test("takes a path as base URL for one of the page's own origin", async () => {
      const { page } = await newPage()
      await page.goto(`http://localhost:${server.port}/page`)
      const run = `import("/program.js").then(({ run }) => run("/"))`
      expect(await page.evaluate<string>(run)).toBe("u auth.unauthorized")
    }, 60_000)

    test("runs in a page on http, such as one that a phone opens on the developer's machine", async () => {
      const { page } = await newPage()
      // Browsers offer crypto.randomUUID only to pages on https or localhost.
      await page.addInitScript("delete Crypto.prototype.randomUUID")
      await page.goto(`http://localhost:${server.port}/page`)
      await page.locator("#told:not(:empty)").waitFor()
      expect(await page.locator("#told").textContent()).toBe("u auth.unauthorized")
    }, 60_000)
  })
})

/** Returns what a command prints, run in a folder of this test. Throws with its whole output if it fails. */
async function output(command: string[], within: string, ...more: string[]): Promise<string> {
  const child = Bun.spawn([...command, ...more], {
    cwd: join(folder, within),
    env: { ...process.env, PATH: `${join(modules, ".bin")}:${process.env.PATH}` },
    stdout: "pipe",
    stderr: "pipe",
  })
  const [printed, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${printed}${complaint}`)
  return printed
}
