import { afterAll, beforeAll } from "bun:test"
import axe from "axe-core"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"

/** Starts Debian's Chromium for the tests of the `describe` that calls this; nothing but this machine has a name in it. */
export function useBrowser(): { newPage(options?: PageOptions): Promise<VisitedPage> } {
  let browser: Browser | undefined
  const contexts: BrowserContext[] = []
  beforeAll(async () => {
    browser = await startBrowser()
  }, 30_000)
  afterAll(async () => {
    for (const context of contexts) await context.close()
    await browser?.close()
  })
  return {
    async newPage({ width = 1280, scheme = "light", bypassCSP = false } = {}) {
      if (!browser) throw new Error("the browser is started before the first test")
      const context = await browser.newContext({
        viewport: { width, height: 900 },
        colorScheme: scheme,
        bypassCSP,
      })
      contexts.push(context)
      const requested: string[] = []
      const complaints: string[] = []
      context.on("request", (request) => requested.push(request.url()))
      const page = await context.newPage()
      page.on("console", (message) => {
        if (message.type() === "error") complaints.push(message.text())
      })
      page.on("pageerror", (error) => complaints.push(error.message))
      return { page, requested, complaints }
    },
  }
}

export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: findChromium(), args: flags })
}

export type PageOptions = { width?: number; scheme?: "light" | "dark"; bypassCSP?: boolean }

/** A page with the addresses it asked for and the errors it wrote to its console. */
export type VisitedPage = { page: Page; requested: string[]; complaints: string[] }

/** What axe calls a serious or critical violation, in words. The page must have been opened with `bypassCSP`. */
export async function seriousViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id} at ${target.join(" ")}`))
}

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]

function findChromium(): string {
  const path = Bun.which("chromium") ?? Bun.which("chromium-browser") ?? Bun.which("google-chrome")
  if (!path) throw new Error("these tests need Chromium: apt-get install chromium")
  return path
}
