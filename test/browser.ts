import { existsSync } from "node:fs"
import { type Browser, chromium } from "playwright-core"

/** Debian's Chromium without a window, which talks to nobody but the pages it opens. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = "/usr/bin/chromium"
  if (!existsSync(executablePath))
    throw new Error("these tests need Debian's chromium: apt-get install chromium")
  return await chromium.launch({
    executablePath,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  })
}
