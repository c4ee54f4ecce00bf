import type { OperatorActRow } from "../../db/operator-schema.ts"
import type { OrganizationRow } from "../../db/schema.ts"
import { html, type Markup } from "../../platform/html.ts"
import { consolePage } from "./page.ts"

type ShownAct = Pick<OperatorActRow, "actor" | "act" | "subject"> & { at: string }

/** An organization, whether its credentials are taken, and who changed that. */
export function organizationPage(organization: OrganizationRow, acts: ShownAct[]): string {
  const { id, name, suspended_at, default_chain_id } = organization
  const act = suspended_at ? "resume" : "suspend"
  return consolePage(
    name,
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › organization</p>
<h1>${name} <span class="badge">${suspended_at ? "suspended" : "active"}</span></h1>
<p class="id">${id}</p>
<p class="waits">${suspended_at ? `Its credentials are refused since ${suspended_at.toISOString()}.` : "Its credentials are taken."} What is on its way to the chain goes on either way.</p>
<form method="post" action="/console/${act}" class="retry"><input type="hidden" name="id" value="${id}"><button>${suspended_at ? "Resume" : "Suspend"}</button></form>
<dl class="facts">
<div><dt>Default chain</dt><dd>${default_chain_id ?? "none"}</dd></div>
<div><dt>Its newest</dt><dd><a href="/console/search?q=${id}">collections and units</a></dd></div>
</dl>
<h2>What operators did</h2>
${actsTable(acts)}
</main>`,
  )
}

/** Who did what, the newest first. */
export function actsPage(acts: ShownAct[]): string {
  return consolePage(
    "What operators did",
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › acts</p>
<h1>What operators did</h1>
<p class="hint">By the CLI and on this console; the newest first.</p>
${actsTable(acts)}
</main>`,
  )
}

export function actsTable(acts: ShownAct[]): Markup {
  if (acts.length === 0) return html`<p class="empty">Nothing.</p>`
  return html`<div class="scroll" tabindex="0" role="group" aria-label="what operators did"><table>
<thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">Did</th><th scope="col">To</th></tr></thead>
<tbody>${acts.map(({ at, actor, act, subject }) => html`<tr><td><time datetime="${at}">${at.replace("T", " ").replace(/\.\d+Z$/, " UTC")}</time></td><td>${actor}</td><td>${act}</td><td><a class="mono" href="/console/search?q=${subject}">${subject}</a></td></tr>`)}</tbody>
</table></div>`
}
