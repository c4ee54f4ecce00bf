import { readFileSync } from "node:fs"
import { Hono } from "hono"
import { html, type Markup, webPage } from "../../platform/html.ts"
import { fontAt } from "../../platform/look/fonts.ts"
import { palette } from "../../platform/look/look.ts"

/** A page in the style of the console, as the login page is too. */
export function shellPage(title: string, body: Markup): string {
  return webPage({
    title: `${title} · lifecycle console`,
    head: html`<meta name="color-scheme" content="light dark">
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/console.css">
<script type="module" src="/console/browser.js"></script>`,
    body,
  })
}

/** What the pages load. No token is needed, because the login page loads it too. */
export function shellAssets(): Hono {
  const style = `${palette}${readAsset("console.css")}`
  const script = readAsset("browser.js")
  return new Hono()
    .get("/console/console.css", (c) => c.body(style, 200, { "content-type": "text/css; charset=utf-8" }))
    .get("/console/browser.js", (c) =>
      c.body(script, 200, { "content-type": "text/javascript; charset=utf-8" }),
    )
    .get("/console/icon.svg", (c) => c.body(icon, 200, { "content-type": "image/svg+xml" }))
    .get("/fonts/:name", async (c, next) => fontAt(c.req.path) ?? (await next()))
}

function readAsset(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8")
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#0b57c2"/><circle cx="5" cy="8" r="2.5" fill="#fff"/><rect x="9" y="5.5" width="5" height="5" rx="1.2" fill="#fff"/></svg>`
