import { html, type Markup, webPage } from "../../platform/html.ts"
import type { DocsPage } from "./site.ts"

type Shown = { title: string; path: string; content: Markup }

/** A page of the documentation: the navigation, then text beside code. */
export function docsHtml(site: readonly DocsPage[], { title, path, content }: Shown): string {
  const hasMarkdown = site.some((page) => page.path === path)
  return webPage({
    title: `${title} · Chip Verification and Ownership API`,
    head: html`<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/style.css">
${hasMarkdown ? html`<link rel="alternate" type="text/markdown" href="${path}.md">` : null}
<script type="module" src="/docs/script.js"></script>`,
    body: html`<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<a class="brand" href="/docs">service-api <span class="quiet">docs</span></a>
<form action="/docs/search" role="search"><label class="unseen" for="q">Search the documentation</label>
<input id="q" name="q" type="search" placeholder="Search" autocomplete="off">
<div id="found" class="found" hidden></div></form>
</header>
<div class="columns">
<nav aria-label="Documentation"><details class="menu" open><summary>All pages</summary>${navigation(site, path)}</details></nav>
<main id="content">
${content}
${nextGuide(site, path)}
<footer class="quiet">${hasMarkdown ? html`<a href="${path}.md">This page as Markdown</a> · ` : null}<a href="/openapi.json">OpenAPI document</a> · <a href="/llms.txt">llms.txt</a></footer>
</main>
</div>`,
  })
}

/** The guides are one story: each links to the next. */
function nextGuide(site: readonly DocsPage[], path: string): Markup | null {
  const guides = site.filter(({ group }) => group === "Guides")
  const place = guides.findIndex((page) => page.path === path)
  const next = place < 0 ? undefined : guides[place + 1]
  return next ? html`<p class="next">Next: ${pageLink(next)}</p>` : null
}

export function pageLink({ path, title }: Pick<DocsPage, "path" | "title">): Markup {
  return html`<a href="${path}">${title}</a>`
}

/** Guides and resources, with the operations of the resource that the open page belongs to. */
function navigation(site: readonly DocsPage[], open: string): Markup {
  const parent = site.find(({ path }) => path === open)?.parent
  return html`${(["Guides", "Reference"] as const).map(
    (group) => html`<h2 class="group">${group}</h2>
<ul>
${site
  .filter((page) => page.group === group)
  .map((page) => {
    const isOpen = page.path === open || page.path === parent
    const below = isOpen ? site.filter((each) => each.parent === page.path) : []
    return html`<li>${linkOf(page, open)}${below.length > 0 ? html`<ul>${below.map((each) => html`<li>${linkOf(each, open)}</li>`)}</ul>` : null}</li>\n`
  })}</ul>`,
  )}`
}

function linkOf({ path, title }: DocsPage, open: string): Markup {
  return path === open ? html`<a href="${path}" aria-current="page">${title}</a>` : pageLink({ path, title })
}
