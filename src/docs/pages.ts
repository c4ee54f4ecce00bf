import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Config } from "../config.ts"
import { ApiError, type ErrorCode, errorCatalogue } from "../errors.ts"
import type { Page, PageAnswer } from "../http/page.ts"
import type { Route } from "../http/route.ts"
import { type Document, openApiDocument } from "../openapi/document.ts"
import { errorPage, errorsPage } from "./error-pages.ts"
import { gettingStarted } from "./getting-started.ts"
import { type Html, html } from "./html.ts"
import { conventions, operationIndex, operationPage } from "./reference.ts"

/** The documentation. It follows from the routes and needs nothing but this service. */
export function docsPages(routes: readonly Route[]): Page[] {
  const built = new WeakMap<Config, Map<string, PageAnswer>>()
  return paths.map((path) => ({
    path,
    async open({ config }, { params }) {
      const all = built.get(config) ?? buildPages(routes, config)
      built.set(config, all)
      const page = all.get(path.replace(/\{\w+\}/, () => Object.values(params)[0] ?? ""))
      if (!page) throw new ApiError("not_found.resource")
      return page
    },
  }))
}

const paths = [
  "/docs",
  "/docs/style.css",
  "/docs/operations/{operation}",
  "/docs/errors",
  "/docs/errors/{code}",
] as const

/** Every page by its path. */
function buildPages(routes: readonly Route[], config: Config): Map<string, PageAnswer> {
  const document = openApiDocument(routes, config)
  const pages = new Map([["/docs/style.css", styleSheet]])
  const add = (path: string, title: string, content: Html) => pages.set(path, pageOf(title, content))

  add("/docs", "Documentation", overview(document, config))
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const asked = { path, method: method.toUpperCase(), operation }
      const content = operationPage(document, config.api_base_url, asked)
      add(`/docs/operations/${operation.operationId}`, operation.summary, content)
    }
  add("/docs/errors", "Errors", errorsPage())
  for (const code of Object.keys(errorCatalogue) as ErrorCode[])
    add(`/docs/errors/${code}`, code, errorPage(document, config, code))
  return pages
}

const style = readFileSync(join(import.meta.dir, "style.css"), "utf8")

const cached = { "cache-control": "public, max-age=300" }

const styleSheet: PageAnswer = {
  status: 200,
  headers: { ...cached, "content-type": "text/css; charset=utf-8" },
  html: style,
}

/** Nothing runs and nothing is loaded but the one style sheet. */
const policy =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

function pageOf(title: string, content: Html): PageAnswer {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Chip Verification and Ownership API</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><nav aria-label="Documentation">
<a href="/docs">Documentation</a>
<a href="/docs#getting-started">Getting started</a>
<a href="/docs#operations">Operations</a>
<a href="/docs/errors">Errors</a>
<a href="/openapi.json">OpenAPI document</a>
</nav></header>
<main id="content">
${content}
</main>
</body>
</html>
`
  return {
    status: 200,
    headers: { ...cached, "content-security-policy": policy },
    html: page.html,
  }
}

function overview(document: Document, config: Config): Html {
  return html`<h1>${document.info.title}</h1>
<p>Brands register units of a collection and pair a chip to each. Whoever taps a chip proves to be near it: the service
verifies the tap and answers a short-lived session, with which the unit can be claimed to a wallet or transferred.</p>
${gettingStarted(config.api_base_url)}
${conventions()}
${operationIndex(document)}`
}
