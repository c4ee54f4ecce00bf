import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { PublicReceiptJwk } from "../../db/receipt-key-schema.ts"
import { wantsHtml } from "../../http/accept.ts"
import type { Page, PageAnswer } from "../../http/page.ts"
import type { Config } from "../../platform/config.ts"
import { ApiError } from "../../platform/errors.ts"
import { html } from "../../platform/html.ts"
import { fontHeaders, fonts } from "../../platform/look/fonts.ts"
import { icon, look } from "../../platform/look/look.ts"
import { publishedKeys } from "../../resources/receipts/keys.ts"
import type { Api } from "../openapi/document.ts"
import { renderMarkdown } from "./markdown.ts"
import { receiptForm, receiptVerifier } from "./receipt-page.ts"
import { search } from "./search.ts"
import { docsHtml, pageLink } from "./shell.ts"
import { buildSite, type DocsPage, llmsText } from "./site.ts"

/** The documentation. It follows from the API and the guides, and loads nothing from elsewhere. */
export function docsPages(api: Api): Page[] {
  const built = new WeakMap<Config, DocsPage[]>()
  const siteOf = (config: Config) => {
    const site = built.get(config) ?? buildSite(api, config)
    built.set(config, site)
    return site
  }
  return [
    ...paths.map(
      (path): Page => ({
        path,
        async open({ config }, { params, accept }) {
          const address = path.replace(/\{\w+\}/, () => Object.values(params)[0] ?? "")
          return pageAt(siteOf(config), address, accept)
        },
      }),
    ),
    {
      path: "/docs/search",
      open: async ({ config }, { query }) => searchAnswer(siteOf(config), query.get("q") ?? ""),
    },
    {
      path: "/docs/verify-receipt",
      open: async (context) => receiptAnswer(siteOf(context.config), await publishedKeys(context)),
    },
    {
      path: "/llms.txt",
      open: async ({ config }) => text(llmsText(siteOf(config), config), "text/plain"),
    },
    file("/docs/style.css", `${look}\n${asset("style.css")}`, "text/css"),
    file("/docs/script.js", asset("script.js"), "text/javascript"),
    file("/docs/verify-receipt.js", asset("verify-receipt.js"), "text/javascript"),
    file("/docs/receipt-verifier.js", receiptVerifier(), "text/javascript"),
    file("/icon.svg", icon, "image/svg+xml"),
    ...fonts.map(
      ({ path, content }): Page => ({
        path,
        open: async () => ({ status: 200, headers: fontHeaders, body: content }),
      }),
    ),
  ]
}

const paths = [
  "/docs",
  "/docs.md",
  "/docs/{guide}",
  "/docs/resources/{resource}",
  "/docs/operations/{operation}",
  "/docs/errors/{code}",
  "/docs/runbooks/{runbook}",
] as const

/** HTML, or Markdown if the address ends with `.md` or only Markdown is accepted. */
function pageAt(site: DocsPage[], address: string, accept: string): PageAnswer {
  const page = site.find(({ path }) => path === address.replace(/\.md$/, ""))
  if (!page) throw new ApiError("not_found.resource")
  const isMarkdown = address.endsWith(".md") || (!wantsHtml(accept) && accept.includes("text/markdown"))
  if (isMarkdown) return text(page.markdown, "text/markdown")
  return htmlAnswer(htmlOf(site, page))
}

/** Rendering takes milliseconds, in which a process does nothing else, and anybody may ask for any page. */
function htmlOf(site: DocsPage[], page: DocsPage): string {
  const html = rendered.get(page) ?? docsHtml(site, { ...page, content: renderMarkdown(page.markdown) })
  rendered.set(page, html)
  return html
}

const rendered = new WeakMap<DocsPage, string>()

function searchAnswer(site: DocsPage[], question: string): PageAnswer {
  const found = search(site, question)
  const results = html`<ol id="results">${found.map((page) => html`<li>${pageLink(page)} <span class="quiet">${page.group}</span></li>`)}</ol>`
  const count = `${found.length === 0 ? "Nothing" : found.length} found for “${question}”`
  const content = html`<section><div class="words"><h1>Search</h1>
<p role="status">${count}</p>${results}</div></section>`
  return htmlAnswer(docsHtml(site, { title: "Search", path: "/docs/search", content }))
}

function receiptAnswer(site: DocsPage[], keys: readonly PublicReceiptJwk[]): PageAnswer {
  const shown = { title: "Verify a tap receipt", path: "/docs/verify-receipt", content: receiptForm(keys) }
  const answer = htmlAnswer(docsHtml(site, shown))
  // A rotation adds a key, so the page must not be cached.
  return { ...answer, headers: { ...answer.headers, "cache-control": "no-cache" } }
}

const cached = { "cache-control": "public, max-age=300", vary: "Accept, Origin" }

/** Only what this service serves is loaded and run, and nothing is sent elsewhere. */
const policy =
  "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

function htmlAnswer(page: string): PageAnswer {
  return { status: 200, headers: { ...cached, "content-security-policy": policy }, body: page }
}

function text(content: string, type: string): PageAnswer {
  return { status: 200, headers: { ...cached, "content-type": `${type}; charset=utf-8` }, body: content }
}

function file(path: string, content: string, type: string): Page {
  return { path, open: async () => text(content, type) }
}

function asset(name: string): string {
  return readFileSync(join(import.meta.dir, name), "utf8")
}
