import { counted } from "../../platform/counted.ts"
import { html, type Markup, type Shown } from "../../platform/html.ts"
import { wordsOf } from "../charts/chart.ts"
import type { Story, StoryEffect, StoryEntry, StoryTransaction } from "../stories/story.ts"
import { duration } from "../stories/way.ts"
import { actsTable } from "./acts-page.ts"
import { stateAddress, storyChart } from "./marked-charts.ts"
import { consolePage, moment } from "./page.ts"

/** An actor's story: where it is, why, and how it got there. */
export function actorPage(story: Story, svg: string, said: string | null, now: Date): string {
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
${fact("External id", story.external_id)}${fact("Serial", story.serial)}${fact("Owner", story.owner)}${fact("Recipient", story.recipient)}
<div><dt>Organization</dt><dd>${organizationOf(story)}</dd></div>
${story.related.length > 0 && html`<div><dt>Same unit</dt><dd><ul class="related">${story.related.map(({ id, machine, state }) => html`<li><a href="/console/actors/${id}">${machine}</a> ${state}</li>`)}</ul></dd></div>`}
</dl>
<div class="scroll" tabindex="0" role="group" aria-label="chart of ${story.machine}">${storyChart(svg, story, now)}</div>
<h2>Journal</h2>
${story.journal.length === 0 ? html`<p class="empty">No journal is kept for a ${story.machine}.</p>` : html`<ol class="timeline">${story.journal.map((entry, index) => journalEntry(entry, story.journal[index - 1]))}</ol>`}
<h2>Work for the outside world</h2>
${story.effects.length === 0 ? html`<p class="empty">None.</p>` : html`<ul class="work">${story.effects.map((effect) => effectItem(effect, story))}</ul>`}
<h2>Operator actions</h2>
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
  return html`<form method="post" action="/console/cancel" class="retry"><input type="hidden" name="id" value="${id}"><button>Give up the nonce</button></form>`
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
${Object.keys(rest).length > 0 && detailsOf(`entry-${entry.number}`, "Event data", rest)}
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
    ["requested", moment(effect.created_at)],
    ["closed", effect.closed_at && moment(effect.closed_at)],
    ["due", effect.status === "open" && moment(effect.due_at)],
    ["queue", effect.queue],
    ["attempts", effect.attempts],
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
      html`<li><code>${hash}</code> <span class="soft">${kind}, sent ${counted(send_count, "time", "times")}</span>${last_error && html`<p class="alert">${last_error}</p>`}</li>`,
  )}</ol>
</div>`
}

function facts(pairs: [string, Shown][]): Markup {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== false)
  return html`${known.map(([name, value], index) => html`${index > 0 && " · "}${name} ${value}`)}`
}
