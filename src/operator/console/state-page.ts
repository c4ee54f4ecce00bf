import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { html, type Markup } from "../../platform/html.ts"
import type { Named } from "../stories/names.ts"
import type { ListedActors } from "./actors.ts"
import { stateAddress } from "./marked-charts.ts"
import { consolePage, moment } from "./page.ts"

/** The actors that have been in a state the longest, a page at a time. */
export function statePage(
  machine: MachineName,
  state: string,
  { rows, next, names }: ListedActors & { names: Map<string, Named> },
  now: Date,
): string {
  const more =
    next &&
    `${stateAddress(machine, state)}?after=${encodeURIComponent(`${next.updated_at.toISOString()},${next.id}`)}`
  return consolePage(
    `${machine} ${state}`,
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › ${machine}</p>
<h1>${state}</h1>
<p class="hint">Those that have been in it the longest come first.</p>
${
  rows.length === 0
    ? html`<p class="empty">No actor is in this state.</p>`
    : html`<div class="scroll" tabindex="0" role="group" aria-label="actors in ${state}"><table>
<thead><tr><th scope="col">Id</th><th scope="col">Name</th><th scope="col">External id</th><th scope="col">Serial</th><th scope="col">Recipient</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">Organization</th></tr></thead>
<tbody>${rows.map(
        (row) =>
          html`<tr><td><a class="mono" href="/console/actors/${row.id}">${row.id}</a></td><td>${names.get(row.id)?.name}</td><td>${names.get(row.id)?.external_id}</td><td>${names.get(row.id)?.serial}</td><td>${walletOf(names.get(row.id)?.recipient)}</td><td>${row.state}</td><td>${moment(row.updated_at.toISOString())} <span class="soft">${ageOf(row.updated_at, now)}</span></td><td class="soft">${names.get(row.id)?.organization ?? row.organization_id}</td></tr>`,
      )}</tbody>
</table></div>`
}
${more && html`<p><a class="button" href="${more}" rel="next">Next</a></p>`}
</main>`,
  )
}

/** Shortened for a row; the title has all of it. */
function walletOf(address: string | null | undefined): Markup | null {
  if (!address) return null
  return html`<a class="mono" href="/console/search?q=${address}" title="${address}">${address.slice(0, 6)}…${address.slice(-4)}</a>`
}

function ageOf(since: Date, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000))
  const units: [number, string][] = [
    [86_400, "days"],
    [3_600, "hours"],
    [60, "minutes"],
  ]
  const [size, name] = units.find(([each]) => seconds >= 2 * each) ?? [1, "seconds"]
  return `${Math.floor(seconds / size)} ${name}`
}
