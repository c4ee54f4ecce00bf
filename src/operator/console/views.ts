import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { html, type Markup, type Shown, trusted } from "../../platform/html.ts"
import { isInside, wordsOf } from "../charts/chart.ts"
import { innermostStates } from "../charts/machine-charts.ts"
import { withoutStyle } from "../charts/svg.ts"
import type { Named } from "../stories/names.ts"
import type { Hit } from "../stories/search.ts"
import type { Story, StoryEffect, StoryEntry, StoryTransaction } from "../stories/story.ts"
import { duration, stayIn, staysOf, wasTaken } from "../stories/way.ts"
import type { Counts, ListedActors } from "./actors.ts"
import { actsTable } from "./acts-page.ts"
import type { Sign } from "./health.ts"
import { consolePage, moment } from "./page.ts"

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
<p class="hint">How many are in each state now. Choose a state for those that are in it the longest. See also the <a href="/console/webhooks">webhook endpoints</a>, <a href="/console/acts">what operators did</a>, the <a href="/queues">wake-ups</a> and the <a href="/metrics">metrics</a>.</p>
<div class="cards">${drawings.map((drawing) => machineCard(drawing, counts[drawing.machine] ?? {}))}</div>
</main>`,
  )
}

function machineCard({ machine, svg }: Drawing, counts: Record<string, number>): Markup {
  const title = `title-${machine}`
  return html`<section class="card" aria-labelledby="${title}" data-machine-card="${machine}">
<h2 id="${title}">${machine} <span class="total" data-total>${totalOf(counts)}</span></h2>
<div class="scroll" tabindex="0" role="group" aria-label="chart of ${machine}">${chart(svg, machine, { counts, current: null, stays: null })}</div>
<ul class="states" aria-label="states of ${machine}">${innermostStates(machine).map(
    (state) =>
      html`<li><a href="${stateAddress(machine, state)}">${state} <b class="${counts[state] ? "" : "zero"}" data-count-of="${state}">${counts[state] ?? 0}</b></a></li>`,
  )}</ul>
</section>`
}

function totalOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** What is written into a drawing: counts per state, or where one actor is and how long it was in each state. */
type Drawn = {
  counts: Record<string, number> | null
  current: string | null
  stays: ReadonlyMap<string, number> | null
}

/** The drawing with each state linked to its actors, and its count or time written into it. */
function chart(svg: string, machine: MachineName, { counts, current, stays }: Drawn): Markup {
  const linked = withoutStyle(svg).replaceAll(
    /<g class="state (\w+)" data-state="([^"]+)">([\s\S]*?)<\/g>/g,
    (_group, kind: string, path: string, inner: string) => {
      const isCurrent = current !== null && isInside(current, path)
      const stay = stays && stayIn(stays, path)
      const count = counts ? countWithin(counts, path) : typeof stay === "number" ? duration(stay) : ""
      const counted = inner.replace(
        /(<text class="count)("[^>]*>)(<\/text>)/,
        `$1${count === 0 ? " zero" : ""}$2${count}$3`,
      )
      const isVisited = typeof stay === "number"
      const classes = `state ${kind}${isVisited ? " visited" : ""}${isCurrent ? " current" : ""}`
      return `<a href="${stateAddress(machine, path)}"><g class="${classes}" data-state="${path}">${counted}</g></a>`
    },
  )
  return trusted(linked)
}

/** The drawing with every transition marked that was taken. */
function wayIn(drawing: Markup, journal: StoryEntry[]): Markup {
  return trusted(
    String(drawing).replaceAll(
      /<g class="transition" data-source="([^"]*)" data-target="([^"]*)" data-event="([^"]*)">/g,
      (group, source: string, target: string, event: string) =>
        wasTaken(journal, { source, target, event })
          ? group.replace('class="transition"', 'class="transition taken"')
          : group,
    ),
  )
}

function countWithin(counts: Record<string, number>, path: string): number {
  return Object.entries(counts)
    .filter(([state]) => isInside(state, path))
    .reduce((sum, [, count]) => sum + count, 0)
}

function stateAddress(machine: string, state: string): string {
  return `/console/machines/${machine}/states/${encodeURIComponent(state)}`
}

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
<p class="hint">Those that are in it the longest come first.</p>
${
  rows.length === 0
    ? html`<p class="empty">Nobody is in this state.</p>`
    : html`<div class="scroll" tabindex="0" role="group" aria-label="actors in ${state}"><table>
<thead><tr><th scope="col">Id</th><th scope="col">Name</th><th scope="col">External id</th><th scope="col">Serial</th><th scope="col">For</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">Organization</th></tr></thead>
<tbody>${rows.map(
        (row) =>
          html`<tr><td><a class="mono" href="/console/actors/${row.id}">${row.id}</a></td><td>${names.get(row.id)?.name}</td><td>${names.get(row.id)?.external_id}</td><td>${names.get(row.id)?.serial}</td><td>${walletOf(names.get(row.id)?.recipient)}</td><td>${row.state}</td><td>${moment(row.updated_at.toISOString())} <span class="soft">${ageOf(row.updated_at, now)}</span></td><td class="soft">${names.get(row.id)?.organization ?? row.organization_id}</td></tr>`,
      )}</tbody>
</table></div>`
}
${more && html`<p><a class="button" href="${more}" rel="next">The next ones</a></p>`}
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

/** An actor's story: where it is, why, and how it got there. */
export function actorPage(story: Story, svg: string, said: string | null, now: Date): string {
  const stays = staysOf(story.journal, now)
  return consolePage(
    `${story.machine} ${story.state}`,
    html`<main id="main" data-live>
