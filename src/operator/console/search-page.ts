import { html } from "../../platform/html.ts"
import type { Hit } from "../stories/search.ts"
import { consolePage } from "./page.ts"

/** What a search found; the page says so when it found nothing. */
export function searchPage(words: string, found: Hit[]): string {
  return consolePage(
    "Search",
    html`<main id="main">
<h1>Search</h1>
${
  found.length === 0
    ? html`<p class="empty">Nothing is known by “${words}”. A search takes an id, an external id, a name, a chip, a serial, a transaction hash, the address of a contract or wallet, an organization or a request id, each whole. A request that was refused has set nothing off: its line in the log says why.</p>`
    : html`<ul class="found">${found.map(({ id, machine, state, by }) => html`<li><a href="/console/actors/${id}">${machine} ${id}</a> <span class="badge">${state}</span> <span class="soft">by its ${by}</span></li>`)}</ul>`
}
</main>`,
    words,
  )
}
