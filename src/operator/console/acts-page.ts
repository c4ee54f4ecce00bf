import type { OperatorActRow } from "../../db/operator-schema.ts"
import { html, type Markup } from "../../platform/html.ts"
import { parseId } from "../../platform/ids.ts"
import { consolePage, moment } from "./page.ts"

/** An act with its time as a text. */
export type ShownAct = Pick<OperatorActRow, "actor" | "act" | "subject"> & { at: string }

/** Who did what, the newest first. */
export function actsPage(acts: ShownAct[]): string {
  return consolePage(
    "Operator actions",
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › operator actions</p>
<h1>Operator actions</h1>
<p class="hint">Made with the CLI or on this console, newest first.</p>
${actsTable(acts)}
</main>`,
  )
}

/** The same as part of another page. */
export function actsTable(acts: ShownAct[]): Markup {
  if (acts.length === 0) return html`<p class="empty">None.</p>`
  return html`<div class="scroll" tabindex="0" role="group" aria-label="operator actions"><table>
<thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">Action</th><th scope="col">Target</th></tr></thead>
<tbody>${acts.map(({ at, actor, act, subject }) => html`<tr><td>${moment(at)}</td><td>${actor}</td><td>${act}</td><td>${target(act, subject)}</td></tr>`)}</tbody>
</table></div>`
}

/** A link if these pages show the target, as they show no keys and no lanes. */
function target(act: string, subject: string): Markup {
  const address = addressOf(act, subject)
  if (address === null) return html`<span class="mono">${subject}</span>`
  return html`<a class="mono" href="${address}">${subject}</a>`
}

function addressOf(act: string, subject: string): string | null {
  if (act === "suspend" || act === "resume") return `/console/organizations/${subject}`
  const isOfActor = (act === "retry" || act === "cancel") && parseId(subject) !== null
  return isOfActor ? `/console/search?q=${subject}` : null
}