<p class="trail"><a href="/console">Lifecycles</a> › <a href="${stateAddress(story.machine, story.state)}">${story.machine} ${story.state}</a></p>
<h1>${story.machine} <span class="badge">${story.state}</span></h1>
<p class="id">${story.name && html`<b>${story.name}</b> `}${story.id}</p>
${said && html`<p role="status" class="said">${said}</p>`}
<p class="waits"><b>Waits for</b> <span data-waits-for>${story.waits_for}</span></p>
<div class="acts">${story.retryable.map(retryForm)}${story.cancellable.map(cancelForm)}</div>
<dl class="facts">
<div><dt>In this state since</dt><dd>${moment(story.since)}</dd></div>
${fact("External id", story.external_id)}${fact("Serial", story.serial)}${fact("Owner", story.owner)}${fact("For", story.recipient)}
<div><dt>Organization</dt><dd>${organizationOf(story)}</dd></div>
${story.related.length > 0 && html`<div><dt>Same unit</dt><dd><ul class="related">${story.related.map(({ id, machine, state }) => html`<li><a href="/console/actors/${id}">${machine}</a> ${state}</li>`)}</ul></dd></div>`}
</dl>
<div class="scroll" tabindex="0" role="group" aria-label="chart of ${story.machine}">${wayIn(chart(svg, story.machine, { counts: null, current: story.state, stays }), story.journal)}</div>
<h2>Journal</h2>
${story.journal.length === 0 ? html`<p class="empty">The journal of a ${story.machine} is not kept.</p>` : html`<ol class="timeline">${story.journal.map((entry, index) => journalEntry(entry, story.journal[index - 1]))}</ol>`}
<h2>Work for the outside world</h2>
${story.effects.length === 0 ? html`<p class="empty">None.</p>` : html`<ul class="work">${story.effects.map((effect) => effectItem(effect, story))}</ul>`}
<h2>What operators did</h2>
${actsTable(story.acts)}
</main>`,
  )
}

function fact(name: string, value: string | number | null): Markup | null {
  return value === null ? null : html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}

function organizationOf({ organization_id, organization }: Story): Markup {
  if (organization_id === null) return html`none`
  return html`<a href="/console/organizations/${organization_id}">${organization ?? organization_id}</a>`
}

function retryForm({ id, would }: Story["retryable"][number]): Markup {
  return html`<form method="post" action="/console/retry" class="retry"><input type="hidden" name="id" value="${id}"><button>${capitalized(would)}</button></form>`
}

function cancelForm(id: string): Markup {
  return html`<form method="post" action="/console/cancel" class="retry"><input type="hidden" name="id" value="${id}"><button>Give up its nonce</button></form>`
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function journalEntry(entry: StoryEntry, before: StoryEntry | undefined): Markup {
  const { type, ...rest } = entry.event
  const failed = type.startsWith("xstate.error.")
  return html`<li class="${failed ? "failed" : ""}" data-number="${entry.number}" data-event="${type}" data-from="${entry.from_state ?? ""}" data-to="${entry.to_state}">
<div class="line"><span class="event">${wordsOf(type)}</span> <span class="states-moved">${entry.from_state && html`${entry.from_state} → `}${entry.to_state}</span></div>
<div class="soft">${moment(entry.at)}${before && html` · after ${duration(Date.parse(entry.at) - Date.parse(before.at))}`}${entry.request_id && html` · request <code>${entry.request_id}</code>`}</div>
${Object.keys(rest).length > 0 && detailsOf(`entry-${entry.number}`, "What came with it", rest)}
</li>`
}

function detailsOf(id: string, title: string, document: unknown): Markup {
  return html`<details id="${id}"><summary>${title}</summary><pre tabindex="0">${JSON.stringify(document, null, 2)}</pre></details>`
}

function effectItem(effect: StoryEffect, story: Story): Markup {
  const sent = story.transactions.filter(({ id }) => id === effect.transaction_id)
  return html`<li>
<div class="line"><span class="event">${effect.src}</span> <span class="badge ${effect.status}">${effect.status}</span></div>
<div class="soft">${facts([
    ["asked for", moment(effect.created_at)],
    ["closed", effect.closed_at && moment(effect.closed_at)],
    ["due", effect.status === "open" && moment(effect.due_at)],
    ["queue", effect.queue],
    ["tries", effect.attempts],
  ])}</div>
${effect.last_error && html`<p class="alert">${effect.last_error}</p>`}
${sent.map(transactionItem)}
</li>`
}

function transactionItem(transaction: StoryTransaction): Markup {
  return html`<div class="transaction">
<div class="line">transaction <span class="badge">${transaction.status}</span></div>
<div class="soft">${facts([
    ["lane", transaction.lane_id],
    ["nonce", transaction.nonce],
    ["block", transaction.block_number],
  ])}</div>
<ol class="attempts">${transaction.attempts.map(
    ({ hash, kind, send_count, last_error }) =>
      html`<li><code>${hash}</code> <span class="soft">${kind}, sent ${send_count} ${send_count === 1 ? "time" : "times"}</span>${last_error && html`<p class="alert">${last_error}</p>`}</li>`,
  )}</ol>
</div>`
}

function facts(pairs: [string, Shown][]): Markup {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== false)
  return html`${known.map(([name, value], index) => html`${index > 0 && " · "}${name} ${value}`)}`
}

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
