import { afterAll } from "bun:test"
import { join } from "node:path"
import axe from "axe-core"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"

/** Opens pages for the tests of the calling `describe`; its browser can resolve no host but this machine. */
export function useBrowser(): { newPage(options?: PageOptions): Promise<VisitedPage> } {
  const contexts: BrowserContext[] = []
  users += 1
  afterAll(async () => {
    for (const context of contexts) await context.close()
    users -= 1
    if (users === 0) await closeBrowser()
  })
  return {
    async newPage({ width = 1280, scheme = "light" } = {}) {
      const browser = await sharedBrowser()
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme })
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

// All users share one Chromium, which is closed after the last one so that the process can exit.
let browser: Promise<Browser> | undefined
let users = 0

async function sharedBrowser(): Promise<Browser> {
  if ((await browser)?.isConnected() === false) browser = undefined
  browser ??= chromium.launch({ executablePath: findChromium(), args: flags })
  return await browser
}

async function closeBrowser(): Promise<void> {
  const open = browser
  browser = undefined
  await (await open)?.close()
}

export type PageOptions = { width?: number; scheme?: "light" | "dark" }

/** A page with the URLs it requested and the errors on its console. */
export type VisitedPage = { page: Page; requested: string[]; complaints: string[] }

/**
 * Reports what is wrong with the open page on a phone and a desktop, in light and dark mode: overflow, broken words,
 * axe violations, fonts that the page did not load. axe checks two of the four combinations, since colours do not
 * depend on width. Leaves screenshots in `build/pictures`.
 */
export async function flawsOf({ page }: Pick<VisitedPage, "page">, name: string): Promise<string[]> {
  const flaws: string[] = []
  await page.evaluate(axe.source)
  for (const { width, scheme, withAxe } of looks) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.setViewportSize({ width, height: 900 })
    const path = join(import.meta.dir, "../../build/pictures", `${name}-${width}-${scheme}.jpeg`)
    await page.screenshot({ path, type: "jpeg", quality: 60, fullPage: true })
    const found: string[] = []
    const excess = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if (excess !== 0) found.push(`${excess} pixels too wide`)
    const broken = (await page.evaluate(findBrokenWords)) as string[]
    found.push(...broken.map((word) => `"${word}" is broken over lines`))
    if (withAxe) {
      const { violations } = (await page.evaluate(runAxe)) as Pick<axe.AxeResults, "violations">
      for (const { id, nodes } of violations)
        found.push(...nodes.map(({ target }) => `${id} at ${target.join(" ")}`))
    }
    flaws.push(...found.map((flaw) => `${name}, ${width} pixels, ${scheme}: ${flaw}`))
  }
  flaws.push(...(await otherFonts(page)).map((flaw) => `${name}: ${flaw}`))
  return flaws
}

/** Elements whose text the browser renders only in this machine's fonts. */
async function otherFonts(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  await session.send("DOM.enable")
  await session.send("CSS.enable")
  const { root } = await session.send("DOM.getDocument")
  const found: string[] = []
  for (const selector of ["h1", "h2", "p", "a", "button", "label", "code"]) {
    const { nodeId } = await session.send("DOM.querySelector", { nodeId: root.nodeId, selector })
    if (nodeId === 0) continue
    const { fonts } = await session.send("CSS.getPlatformFontsForNode", { nodeId })
    if (fonts.length > 0 && !fonts.some(({ isCustomFont }) => isCustomFont))
      found.push(`${selector} is drawn in ${fonts.map(({ familyName }) => familyName).join(", ")}`)
  }
  await session.detach()
  return found
}

const looks = [
  { width: 390, scheme: "light", withAxe: true },
  { width: 390, scheme: "dark", withAxe: false },
  { width: 1280, scheme: "light", withAxe: false },
  { width: 1280, scheme: "dark", withAxe: true },
] as const

/** Without reloading style sheets, and reporting violations only, which takes half the time. */
const runAxe = `axe.run({ preload: false, resultTypes: ["violations"] })`

/** Words that span two lines, as in a column that is too narrow; ids, addresses and code may be broken. */
const findBrokenWords = `(() => {
  const broken = new Set()
  const range = document.createRange()
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    for (const { 0: word, index } of text.data.matchAll(/(?<![^\\s(])[A-Za-z]{2,12}(?![^\\s.,;:)])/g)) {
      range.setStart(text, index)
      range.setEnd(text, index + word.length)
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
      if (lines.size > 1) broken.add(word)
    }
  return [...broken]
})()`

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
