import { html, type Markup } from "../../platform/html.ts"
import { statusWords, type WebhookState } from "../stories/webhook-states.ts"
import { consolePage } from "./page.ts"

/** All organizations' webhook endpoints, with what waits for each and its last refusals. */
export function webhooksPage(states: WebhookState[]): string {
  return consolePage(
    "Webhooks",
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › webhooks</p>
<h1>Webhook endpoints</h1>
<p class="hint">Endpoints whose oldest event has waited the longest come first.</p>
${
  states.length === 0
    ? html`<p class="empty">There are no webhook endpoints.</p>`
    : html`<div class="scroll" tabindex="0" role="group" aria-label="webhook endpoints"><table>
<thead><tr><th scope="col">Endpoint</th><th scope="col">Organization</th></tr></thead>
<tbody>${states.map(endpointRow)}</tbody>
</table></div>`
}
</main>`,
  )
}

/** Stacked in one cell, so that a phone shows what matters without scrolling sideways. */
function endpointRow(state: WebhookState): Markup {
  const { id, url, waiting, waiting_since, last_refusals, organization_id } = state
  return html`<tr data-endpoint="${id}"><td class="words"><a class="mono" href="/console/actors/${id}">${id}</a>
<div>${url}</div>
<div><b>${statusWords(state)}</b>, ${waiting === 0 ? "no events waiting" : `${waiting} waiting, the oldest since ${waiting_since}`}</div>
${last_refusals.map(({ at, attempt, error }) => html`<div class="soft">${at}, attempt ${attempt}: ${error}</div>`)}</td><td class="soft mono">${organization_id}</td></tr>`
}
