import { html, type Markup } from "../../platform/html.ts"
import { shellPage } from "./shell.ts"

/** A page for an unknown address: `what` says what does not exist. */
export function missingPage(what: string): string {
  return consolePage("Not found", html`<main id="main"><h1>Not found</h1><p class="empty">${what}</p></main>`)
}

/** A page of the console; `words` is the search text. */
export function consolePage(title: string, main: Markup, words = ""): string {
  return shellPage(
    title,
    html`<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="/console">Lifecycle console</a>
<form role="search" action="/console/search"><input name="q" type="search" aria-label="Search by id, external id, name, chip, serial, transaction hash, wallet, organization or request id" placeholder="id, name, chip, serial, wallet, request" value="${words}" required><button>Search</button></form>
<span class="connection" role="status" data-connection></span>
</header>
${main}`,
  )
}

/** A time as people read it. */
export function moment(at: string): Markup {
  return html`<time datetime="${at}">${at.replace("T", " ").replace(/\.\d+Z$/, " UTC")}</time>`
}
