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
    ? html`<p class="empty">Nothing was found for “${words}”. Search for an id, external id, name, chip, serial, transaction hash, contract address, wallet address, organization or request id, in full. A request that was rejected has started nothing: its line in the log says why.</p>`
    : html`<ul class="found">${found.map(({ id, machine, state, by }) => html`<li><a href="/console/actors/${id}">${machine} ${id}</a> <span class="badge">${state}</span> <span class="soft">found by its ${by}</span></li>`)}</ul>`
}
</main>`,
    words,
  )
}
