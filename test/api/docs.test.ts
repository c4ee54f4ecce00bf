import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type FailureCode, failures } from "../../machines/failures.ts"
import { createApp } from "../../src/api/app.ts"
import { guidesFor } from "../../src/api/docs/guides.ts"
import { routes } from "../../src/api/routes.ts"
import {
  chipDigest,
  createReceiptKey,
  type ReceiptKey,
  signReceipt,
} from "../../src/engine/receipts/receipt.ts"
import { loadConfig, type RateLimit } from "../../src/platform/config.ts"
import { type ErrorCode, errorCatalogue } from "../../src/platform/errors.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { signingKey } from "../../src/resources/receipts/keys.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { type Engine, engines } from "../harness/engines.ts"
import { openService, type TestService } from "../harness/services.ts"

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

const read = async (path: string, accept = "*/*") => {
  const response = await fetch(`${baseUrl}${path}`, { headers: { accept } })
  return { response, text: await response.text() }
}

const paths = ["/docs", "/docs/claims", "/docs/resources/units", "/docs/operations/createTap", "/docs/errors"]

describe("the documentation", () => {
  test("is HTML that loads resources from this service only", async () => {
    for (const path of paths) {
      const { response, text } = await read(path)
      expect(response.status).toBe(200)
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(response.headers.get("content-security-policy")).toBe(
        "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      )
      expect(response.headers.get("x-request-id")).toMatch(/^req_/)
      expect(text.match(/<(img|iframe|object|style)|\bon\w+=|\bstyle=/g)).toBeNull()
      expect(text.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="/docs/script.js">'])
    }
    expect((await read("/docs/style.css")).response.headers.get("content-type")).toStartWith("text/css")
  })

  test("has no broken link or fragment", async () => {
    const open = ["/docs"]
    const seen = new Map<string, string>()
    const parts = new Set<string>()
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      if (seen.has(path)) continue
      const { response, text } = await read(path)
      seen.set(path, response.status === 200 ? text : "dead")
      if (!path.startsWith("/docs") || path.endsWith(".md")) continue
      for (const [, href = "", part] of text.matchAll(/<a [^>]*?href="([^"#]*)(?:#([^"]*))?"/g)) {
        if (/^https?:/.test(href)) continue
        open.push(href || path)
        if (part) parts.add(`${href || path}#${part}`)
      }
    }
    expect([...seen].filter(([, text]) => text === "dead").map(([path]) => path)).toEqual([])
    const missing = [...parts].filter((each) => {
      const [path = "", id] = each.split("#")
      return !seen.get(path)?.includes(`id="${id}"`)
    })
    expect(missing).toEqual([])
    expect(seen.size).toBeGreaterThan(2 * (codes.length + routes.length))
  }, 60_000)

  test("has a page for every operation", async () => {
    for (const { operation, summary, method, path } of routes) {
      const { text } = await read(`/docs/operations/${operation}`)
      expect(text).toContain(`<h1>${summary.replaceAll("'", "&#39;")}</h1>`)
      expect(text).toContain(`<code>${method} ${path}</code>`)
    }
  })

  test("explains each response schema in one place", async () => {
    const { text } = await read("/docs/operations/createTap.md")
    expect(text).toContain("Fields: see [Tap](/docs/resources/taps#tap).")
    expect((await read("/docs/resources/taps.md")).text).toContain("*[Unit](/docs/resources/units#unit)*")
    expect((await read("/docs/resources/claims.md")).text).toContain(
      "`claimed`: confirmed by the chain; final.",
    )
  })

  test("shows commands that bash can parse", async () => {
    const commands: string[] = []
    for (const { operation } of routes) {
      const { text } = await read(`/docs/operations/${operation}.md`)
      commands.push(/```bash\n(curl [\s\S]*?)\n```/.exec(text)?.[1] ?? "missing (")
    }
    const child = Bun.spawn(["bash", "-n"], { stdin: new Blob([commands.join("\n")]), stderr: "pipe" })
    expect(await new Response(child.stderr).text()).toBe("")
  })

  test("shows commands with the variable names that the guides define", async () => {
    const guides = guidesFor({ api_base_url: baseUrl }).map(({ markdown }) => markdown)
    const given = new Set(namesIn(guides.join("\n"), /^\s*([A-Z_]+)=/gm))
    const commands = await Promise.all(
      routes.map(async ({ operation }) => (await read(`/docs/operations/${operation}.md`)).text),
    )
    const taken = new Set(namesIn(commands.join("\n"), /\$([A-Z_]+)/g))
    expect([...taken.difference(given)].sort()).toEqual(["EVENT", "REPLACEMENT", "TAP"])
  })

  test("escapes what it shows", async () => {
    const { text } = await read("/docs/operations/createTap")
    expect(text).toContain("Authorization: Bearer $KEY&quot;")
    expect(text).not.toContain("undefined")
    expect(text).not.toContain("[object Object]")
  })

  test("is available as Markdown by URL and by Accept header, and llms.txt lists all pages", async () => {
    const byAddress = await read("/docs/claims.md")
    expect(byAddress.response.headers.get("content-type")).toBe("text/markdown; charset=utf-8")
    expect(byAddress.text).toStartWith("# Claims\n")
    expect((await read("/docs/claims", "text/markdown")).text).toBe(byAddress.text)
    const { text } = await read("/llms.txt")
    const listed = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, address = ""]) => address)
    expect(listed).toContain(`${baseUrl}/docs/claims.md`)
    expect(listed.length).toBeGreaterThan(codes.length + routes.length)
  })

  test("states the default limits", async () => {
    const { rate_limits } = loadConfig({ SERVICE_SECRET: service.secret.current })
    const { text } = await read("/docs/limits.md")
    const inWords = ({ requests, seconds }: RateLimit) =>
      `${requests / seconds} a second, bursts of ${requests}`
    const { api_key, session_token, publishable_key, tap_redirect, metadata, kept_answer } = rate_limits
    expect(text).toContain(`API key: ${inWords(api_key).replace("a second", "requests a second")}.`)
    expect(text).toContain(`Session token: ${inWords(session_token)}. Publishable key: the same`)
    expect(publishable_key).toEqual(session_token)
    expect(text).toContain(
      `Chip URLs \`/t/{chip_id}\`: ${tap_redirect.requests / tap_redirect.seconds} a second`,
    )
    expect(text).toContain(`bursts of ${tap_redirect.requests}`)
    expect(text).toContain(`Public metadata: ${inWords(metadata)}.`)
    expect(text).toContain("`Idempotency-Key`: 360,000 an hour")
    expect(kept_answer).toEqual({ requests: 360_000, seconds: 3_600 })
    for (const limit of [rate_limits.refused_value, rate_limits.failed_credential])
      expect(limit).toEqual({ requests: 10, seconds: 60 })
    const polling = (await read("/docs/polling.md")).text.replaceAll(/\s+/g, " ")
    const { requests, seconds } = session_token
    expect(polling).toContain(`${requests / seconds} requests a second with bursts of ${requests}`)
    // The recommended first polling interval is within these limits.
    expect(polling).toContain("Begin with half a second")
    expect(requests / seconds).toBeGreaterThan(2)
  })

  test("can be searched, best match first", async () => {
    const found = async (question: string) => {
      const { text } = await read(`/docs/search?q=${encodeURIComponent(question)}`)
      return [...text.slice(text.indexOf('id="results"')).matchAll(/href="(\/docs[^"]*)"/g)].map(
        ([, path]) => path,
      )
    }
    expect((await found("idempotency"))[0]).toBe("/docs/idempotency")
    expect(await found("already_scanned")).toContain("/docs/errors/chip.already_scanned")
    expect((await found("no-such-word-anywhere")).filter((path) => path?.includes("/errors/"))).toEqual([])
    expect((await read("/docs/search?q=%3Cscript%3E")).text).toContain("“&lt;script&gt;”")
  })

  test("searches for the first twelve words of a query only, because a search blocks all requests", async () => {
    const found = async (words: string[]) => (await read(`/docs/search?q=${words.join("+")}`)).text
    const twelve = [..."aeinorstlcdu"]
    const nowhere = Array.from({ length: 1_000 }, (_, place) => `nowhere${place}`)
    const link = /<li><a href="\/docs\//
    expect((await found([...twelve.slice(1), ...nowhere])).split('id="results"')[1]).not.toMatch(link)
    // Later words are ignored, and a repeated word does not count again.
    expect((await found([...twelve, ...nowhere])).split('id="results"')[1]).toMatch(link)
    expect((await found([...Array(1_000).fill("a"), "nowhere0"])).split('id="results"')[1]).not.toMatch(link)
  })
})

