import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { html, type Markup } from "../../platform/html.ts"
import { innermostStates } from "../charts/machine-charts.ts"
import type { Counts } from "./actors.ts"
import type { Sign } from "./health.ts"
import { countedChart, stateAddress } from "./marked-charts.ts"
import { consolePage } from "./page.ts"

type Drawing = { machine: MachineName; svg: string }

/** What is wrong now, and all machines with the number of actors in each state. */
export function overviewPage(drawings: Drawing[], counts: Counts, signs: Sign[]): string {
  return consolePage(
    "Machines",
    html`<main id="main" class="overview" data-counts="/console/counts">
<ul class="signs" aria-label="health">${signs.map(
      ({ is_wrong, text, address }) =>
        html`<li class="${is_wrong ? "wrong" : "right"}">${is_wrong && html`<b>!</b> `}${address ? html`<a href="${address}">${text}</a>` : text}</li>`,
    )}</ul>
<h1>Lifecycles</h1>
<p class="hint">The number of actors in each state now. Select a state to list them, those that have been in it the longest first. See also the <a href="/console/webhooks">webhook endpoints</a>, <a href="/console/acts">operator actions</a>, the <a href="/queues">wake-ups</a> and the <a href="/metrics">metrics</a>.</p>
<div class="cards">${drawings.map((drawing) => machineCard(drawing, counts[drawing.machine] ?? {}))}</div>
</main>`,
  )
}

function machineCard({ machine, svg }: Drawing, counts: Record<string, number>): Markup {
  const title = `title-${machine}`
  return html`<section class="card" aria-labelledby="${title}" data-machine-card="${machine}">
<h2 id="${title}">${machine} <span class="total" data-total>${totalOf(counts)}</span></h2>
<div class="scroll" tabindex="0" role="group" aria-label="chart of ${machine}">${countedChart(svg, machine, counts)}</div>
<ul class="states" aria-label="states of ${machine}">${innermostStates(machine).map(
    (state) =>
      html`<li><a href="${stateAddress(machine, state)}">${state} <b class="${counts[state] ? "" : "zero"}" data-count-of="${state}">${counts[state] ?? 0}</b></a></li>`,
  )}</ul>
</section>`
}

function totalOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
