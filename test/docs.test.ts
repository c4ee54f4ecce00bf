import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import axe from "axe-core"
import type { Browser } from "playwright-core"
import { createApp } from "../src/app.ts"
import { freePort } from "../src/dev/chain.ts"
import { startDev } from "../src/dev.ts"
import { errorTexts } from "../src/docs/error-texts.ts"
import { keyToFillIn } from "../src/docs/getting-started.ts"
import { type ErrorCode, errorCatalogue } from "../src/errors.ts"
import { routes } from "../src/routes.ts"
import { startBrowser } from "./browser.ts"
import { type Engine, engines } from "./engines.ts"
import { openService, type TestService } from "./service-harness.ts"

const sqlite = engines.find(({ name }) => name === "sqlite") as Engine
const codes = Object.keys(errorCatalogue) as ErrorCode[]

let service: TestService
let app: ReturnType<typeof createApp>
let baseUrl: string

beforeAll(async () => {
  service = await openService(sqlite)
  const port = await freePort()
  baseUrl = `http://localhost:${port}`
  const config = { ...service.context.config, api_base_url: baseUrl, docs_url: `${baseUrl}/docs` }
  app = createApp({ ...service.context, config }).listen({ hostname: "localhost", port })
})
afterAll(async () => {
  await app.stop()
  await service.close()
})

const read = async (path: string) => {
  const response = await fetch(`${baseUrl}${path}`)
  return { response, text: await response.text() }
}