test("every page of the service has an icon that exists", async () => {
  for (const path of ["/", "/nothing", "/docs", "/docs/nothing-here", "/docs/errors"]) {
    const { text } = await read(path, "text/html")
    const { response } = await read(/<link rel="icon" href="([^"]+)"/.exec(text)?.[1] ?? "/none")
    expect([path, response.headers.get("content-type")]).toEqual([path, "image/svg+xml; charset=utf-8"])
  }
})

test("the page fonts exist and are cached forever under content-hashed names", async () => {
  const { text } = await read("/docs/style.css")
  const named = [...text.matchAll(/url\("([^"]*)"\)/g)].map(([, path = ""]) => path)
  expect(named.length).toBe(4)
  for (const path of named) {
    const response = await fetch(`${baseUrl}${path}`)
    const bytes = new Uint8Array(await response.arrayBuffer())
    const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex")
    expect(path).toMatch(new RegExp(`^/fonts/[a-z0-9-]+-${hash.slice(0, 12)}\\.woff2$`))
    expect([...bytes.slice(0, 4)]).toEqual([...Buffer.from("wOF2")])
    expect(response.headers.get("content-type")).toBe("font/woff2")
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
  }
})

describe("an unknown page of the documentation", () => {
  test("is an HTML page for a browser and JSON for other clients", async () => {
    const html = "text/html,application/xhtml+xml"
    expect((await read("/", html)).text).toContain("<h1>Chip Verification and Ownership API</h1>")
    expect(JSON.parse((await read("/")).text)).toMatchObject({ service: "service-api" })
    for (const path of ["/docs/nothing-here", "/nothing"]) {
      const page = await read(path, html)
      expect(page.response.status).toBe(404)
      expect(page.text).toContain("<h1>There is nothing at this URL</h1>")
      expect(JSON.parse((await read(path)).text).error.code).toBe("not_found.resource")
    }
    expect(JSON.parse((await read("/v1/nothing", html)).text).error.code).toBe("not_found.resource")
  })
})

describe("the error pages", () => {
  test.each(codes)("%s has one, with an example, a working request and related codes", async (code) => {
    const { response, text } = await read(`/docs/errors/${code}`)
    expect(response.status).toBe(200)
    for (const part of ["What happened", "How to fix it", "A request that works", "Related codes"])
      expect(text).toContain(`>${part}</h2>`)
    expect(text).toContain(`${baseUrl}/docs/errors/${code}`)
    expect(text).toContain("curl ")
  })

  test("exist only for codes of the catalogue", async () => {
    for (const code of ["chip.no_such", "constructor", "..", "%2e%2e", "$&"])
      expect((await read(`/docs/errors/${code}`)).response.status).not.toBe(200)
  })

  test("relate each code to others, never to itself", () => {
    for (const code of codes) {
      expect(errorCatalogue[code].related).not.toBeEmpty()
      expect(errorCatalogue[code].related).not.toContain(code)
    }
  })

  test("explain every failure code, too, with a remedy, and the OpenAPI document lists them", async () => {
    const { components } = JSON.parse((await read("/openapi.json")).text) as {
      components: { schemas: Record<string, { enum?: string[] }> }
    }
    const failureCodes = Object.keys(failures) as FailureCode[]
    expect(components.schemas.KnownFailureCode?.enum).toEqual(failureCodes)
    const overview = (await read("/docs/errors.md")).text
    for (const code of failureCodes) {
      expect(overview).toContain(`[\`${code}\`](/docs/errors/${code}): ${failures[code]}`)
      const { text } = await read(`/docs/errors/${code}.md`)
      expect(text).toContain(`# \`${code}\``)
      const isErrorToo = Object.hasOwn(errorCatalogue, code)
      for (const part of isErrorToo
        ? ["## As a failure", "## How to fix it"]
        : ["## What failed", "## What to do"])
        expect(text).toContain(`\n${part}\n`)
      expect(text).toContain('returns from then on, in part:\n\n```json\n{\n  "id"')
    }
  })

  test("name both limits of open authorizations: a session's and the unit's", async () => {
    for (const code of ["claim.in_progress", "transfer.in_progress"])
      expect((await read(`/docs/errors/${code}.md`)).text).toMatch(/: 5 of this session, or 50 /)
  })

  test("are where doc_url of a real error points", async () => {
    const { text } = await read("/v1/units")
    const { error } = JSON.parse(text) as { error: { code: string; doc_url: string } }
    expect(error.doc_url).toBe(`${baseUrl}/docs/errors/auth.unauthorized`)
    const page = await fetch(error.doc_url)
    expect(await page.text()).toContain(`<h1><code>${error.code}</code></h1>`)
  })
})

describe("in a browser", () => {
  const { newPage } = useBrowser()

  test("each kind of page fits phone and desktop screens, is accessible in light and dark mode, and contacts no other host", async () => {
    const visited = await newPage()
    const kinds = {
      landing: "/",
      "quick-start": "/docs",
      "real-chips": "/docs/real-chips",
      events: "/docs/events",
      operation: "/docs/operations/pairChip",
      resource: "/docs/resources/units",
      errors: "/docs/errors",
      error: "/docs/errors/chip.already_scanned",
      found: "/docs/search?q=claim",
      receipt: "/docs/verify-receipt",
      tap: "/t/04A1B2C3D4",
    }
    for (const [kind, path] of Object.entries(kinds)) {
      await visited.page.goto(`${baseUrl}${path}`)
      expect(await flawsOf(visited, `docs-${kind}`)).toEqual([])
    }
    expect(visited.complaints).toEqual([])
    await visited.page.goto(`${baseUrl}/docs/nothing-here`)
    expect(await flawsOf(visited, "docs-nothing")).toEqual([])
    expect(visited.requested.filter((url) => !url.startsWith(baseUrl))).toEqual([])
  }, 120_000)

  test("the receipt page verifies a receipt while the service is down, and says what is wrong with an altered one", async () => {
    const { page, requested, complaints } = await newPage()
    const key = await service.turn((turn) => signingKey(turn, service.secret))
    const receipt = receiptBy(key)
    // Everything that the page loads is loaded before the service goes down.
    await page.goto(`${baseUrl}/docs/verify-receipt`, { waitUntil: "networkidle" })
    await page.context().setOffline(true)
    const before = requested.length
    const verdictOn = async (text: string, chip = "") => {
      await page.locator("#receipt").fill(text)
      await page.locator("#chip").fill(chip)
      await page.getByRole("button", { name: "Verify" }).click()
      const verdict = page.locator("#verdict.good, #verdict.bad")
      await verdict.waitFor()
      return String(await verdict.textContent())
    }
    expect(await verdictOn(receipt)).toStartWith("Genuine: https://api.brand.test verified this tap at 2026-")
    expect(await page.locator("#claims").textContent()).toContain("counter7")
    expect(await verdictOn(receipt, "04a0b1c2d3")).toStartWith("Genuine")
    expect(await verdictOn(receipt, "04A0B1C2D4")).toBe("The receipt is genuine, but is about another chip.")
    const changed = receipt.replace(/.$/, (last) => (last === "A" ? "Q" : "A"))
    expect(await verdictOn(changed)).toContain("its signature is wrong")
    expect(await page.locator("#claims").textContent()).toBe("")
    expect(await verdictOn(receiptBy(createReceiptKey()))).toContain("is not among")
    await page.locator("summary", { hasText: "Keys of this service" }).click()
    await page.locator("#keys").fill("no keys")
    expect(await verdictOn(receipt)).toContain("the keys are not a JWKS")
    expect(requested.length).toBe(before)
    await page.context().setOffline(false)
    await page.goto(`${baseUrl}/docs`)
    await page.goto(`${baseUrl}/docs/verify-receipt#receipt=${receipt}`)
    await page.locator("#verdict.good").waitFor()
    expect(requested.filter((url) => url.includes(receipt.slice(-20)) && !url.includes("#"))).toEqual([])
    expect(complaints).toEqual([])
  }, 60_000)

  test("a second link with a receipt, opened where the first one is shown, shows its own verdict", async () => {
    const { page, complaints } = await newPage()
    const key = await service.turn((turn) => signingKey(turn, service.secret))
    const linkOf = (receipt: string) => `${baseUrl}/docs/verify-receipt#receipt=${receipt}`
    await page.goto(linkOf(receiptBy(key)))
    await page.locator("#verdict.good").waitFor()
    // Only what is behind the # differs, so the browser does not load the page again.
    await page.goto(linkOf(receiptBy(createReceiptKey())))
    await page.locator("#verdict.bad").waitFor()
    expect(await page.locator("#verdict").textContent()).toContain("is not among")
    expect(await page.locator("#claims").textContent()).toBe("")
    expect(complaints).toEqual([])
  }, 60_000)

  test("the receipt page says why it cannot verify where browsers withhold cryptography, as in pages with http:", async () => {
    const { page, complaints } = await newPage()
    await page.addInitScript(`Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined })`)
    const receipt = receiptBy(await service.turn((turn) => signingKey(turn, service.secret)))
    await page.goto(`${baseUrl}/docs/verify-receipt#receipt=${receipt}`)
    await page.locator("#verdict.bad").waitFor()
    expect(await page.locator("#verdict").textContent()).toContain("Not verified")
    expect(complaints).toEqual([])
  }, 60_000)

  test("pages work in a browser that blocks cookies, and with them all storage", async () => {
    const { page, complaints } = await newPage({ width: 390 })
    // What Chromium throws then.
    await page.addInitScript(`for (const storage of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, storage, { get: () => { throw new DOMException("Access is denied.", "SecurityError") } })`)
    const key = "end_sk_0123456789"
    await page.goto(`${baseUrl}/docs#key=${key}`)
    expect(await page.locator(".menu").getAttribute("open")).toBeNull()
    expect(await page.locator("main").textContent()).toContain(key)
    await page.locator("#q").fill("claim")
    await page.locator("#found #results").waitFor({ timeout: 20_000 })
    await page.locator(".tabs input").nth(1).check({ force: true })
    expect(complaints).toEqual([])
  }, 60_000)

  test("the checks detect a page that overflows, breaks words or is unreadable", async () => {
    const visited = await newPage()
    await visited.page.setContent(
      '<html lang="en"><title>Flawed</title><main><h1 style="width: 500px; color: #ccc; background: #fff">Pale</h1><p style="width: 2em; overflow-wrap: anywhere">two characters</p><img src=""></main>',
    )
    const flaws = (await flawsOf(visited, "flawed")).join("\n")
    expect(flaws).toContain("flawed, 390 pixels, dark: 118 pixels too wide")
    expect(flaws).toContain("flawed, 1280 pixels, dark: color-contrast at h1")
    expect(flaws).toContain("flawed, 390 pixels, light: image-alt at img")
    expect(flaws).toContain('flawed, 390 pixels, light: "characters" is broken over lines')
    expect(flaws).not.toContain('"two"')
    expect(flaws).toMatch(/flawed: h1 is drawn in \w/)
  }, 30_000)

  test("the keyboard alone is enough to get from the search to a page and through its tabs", async () => {
    const { page, complaints } = await newPage({ width: 1280 })
    await page.goto(`${baseUrl}/docs`)
    await page.keyboard.press("Tab")
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content")
    await page.keyboard.press("/")
    const answered = page.waitForResponse((response) => response.url().endsWith("q=redirects"))
    await page.keyboard.type("redirects")
    await answered
    await page.waitForFunction(`document.querySelector("#found a")?.pathname === "/docs/redirects"`)
    await page.keyboard.press("ArrowDown")
    await Promise.all([page.waitForURL(`${baseUrl}/docs/redirects`), page.keyboard.press("Enter")])
    await page.locator('.tabs input[value="bash"]').first().focus()
    await page.keyboard.press("ArrowRight")
    expect(await page.locator('pre[data-language="ts"]').first().isVisible()).toBe(true)
    await page.goto(`${baseUrl}/docs`)
    expect(await page.locator('.tabs input[value="ts"]').first().isChecked()).toBe(true)
    expect(complaints).toEqual([])
  }, 60_000)

  test("a key in the URL fragment is filled in and removed from the URL", async () => {
    const { page } = await newPage({ width: 1280 })
    await page.goto(`${baseUrl}/docs#key=end_sk_Fillme1`)
    await page.locator("pre", { hasText: "KEY=end_sk_Fillme1" }).first().waitFor({ state: "attached" })
    expect(page.url()).toBe(`${baseUrl}/docs`)
    await page.goto(`${baseUrl}/docs/operations/listUnits`)
    expect(await page.locator("pre").first().textContent()).toContain("Bearer end_sk_Fillme1")
  }, 30_000)
})

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = ""]) => name)
}

/** A receipt of chip 04A0B1C2D3. */
function receiptBy(key: ReceiptKey): string {
  return signReceipt(key, {
    iss: "https://api.brand.test",
    jti: "0199fc1a-52d7-7e66-b0f1-c3a84d9e7b04",
    iat: Date.parse("2026-09-12T17:30:00.000Z") / 1_000,
    chain_id: 8453,
    contract: null,
    serial: null,
    counter: 7,
    is_test: false,
    chip_salt: "c2FsdA",
    chip_digest: chipDigest("c2FsdA", "04A0B1C2D3"),
  })
}
