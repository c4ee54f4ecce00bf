import type { Config } from "../config.ts"
import { type ErrorCode, errorCatalogue } from "../errors.ts"
import { errorExample } from "../openapi/components.ts"
import type { Document } from "../openapi/document.ts"
import { errorTexts } from "./error-texts.ts"
import { type Html, html, prose } from "./html.ts"
import { type Asked, codeBlock, curlOf, table } from "./reference.ts"

/** Every code, in the order of the catalogue. */
export function errorsPage(): Html {
  const rows = Object.entries(errorCatalogue).map(([code, { status, title }]) => [
    html`<a href="/docs/errors/${code}"><code>${code}</code></a>`,
    html`${status}`,
    html`${title}`,
  ])
  return html`<h1>Errors</h1>
<p>Every error has the same form. Branch on <code>error.code</code>, never on the message; codes are added over time, so
treat an unknown one by its status.</p>
${table(["Code", "Status", "Meaning"], rows)}`
}

/** What happened, what to do, what it looks like, a request that works, and what is close to it. */
export function errorPage(
  document: Document,
  { api_base_url, docs_url }: Pick<Config, "api_base_url" | "docs_url">,
  code: ErrorCode,
): Html {
  const { status, title, retryable } = errorCatalogue[code]
  const { happened, fix, operation, related } = errorTexts[code]
  const asked = askedOf(document, operation)
  return html`<h1><code>${code}</code></h1>
<p>${title} <span class="quiet">Status ${status}${code === "internal.error" ? " or 503" : ""}.
${retryable ? "The same request may succeed later." : "The same request will be refused again."}</span></p>
<h2>What happened</h2>
<p>${prose(happened)}</p>
<h2>How to fix it</h2>
<p>${prose(fix)}</p>
<h2>What it looks like</h2>
${codeBlock(JSON.stringify(errorExample(code, docs_url).value, null, 2))}
<h2>A request that works</h2>
<p><a href="/docs/operations/${operation}">${asked.operation.summary}</a></p>
${codeBlock(curlOf(api_base_url, asked))}
<h2>Related codes</h2>
<ul>${related.map((each) => html`<li><a href="/docs/errors/${each}"><code>${each}</code></a> ${errorCatalogue[each].title}</li>\n`)}</ul>`
}

function askedOf(document: Document, operationId: string): Asked {
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods))
      if (operation.operationId === operationId) return { path, method: method.toUpperCase(), operation }
  throw new Error(`there is no operation ${operationId}`)
}