describe("the documentation", () => {
  test("is HTML that loads nothing but its own style sheet and runs nothing", async () => {
    for (const path of [
      "/docs",
      "/docs/errors",
      "/docs/operations/createTap",
      "/docs/errors/chip.not_found",
    ]) {
      const { response, text } = await read(path)
      expect(response.status).toBe(200)
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(response.headers.get("content-security-policy")).toBe(
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      )
      expect(response.headers.get("x-request-id")).toMatch(/^req_/)
      expect(text.match(/<(script|img|iframe|object|style)|\bon\w+=|\bstyle=|src=/g)).toBeNull()
      expect(text.match(/<link [^>]*>/g)).toEqual(['<link rel="stylesheet" href="/docs/style.css">'])
    }
    expect((await read("/docs/style.css")).response.headers.get("content-type")).toStartWith("text/css")
  })

  test("has no link that leads nowhere", async () => {
    const open = ["/docs"]
    const seen = new Set(open)
    const dead: string[] = []
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      const { response, text } = await read(path)
      if (response.status !== 200) dead.push(path)
      if (!path.startsWith("/docs")) continue
      for (const [, href = ""] of text.matchAll(/href="([^"#]+)/g)) {
        if (!seen.has(href)) open.push(href)
        seen.add(href)
      }
    }
    expect(dead).toEqual([])
    expect(seen.size).toBeGreaterThan(codes.length + routes.length)
  })

  test("has a page for every operation", async () => {
    for (const { operation, summary, method, path } of routes) {
      const { text } = await read(`/docs/operations/${operation}`)
      expect(text).toContain(`<h1>${summary.replaceAll("'", "&#39;")}</h1>`)
      expect(text).toContain(`<code>${method} ${path}</code>`)
    }
  })

  test("shows commands that bash understands", async () => {
    const commands: string[] = []
    for (const { operation } of routes) {
      const { text } = await read(`/docs/operations/${operation}`)
      const [, command = ""] = /<code>(curl [^<]*)<\/code>/.exec(text) ?? []
      expect(command).not.toBe("")
      commands.push(command.replace(/&#(\d+);/g, (_, point) => String.fromCharCode(point)))
    }
    const child = Bun.spawn(["bash", "-n"], { stdin: new Blob([commands.join("\n")]), stderr: "pipe" })
    expect(await new Response(child.stderr).text()).toBe("")
  })

  test("escapes what it shows", async () => {
    const { text } = await read("/docs/operations/createTap")
    expect(text).toContain("Authorization: Bearer $API_KEY&#34;")
    expect(text).not.toContain("undefined")
    expect(text).not.toContain("[object Object]")
  })
})

describe("the pages on errors", () => {
  test.each(codes)("%s has one, with an example, a request that works and related codes", async (code) => {
    const { response, text } = await read(`/docs/errors/${code}`)
    expect(response.status).toBe(200)
    for (const part of ["What happened", "How to fix it", "A request that works", "Related codes"])
      expect(text).toContain(`<h2>${part}</h2>`)
    expect(text).toContain(`${baseUrl}/docs/errors/${code}`)
    expect(text).toContain("curl ")
  })

  test("are of codes in the catalogue only", async () => {
    expect(Object.keys(errorTexts).sort()).toEqual([...codes].sort())
    for (const code of ["chip.no_such", "constructor", "..", "%2e%2e", "$&"])
      expect((await read(`/docs/errors/${code}`)).response.status).not.toBe(200)
  })

  test("relate each code to others, never to itself", () => {
    for (const code of codes) {
      expect(errorTexts[code].related).not.toBeEmpty()
      expect(errorTexts[code].related).not.toContain(code)
    }
  })

  test("are where doc_url of a real error leads", async () => {
    const { text } = await read("/v1/units")
    const { error } = JSON.parse(text) as { error: { code: string; doc_url: string } }
    expect(error.doc_url).toBe(`${baseUrl}/docs/errors/auth.unauthorized`)
    const page = await fetch(error.doc_url)
    expect(await page.text()).toContain(`<h1><code>${error.code}</code></h1>`)
  })
})

describe("in a browser", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser.close())

  for (const colorScheme of ["light", "dark"] as const)
    test(`is accessible and fits 360 pixels, ${colorScheme}`, async () => {
      const context = await browser.newContext({ colorScheme, viewport: { width: 360, height: 740 } })
      const page = await context.newPage()
      const foreign: string[] = []
      page.on("request", (request) => {
        if (!request.url().startsWith(baseUrl)) foreign.push(request.url())
      })
      for (const path of ["/docs", "/docs/operations/pairChip", "/docs/errors/chip.already_scanned"]) {
        await page.goto(`${baseUrl}${path}`)
        const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        expect({ path, overflow }).toEqual({ path, overflow: 0 })
        await page.evaluate(axe.source)
        const { violations } = (await page.evaluate("axe.run()")) as { violations: { id: string }[] }
        expect(violations.map(({ id }) => id)).toEqual([])
      }
      await page.keyboard.press("Tab")
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content")
      expect(foreign).toEqual([])
      await context.close()
    }, 30_000)
})

describe("a new integrator with nothing but /docs", () => {
  const folder = mkdtempSync(join(tmpdir(), "service api "))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test("comes from nothing to a claimed unit with the commands as they stand", async () => {
    const quiet = { DATA_DIR: folder, PORT: "0", OPERATOR_PORT: "0", DEV_CHAIN_PORT: "0", LOG_LEVEL: "error" }
    const dev = await startDev({ ...process.env, ...quiet })
    try {
      const page = await (await fetch(`${dev.service.base_url}/docs`)).text()
      const blocks = [...page.matchAll(/<code class="run">([^<]*)<\/code>/g)].map(([, block = ""]) => block)
      const commands = blocks.join("\n").replace(/&#(\d+);/g, (_, point) => String.fromCharCode(point))
      expect(commands).toContain(keyToFillIn)
      const child = Bun.spawn(["timeout", "40", "bash", "-eu"], {
        stdin: new Blob([commands.replace(keyToFillIn, dev.service.api_key)]),
        stdout: "pipe",
        stderr: "pipe",
      })
      const printed = await new Response(child.stdout).text()
      expect(await new Response(child.stderr).text()).toBe("")
      expect(printed.trimEnd().split("\n").at(-1)).toContain('"status":"claimed"')
    } finally {
      await dev.stop()
    }
  }, 60_000)
})
